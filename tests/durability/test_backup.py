"""Backups: written while others write, opened as they are, restored by copying."""

from __future__ import annotations

import threading
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ivme.cli import app
from ivme.database import Database
from ivme.errors import DamagedError, PlanError, StorageError
from ivme.store.backup import restore_backup

_VIEW = "SELECT city, SUM(price) AS total, COUNT(*) AS n FROM sales GROUP BY city"


def _fill(db: Database) -> None:
    columns = {"city": "string", "price": "decimal(10, 2)", "day": "date"}
    db.create_table("sales", columns)
    db.create_table("empty", {"k": "int"}, primary_key="k")
    db.create_view("totals", _VIEW)
    db.create_view("top", "SELECT city, total FROM totals ORDER BY total DESC LIMIT 1", epsilon=0.5)
    rows = [("Zürich", Decimal("1.50"), date(2024, 5, 1)), (None, Decimal("2.25"), None)]
    db.insert("sales", rows * 3)
    with db.batch("events", 7) as batch:
        batch.insert("sales", rows[:1])


def _check(path: Path) -> None:
    with Database(path) as db:
        assert (("sales", "empty"), ("totals", "top")) == (db.tables, db.views)
        assert {("Zürich", Decimal("6.00"), 4), (None, Decimal("6.75"), 3)} == set(db.view("totals"))
        assert [(None, Decimal("6.75"))] == list(db.view("top"))
        assert 7 == db.position("events")
        assert ("k",) == db.relation("empty").primary_key
        for name in db.views:
            db.view(name).verify()
        db.insert("sales", [("Rom", Decimal("100.00"), None)])
        assert [("Rom", Decimal("100.00"))] == list(db.view("top"))


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_backup_is_a_database_of_its_own(tmp_path: Path, in_memory: bool) -> None:
    with Database() if in_memory else Database(tmp_path / "shop") as db:
        _fill(db)
        (tmp_path / "copy").mkdir()
        db.backup(tmp_path / "copy")
        db.truncate("sales")
    _check(tmp_path / "copy")
    assert {"copy"} | (set() if in_memory else {"shop"}) == {path.name for path in tmp_path.iterdir()}


def test_a_backup_beside_a_writer_has_whole_batches(tmp_path: Path) -> None:
    """Each batch inserts two rows of one number: a copy that has half of one would have an odd count."""
    with Database(tmp_path / "shop") as db:
        db.create_table("R", {"a": "int"})
        db.create_view("odd", "SELECT a, COUNT(*) AS n FROM R GROUP BY a HAVING COUNT(*) <> 2")
        stop = threading.Event()

        def write() -> None:
            number = 0
            while not stop.is_set():
                db.insert("R", [(number,), (number,)])
                number += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for copy in range(4):
                db.backup(tmp_path / f"copy{copy}")
        finally:
            stop.set()
            writer.join()
    for copy in range(4):
        with Database(tmp_path / f"copy{copy}") as found:
            assert [] == list(found.view("odd"))
            assert 0 == len(found.table("R")) % 2
            found.view("odd").verify()


def test_a_place_that_is_taken_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "note").write_text("mine")
    with Database() as db:
        with pytest.raises(StorageError, match="exists already"):
            db.backup(tmp_path / "there")
        (tmp_path / "file").write_text("mine")
        with pytest.raises(StorageError, match="cannot be"):
            db.backup(tmp_path / "file" / "below")
    assert ["note"] == [path.name for path in (tmp_path / "there").iterdir()]
    with pytest.raises(PlanError, match="closed"):
        db.backup(tmp_path / "new")
    assert {"there", "file"} == {path.name for path in tmp_path.iterdir()}


def test_a_backup_is_restored_from_the_command_line(tmp_path: Path) -> None:
    with Database(tmp_path / "shop") as db:
        _fill(db)
        db.backup(tmp_path / "copy")
    told = CliRunner().invoke(app, ["restore", str(tmp_path / "copy"), str(tmp_path / "again")])
    assert (0, True) == (told.exit_code, "holds the database of" in told.output)
    _check(tmp_path / "again")
    _check(tmp_path / "copy")
    told = CliRunner().invoke(app, ["restore", str(tmp_path / "copy"), str(tmp_path / "again")])
    assert told.exit_code != 0
    assert "exists already" in told.output


def test_the_log_of_a_closed_directory_is_restored_too(tmp_path: Path) -> None:
    with Database(tmp_path / "shop") as db:
        _fill(db)
        db.checkpoint()
        db.insert("empty", [(1,)])
    restore_backup(tmp_path / "shop", tmp_path / "again")
    with Database(tmp_path / "again") as found:
        assert [(1,)] == list(found.table("empty"))


def test_a_damaged_or_open_backup_is_not_restored(tmp_path: Path) -> None:
    with Database() as db:
        _fill(db)
        db.backup(tmp_path / "copy")
    with Database(tmp_path / "copy"), pytest.raises(StorageError, match="is already open in process"):
        restore_backup(tmp_path / "copy", tmp_path / "again")
    (table,) = (tmp_path / "copy").glob("table-*.arrow")
    data = bytearray(table.read_bytes())
    data[len(data) // 2] ^= 1
    table.write_bytes(data)
    with pytest.raises(DamagedError, match="nothing was restored"):
        restore_backup(tmp_path / "copy", tmp_path / "again")
    with pytest.raises(StorageError, match="there is no ivme database"):
        restore_backup(tmp_path, tmp_path / "again")
    assert ["copy"] == [path.name for path in tmp_path.iterdir()]
