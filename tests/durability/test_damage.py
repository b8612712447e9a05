"""Files that were torn by a crash are mended; files that were damaged later are refused by name."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivme.database import Database
from ivme.errors import DamagedError
from ivme.store.end_file import END
from ivme.store.segment import SegmentReader
from tests.durability.directories import bag, crash, flip, log_of
from tests.example_counts import examples

BATCHES = 6


def filled(path: Path, *, closed: bool) -> list[int]:
    """A database of batches, each of which adds a row and moves a source; where the log ended after each.

    One that is not closed loses its power: what was not synced of the file that says how far the log reaches is gone.
    """
    db = Database(path)
    end = (path / END).read_bytes()
    db.create_table("R", {"a": "int", "b": "string"})
    db.create_view("v", "SELECT b, COUNT(*) AS n FROM R GROUP BY b")
    ends = [log_of(path).stat().st_size]
    for number in range(1, BATCHES + 1):
        with db.batch(source="s", position=number) as batch:
            batch.insert("R", [(number, "x")] if number % 2 else [(number, "y")] * 20)
        ends.append(log_of(path).stat().st_size)
    if closed:
        db.close()
    else:
        crash(db)
        (path / END).write_bytes(end)
    return ends


def expected_after(batches: int) -> Counter[Any]:
    rows = {(n, "x" if n % 2 else "y"): 1 if n % 2 else 20 for n in range(1, batches + 1)}
    return Counter(rows)


def check_opened(path: Path, batches: int) -> None:
    """The database holds exactly the first batches, and works on."""
    with Database(path) as db:
        assert (batches or None) == db.position("s")
        assert expected_after(batches) == bag(db, "R")
        db.view("v").verify()
        with db.batch(source="s", position=batches + 1) as batch:
            batch.insert("R", [(batches + 1, "x" if batches % 2 == 0 else "y")])
    with Database(path) as db:
        assert batches + 1 == db.position("s")


def whole_batches(ends: list[int], size: int) -> int:
    return max(number for number, end in enumerate(ends) if end <= size)


def test_a_log_that_ends_anywhere_has_the_batches_that_are_whole(tmp_path: Path) -> None:
    ends = filled(tmp_path / "db", closed=False)
    data = log_of(tmp_path / "db").read_bytes()
    for size in sorted(
        {*ends, *(end - 1 for end in ends[1:]), *(end + 1 for end in ends[:-1]), *range(ends[0], len(data), 97)}
    ):
        shutil.copytree(tmp_path / "db", tmp_path / "torn", dirs_exist_ok=True)
        log_of(tmp_path / "torn").write_bytes(data[:size])
        check_opened(tmp_path / "torn", whole_batches(ends, size))
        shutil.rmtree(tmp_path / "torn")


@pytest.mark.parametrize("rest", [b"\0" * 5000, b"\xff" * 100, b"ivmR" * 300])
def test_what_a_crash_leaves_behind_the_last_record_is_cut_off(tmp_path: Path, rest: bytes) -> None:
    ends = filled(tmp_path, closed=False)
    log = log_of(tmp_path)
    log.write_bytes(log.read_bytes() + rest)
    with Database(tmp_path) as db:
        assert expected_after(BATCHES) == bag(db, "R")
        assert ends[-1] == log.stat().st_size


def test_a_bit_that_was_flipped_in_the_last_record_takes_only_that_batch(tmp_path: Path) -> None:
    ends = filled(tmp_path / "db", closed=False)
    for place in range(ends[-2], ends[-1], 29):
        shutil.copytree(tmp_path / "db", tmp_path / "flipped")
        flip(log_of(tmp_path / "flipped"), place, place % 8)
        check_opened(tmp_path / "flipped", BATCHES - 1)
        shutil.rmtree(tmp_path / "flipped")


def test_a_bit_flipped_anywhere_in_a_log_that_was_closed_is_refused_by_name(tmp_path: Path) -> None:
    ends = filled(tmp_path, closed=True)
    log = log_of(tmp_path)
    data = log.read_bytes()
    identity = data.split(b" ")[2].decode()
    for place in range(0, ends[-1], 7):
        flip(log, place, place % 8)
        with pytest.raises(Exception, match=log.name) as caught:
            list(SegmentReader(log, identity, 1).records())
        assert "damaged" in str(caught.value) or "version" in str(caught.value)
        flip(log, place, place % 8)
    for place in range(ends[-1], len(data)):
        flip(log, place)
        assert BATCHES + 2 == len(list(SegmentReader(log, identity, 1).records()))
        flip(log, place)


def test_a_damaged_batch_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    ends = filled(tmp_path, closed=False)
    log = log_of(tmp_path)
    flip(log, ends[2] + 70)
    damaged = log.read_bytes()
    for _ in range(2):
        with pytest.raises(DamagedError, match=rf"{log} is damaged at byte {ends[2]}: records 5 to 8 were committed"):
            Database(tmp_path)
    assert damaged == log.read_bytes()


@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_bit_flipped_in_any_other_file_is_refused_by_name(tmp_path_factory: Any, data: Any) -> None:
    path = tmp_path_factory.mktemp("db")
    filled(path / "db", closed=True)
    with Database(path / "db") as db:
        db.checkpoint()
    files = [*(path / "db").glob("table-*"), path / "db" / "database.json"]
    damaged = data.draw(st.sampled_from(files))
    flip(damaged, data.draw(st.integers(0, damaged.stat().st_size - 1)), data.draw(st.integers(0, 7)))
    with pytest.raises(Exception, match=damaged.name) as caught:
        Database(path / "db")
    assert "damaged" in str(caught.value) or "version" in str(caught.value)


@pytest.mark.parametrize("pattern", ["table-*", "log-*", "database.json"])
def test_a_missing_file_is_named(tmp_path: Path, pattern: str) -> None:
    filled(tmp_path, closed=True)
    with Database(tmp_path) as db:
        db.checkpoint()
        db.insert("R", [(9, "z")])
    (missing,) = tmp_path.glob(pattern)
    missing.unlink()
    with pytest.raises(DamagedError, match=rf"{missing.name} is missing"):
        Database(tmp_path)


def test_a_segment_that_lost_its_end_before_another_began_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    ends = filled(tmp_path, closed=False)
    first = log_of(tmp_path)
    db = Database(tmp_path)
    monkeypatch.setattr("ivme.store.store.write_manifest", _fails)
    with pytest.raises(RuntimeError, match="no manifest"):
        db.checkpoint()
    db.insert("R", [(1, "z")])
    db.close()
    assert 2 == len(list(tmp_path.glob("log-*")))
    first.write_bytes(first.read_bytes()[: ends[-2]])
    with pytest.raises(DamagedError, match=rf"{first.name} is damaged: the records from 8 to 8 are missing"):
        Database(tmp_path)


def _fails(*_: object) -> None:
    raise RuntimeError("no manifest today")
