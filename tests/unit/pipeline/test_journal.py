"""The journal: what is planned stays planned, and a file is known by its name and content."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ivme.pipeline.journal import ChangeFile, Planned, RunJournal


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[RunJournal]:
    journal = RunJournal(tmp_path / "journal.sqlite")
    yield journal
    journal.close()


def plan(number: int, *names: str) -> tuple[Planned, list[ChangeFile]]:
    return Planned(number, "R", {"files": list(names)}), [ChangeFile(name, f"digest of {name}") for name in names]


def names(journal: RunJournal, up_to: int) -> list[str]:
    return [file.name for file in journal.applied("R", up_to)]


def test_what_was_planned_is_there_after_opening_again(tmp_path: Path) -> None:
    first = RunJournal(tmp_path / "journal.sqlite")
    first.plan(*plan(1, "a", "b"))
    first.close()
    again = RunJournal(tmp_path / "journal.sqlite")
    assert Planned(1, "R", {"files": ["a", "b"]}) == again.last()
    assert ["a", "b"] == names(again, 1)
    again.close()


def test_planning_a_batch_anew_lets_go_of_the_files_it_no_longer_has(journal: RunJournal) -> None:
    journal.plan(*plan(1, "a", "b"))
    journal.plan(*plan(1, "a"))
    assert [] == journal.known("R", "b")
    assert ["a"] == names(journal, 1)


def test_only_batches_up_to_a_number_count_as_applied(journal: RunJournal) -> None:
    journal.plan(*plan(1, "a"))
    journal.plan(*plan(2, "b"))
    assert ["a"] == names(journal, 1)


def test_a_refused_file_is_remembered_with_its_reason_and_is_not_applied(journal: RunJournal) -> None:
    journal.plan(*plan(1, "a"))
    journal.refuse("R", ChangeFile("b", "x"), "malformed")
    assert [("R", "b", "malformed")] == journal.refused()
    assert ["a"] == journal.names("R")
    assert journal.same_content("R", "x") is None
    assert "a" == journal.same_content("R", "digest of a")


def test_old_batches_are_forgotten_but_their_files_are_not(journal: RunJournal) -> None:
    for number in range(1, 6):
        journal.plan(*plan(number, f"file {number}"))
    assert 5 == len(journal.applied("R", 5))
    last = journal.last()
    assert last is not None
    journal.drop(last)
    kept = journal.last()
    assert kept is not None
    assert 4 == kept.number


def test_a_sink_is_at_the_batch_that_it_noted_last(journal: RunJournal) -> None:
    assert journal.written("out") is None
    journal.wrote(["out"], 3)
    journal.wrote(["out"], 4)
    assert 4 == journal.written("out")


def test_threads_do_not_get_into_each_others_transactions(tmp_path: Path) -> None:
    """A callback of Spark's noted a batch while the driver planned one: SQLite refuses nested transactions."""
    journal = RunJournal(tmp_path / "journal.sqlite")

    def write(sink: str) -> None:
        for number in range(100):
            journal.wrote([sink], number)
            journal.note(sink, str(number))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, "abcd"))
    assert [99] * 4 == [journal.written(sink) for sink in "abcd"]


def test_files_that_were_looked_at_have_their_stamps(journal: RunJournal) -> None:
    journal.plan(Planned(1, "R", {}), [ChangeFile("a", "x", (7, 3))])
    journal.refuse("R", ChangeFile("b", "y", (8, 4)), "malformed")
    assert {"a": (7, 3), "b": (8, 4)} == journal.stamps("R")
