"""A log that lost its end is refused, with what was lost; what is left can be opened on purpose."""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ivme.cli import app
from ivme.cli.directory import verify_directory
from ivme.database import Database
from ivme.errors import BrokenViewError, DamagedError, StorageError
from ivme.store.end_file import END, read_end
from ivme.store.snapshot import read_manifest
from tests.durability.directories import bag, crash, flip, log_of

FIXTURES = Path(__file__).parent / "fixtures" / "first-format"


def made(path: Path, *, closed: bool = True, durability: str = "sync") -> list[int]:
    """A table of 24 rows, each a batch, and a view; the places where the log ended after each."""
    db = Database(path, durability=durability)
    db.create_table("R", {"a": "int", "b": "string"})
    db.create_view("v", "SELECT b, COUNT(*) AS n FROM R GROUP BY b")
    ends = [log_of(path).stat().st_size]
    for number in range(24):
        db.insert("R", [(number, "x")])
        ends.append(log_of(path).stat().st_size)
    if durability == "async":
        assert db.definitions.store is not None
        db.definitions.store.log.sync()
    db.close() if closed else crash(db)
    return ends


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


@pytest.mark.parametrize(("closed", "durability"), [(True, "sync"), (False, "sync"), (False, "async")])
def test_a_log_that_is_cut_anywhere_is_refused_with_what_was_lost(
    tmp_path: Path, closed: bool, durability: str
) -> None:
    """Also after a process was killed: the records were durable, and their end was noted."""
    ends = made(tmp_path / "db", closed=closed, durability=durability)
    log = log_of(tmp_path / "db")
    last, size = (27 if closed else 26), log.stat().st_size
    data = log.read_bytes()
    for left, records in ((ends[10], 12), (ends[10] + 5, 12), (ends[23], 25), (ends[0], 2), (size - 1, last - 1)):
        log.write_bytes(data[:left])
        lost = f"records {records + 1} to {last} were" if records + 1 < last else f"record {last} was"
        with pytest.raises(DamagedError, match=rf"{log} is damaged at byte \d+: {lost} committed") as caught:
            Database(tmp_path / "db")
        assert f"({size - ends[records - 2] if records < 27 else 0} bytes)" in str(caught.value)
        assert "accept_loss=True" in str(caught.value)
        with pytest.raises(DamagedError, match=log.name):
            list(verify_directory(tmp_path / "db"))
    log.write_bytes(data[:20])
    with pytest.raises(DamagedError, match=log.name):
        Database(tmp_path / "db")
    log.write_bytes(data)
    with Database(tmp_path / "db") as db:
        assert 24 == bag(db, "R").total()


@pytest.mark.parametrize("filled", [b"\0" * 5000, b"\xff" * 100])
def test_a_part_that_was_overwritten_is_refused_too(tmp_path: Path, filled: bytes) -> None:
    ends = made(tmp_path)
    log = log_of(tmp_path)
    log.write_bytes(log.read_bytes()[: ends[20]] + filled)
    with pytest.raises(DamagedError, match="records 23 to 27 were committed"):
        Database(tmp_path)


def test_a_last_segment_that_was_removed_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for index, rows in enumerate([0, 3]):
        path = tmp_path / str(index)
        db = Database(path)
        db.create_table("R", {"a": "int"})
        db.insert("R", [(1,)])
        monkeypatch.setattr("ivme.store.store.write_manifest", _fails)
        with pytest.raises(StorageError, match="no manifest"):
            db.checkpoint()
        for n in range(rows):
            db.insert("R", [(n,)])
        crash(db)
        monkeypatch.undo()
        first, second = sorted(path.glob("log-*"))
        second.unlink()
        lost = "; records 3 to 5 were committed" if rows else ""
        with pytest.raises(DamagedError, match=rf"{second.name} is missing{lost}"):
            Database(path)
        with Database(path, accept_loss=True) as db:
            assert 1 == bag(db, "R").total()
        assert not first.exists()


def _fails(*_: object) -> None:
    raise StorageError("no manifest today")


def test_a_file_of_the_end_that_is_missing_or_damaged_is_refused_by_name(tmp_path: Path) -> None:
    made(tmp_path)
    end = tmp_path / END
    data = end.read_bytes()
    for damage in (lambda: end.unlink(), lambda: cut(end, 4096), lambda: end.write_bytes(b"\0" * len(data))):
        damage()
        with pytest.raises(DamagedError, match=f"{END} is (missing|damaged)"):
            Database(tmp_path)
        end.write_bytes(data)
    flip(end, 60)
    with Database(tmp_path) as db:  # the other slot is whole
        assert 24 == bag(db, "R").total()
    end.unlink()
    with Database(tmp_path, accept_loss=True) as db:
        assert 24 == bag(db, "R").total()
    Database(tmp_path).close()


def test_the_end_never_states_more_than_what_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that another thread synced and that is taken back is not part of the log."""
    db = Database(tmp_path)
    db.create_table("R", {"a": "int"})
    store = db.definitions.store
    assert store is not None

    def synced_and_interrupted() -> None:
        store.log.commits.wait(store.log.last)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "_snapshot_if_due", synced_and_interrupted)
        with pytest.raises(KeyboardInterrupt):
            db.insert("R", [(1,)])
    crash(db)
    assert 1 == read_end(tmp_path, read_manifest(tmp_path).identity)[1].last
    with Database(tmp_path) as db:
        assert Counter() == bag(db, "R")


def test_what_is_left_of_a_log_is_opened_on_purpose(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ends = made(tmp_path)
    log = log_of(tmp_path)
    flip(log, ends[10] + 60)
    damaged = log.read_bytes()
    with caplog.at_level(logging.WARNING, "ivme.store"), Database(tmp_path, accept_loss=True) as db:
        assert "records 13 to 27 were committed and cannot be read" in caplog.text
        assert Counter({(n, "x"): 1 for n in range(10)}) == bag(db, "R")
        db.view("v").verify()
        db.insert("R", [(100, "y")])
    assert damaged == (tmp_path / f"{log.name}.damaged").read_bytes()
    with Database(tmp_path) as db:
        assert 11 == bag(db, "R").total()
        db.view("v").verify()


def test_of_several_tables_those_that_can_be_read_are_left(tmp_path: Path) -> None:
    with Database(tmp_path) as db:
        for name in ("R", "S"):
            db.create_table(name, {"a": "int"})
            db.insert(name, [(n,) for n in range(40)])
            db.create_view(f"v{name}", f"SELECT COUNT(*) AS n FROM {name}")
        db.checkpoint()
        db.insert("R", [(100,)])
        db.insert("S", [(100,)])
    damaged = max(tmp_path.glob("table-*"))
    flip(damaged, 300)
    with pytest.raises(DamagedError, match=rf"{damaged.name} is damaged.*the rows of table S \(40 distinct\)"):
        Database(tmp_path)
    with Database(tmp_path, accept_loss=True) as db:
        assert (("R",), ("vR",)) == (db.tables, db.views)
        assert 41 == bag(db, "R").total()
        assert "there is no table 'S'" in db.broken_views["vS"]
    assert (tmp_path / f"{damaged.name}.damaged").exists()
    with Database(tmp_path) as db:
        with pytest.raises(BrokenViewError, match="there is no table 'S'"):
            db.view("vS")
        db.create_table("S", {"a": "int"})
        db.insert("S", [(1,)])
        assert [(1,)] == list(db.rebuild_view("vS"))


def test_a_segment_without_its_first_line_is_set_aside(tmp_path: Path) -> None:
    made(tmp_path)
    log = log_of(tmp_path)
    flip(log, 3)
    with Database(tmp_path, accept_loss=True) as db:
        assert () == db.tables
        db.create_table("S", {"a": "int"})
    assert (tmp_path / f"{log.name}.damaged").exists()
    with Database(tmp_path) as db:
        assert ("S",) == db.tables


def test_without_its_manifest_nothing_is_left(tmp_path: Path) -> None:
    made(tmp_path)
    flip(tmp_path / "database.json", 100)
    for accepted in (False, True):
        with pytest.raises(DamagedError, match=r"database\.json is damaged"):
            Database(tmp_path, accept_loss=accepted)


def test_accepting_a_loss_where_nothing_is_lost_changes_nothing(tmp_path: Path) -> None:
    made(tmp_path)
    before = log_of(tmp_path)
    with Database(tmp_path, accept_loss=True) as db:
        assert 24 == bag(db, "R").total()
    assert before == log_of(tmp_path)
    assert not list(tmp_path.glob("*.damaged*"))


def run(*arguments: Any) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, " ".join(result.output.split())


def test_the_command_says_what_is_lost_before_it_accepts_it(tmp_path: Path) -> None:
    ends = made(tmp_path)
    assert (0, f"{tmp_path}: nothing is lost") == run("recover", tmp_path)
    cut(log_of(tmp_path), ends[4])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    code, said = run("recover", tmp_path)
    assert code == 2
    assert "records 7 to 27 were committed and cannot be read" in said
    assert "--accept-loss" in said
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for command in ("show", "verify", "explain"):
        assert 2 == run(command, tmp_path)[0]
    code, said = run("recover", tmp_path, "--accept-loss")
    assert code == 0
    assert "records 7 to 27 were committed and cannot be read" in said
    assert 0 == run("verify", tmp_path)[0]
    with Database(tmp_path) as db:
        assert 4 == bag(db, "R").total()


def test_verify_says_how_far_the_log_reaches_and_what_was_cut_off(tmp_path: Path) -> None:
    made(tmp_path)
    assert f"{tmp_path}: every file is as it was written; it was closed after record 27" in list(
        verify_directory(tmp_path)
    )
    db = Database(tmp_path)
    db.insert("R", [(1, "y")])
    crash(db)
    with log_of(tmp_path).open("ab") as file:
        file.write(b"\0" * 100)
    (line, *_) = verify_directory(tmp_path)
    assert line.endswith(
        "its log ends with record 29; 100 bytes after that are not a committed record and were cut off"
    )


@pytest.mark.parametrize("kind", ["closed", "crashed"])
def test_a_directory_of_the_version_before_opens_and_is_protected_from_then_on(tmp_path: Path, kind: str) -> None:
    """Written by the commit before the file of the end came."""
    shutil.copytree(FIXTURES / kind, tmp_path / "db")
    for _ in range(2):
        with Database(tmp_path / "db") as db:
            assert (("orders", "customers"), ("spent", "by_city")) == (db.tables, db.views)
            assert (79, 3, 2) == (len(bag(db, "orders")), len(bag(db, "customers")), db.position("shop"))
            assert [("Izmir", 60), ("London", 19)] == sorted(db.view("by_city"))
            for name in db.views:
                db.view(name).verify()
    cut(log_of(tmp_path / "db"), log_of(tmp_path / "db").stat().st_size // 2)
    with pytest.raises(DamagedError, match="were committed and cannot be read"):
        Database(tmp_path / "db")
