"""The copy of a state in a store: another folder goes on from it, and drivers are told apart by epochs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ivme.database import Database
from ivme.errors import PipelineError
from ivme.pipeline.journal import Planned, RunJournal
from ivme.pipeline.state_copy import StateCopy


class _State:
    """A state that takes batches, and a copy of it."""

    def __init__(self, folder: Path, store: Path | str) -> None:
        self.folder, self.copy = folder, StateCopy(str(store), folder)
        self.restored = self.copy.restore()
        folder.mkdir(exist_ok=True)
        self.database = Database(folder / "database", durability="sync")
        if "t" not in self.database.tables:
            self.database.create_table("t", {"a": "int"})
        self.journal = RunJournal(folder / "journal.sqlite")
        self.copy.claim()

    def take(self, number: int, *, kept: str = "x") -> None:
        self.journal.plan(Planned(number, "t", {"n": number}))
        (self.folder / "taken").mkdir(exist_ok=True)
        for old in (self.folder / "taken").iterdir():
            old.unlink()
        (self.folder / "taken" / f"{number}.arrow").write_text(kept)
        with self.database.batch(source="p", position=number) as batch:
            batch.insert("t", [(number,)])
        self.copy.save(self.journal)

    def close(self) -> None:
        self.database.close()
        self.journal.close()


def test_another_folder_goes_on_from_the_copy(tmp_path: Path) -> None:
    store = f"file://{tmp_path / 'store'}"
    state = _State(tmp_path / "one", store)
    assert not state.restored
    for number in range(1, 8):
        if number == 4:
            state.database.checkpoint()
        state.take(number)
    sizes = sorted(path.stat().st_size for path in (tmp_path / "store/objects").iterdir())
    with state.database.batch(source="p", position=8) as batch:
        batch.insert("t", [(8,)])  # it is lost with the machine: no copy was made, and no sink has it
    state.close()

    other = _State(tmp_path / "other", store)
    assert other.restored
    assert [(n,) for n in range(1, 8)] == sorted(other.database.table("t"))
    assert 7 == other.database.position("p")
    last = other.journal.last()
    assert last is not None
    assert (7, {"n": 7}) == (last.number, dict(last.plan))
    assert ["7.arrow"] == [path.name for path in (tmp_path / "other/taken").iterdir()]
    other.take(8)
    with pytest.raises(PipelineError, match="another driver has taken over"):
        state.copy.save(other.journal)
    other.close()
    assert 2 == len(list((tmp_path / "store/lists").iterdir()))
    assert sizes, "the copy has objects"


def test_what_a_batch_adds_to_a_log_is_one_more_object(tmp_path: Path) -> None:
    state = _State(tmp_path / "one", tmp_path / "store")
    state.database.insert("t", [(n,) for n in range(100_000)])
    state.take(1)
    before = {path.name for path in (tmp_path / "store/objects").iterdir()}
    state.take(2)
    new = [p for p in (tmp_path / "store/objects").iterdir() if p.name not in before and p.stat().st_size > 100_000]
    assert not new
    state.close()


def test_a_list_that_was_being_written_does_not_count(tmp_path: Path) -> None:
    state = _State(tmp_path / "one", tmp_path / "store")
    state.take(1)
    state.take(2)
    state.close()
    newest = max((tmp_path / "store/lists").iterdir())
    newest.write_bytes(newest.read_bytes()[:40])
    other = _State(tmp_path / "other", tmp_path / "store")
    assert 1 == other.database.position("p")
    other.close()


def test_a_state_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    state = _State(tmp_path / "one", tmp_path / "store")
    state.take(1)
    state.close()
    again = _State(tmp_path / "one", tmp_path / "store")
    assert not again.restored
    assert [(1,)] == list(again.database.table("t"))
    again.close()


def test_an_address_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="cannot be copied to what://x"):
        StateCopy("what://x", tmp_path)
