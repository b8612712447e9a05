"""A database with a memory limit refuses what would go beyond it, and goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ivme
from ivme.database import Database
from ivme.errors import MemoryLimitError, SchemaError
from tests.databases import BACKENDS, make_database, state_of

JOINED = "SELECT R.a, S.c, COUNT(*) AS n FROM R JOIN S ON R.b = S.b GROUP BY R.a, S.c"
MANY = [(i, i) for i in range(20_000)]


@pytest.fixture(params=BACKENDS)
def db(request: Any) -> Database:
    made = make_database(request.param)
    made.create_table("R", {"a": "int", "b": "int"})
    made.create_table("S", {"b": "int", "c": "int"})
    made.create_view("v", "SELECT a, COUNT(*) AS n FROM R GROUP BY a")
    made.insert("R", MANY[:1000])
    return made


def limit(db: Database, more: int) -> int:
    """Lets a database take so many bytes more than it does."""
    catalog = db._runtime.catalog
    catalog.memory_limit = found = catalog.memory()["memory_bytes"] + more
    catalog.forget_inputs()  # a limit is there from the start, else, and rows take their paths by it
    return found


def insert_until_refused(db: Database, batches: list[list[Any]]) -> None:
    def insert() -> None:
        for batch in batches:
            db.insert("R", batch)

    with pytest.raises(MemoryLimitError):
        insert()


def test_a_batch_beyond_the_limit_leaves_no_trace(db: Database) -> None:
    most = limit(db, 100_000)
    before, rows = state_of(db), sorted(db.view("v"))
    with pytest.raises(MemoryLimitError, match=f"memory_limit allows, {most:,} bytes"):
        db.insert("R", [(i + 5000, i) for i, _ in MANY])
    assert state_of(db) == before
    assert sorted(db.view("v")) == rows
    assert db._runtime.catalog.memory()["memory_bytes"] <= most
    db.view("v").verify()
    db.insert("R", [(1, 1)])


def test_single_rows_are_refused_once_the_limit_is_reached(db: Database) -> None:
    most = limit(db, 150_000)
    insert_until_refused(db, [[(10_000 + i, i)] for i in range(10_000)])
    assert db._runtime.catalog.memory()["memory_bytes"] <= most
    db.view("v").verify()


def test_a_view_beyond_the_limit_leaves_no_trace(db: Database) -> None:
    db.insert("R", [(i, 1) for i in range(300)])
    db.insert("S", [(1, i) for i in range(300)])
    limit(db, 200_000)
    before = state_of(db)
    with pytest.raises(MemoryLimitError):
        db.create_view("w", JOINED)
    assert state_of(db) == before
    db.view("v").verify()


def test_after_a_delete_there_is_room_again(db: Database) -> None:
    db.delete("R", MANY[:1])
    limit(db, 1_000_000)
    insert_until_refused(db, [MANY[start : start + 500] for start in range(1000, 20_000, 500)])
    held = [a for a, _ in db.view("v")]
    kept = len(held) // 4
    db.delete("R", [(a, a) for a in held[kept:]])
    db.insert("R", [(a + 50_000, a) for a in held[: kept // 2]])
    assert db.view("v").count() == kept + kept // 2
    db.view("v").verify()


def test_deletes_are_never_refused(db: Database) -> None:
    limit(db, 0)
    db.delete("R", MANY[:999])
    assert list(db.view("v")) == [(999, 1)]
    db.drop_view("v")


@pytest.mark.parametrize("backend", BACKENDS)
def test_values_of_refused_rows_are_forgotten(backend: str) -> None:
    db = make_database(backend)
    db.create_table("T", {"name": "string"})
    db.create_view("v", "SELECT name, COUNT(*) AS n FROM T GROUP BY name")
    db.insert("T", [("a",)])
    limit(db, 50_000)
    for _ in range(3):
        with pytest.raises(MemoryLimitError):
            db.insert("T", [(f"{i:0100}",) for i in range(10_000)])
    assert sum(map(len, db._runtime.domains.dictionaries().values())) == 1
    db.insert("T", [("b",)])
    assert sorted(db.view("v")) == [("a", 1), ("b", 1)]


def test_memos_of_expressions_and_kept_rows_are_counted() -> None:
    db = ivme.Database()
    db.create_table("T", {"name": "string"})
    view = db.create_view("v", "SELECT UPPER(name) AS name, COUNT(*) AS n FROM T GROUP BY UPPER(name)")
    db.insert("T", [(f"a{i}",) for i in range(1000)])
    before = db._runtime.catalog.memory()
    assert before["memo_bytes"] > 8000
    with view.changes():
        assert db._runtime.catalog.memory()["memory_bytes"] > before["memory_bytes"] + 16_000


def test_a_directory_beyond_the_limit_is_not_opened(tmp_path: Path) -> None:
    with ivme.Database(tmp_path) as db:
        db.create_table("R", {"a": "int", "b": "int"})
        db.create_view("v", "SELECT a, COUNT(*) AS n FROM R GROUP BY a")
        db.insert("R", MANY)
    with pytest.raises(MemoryLimitError, match="cannot be opened: this would take more memory"):
        ivme.Database(tmp_path, memory_limit="100kB")
    with ivme.Database(tmp_path, memory_limit="100MB") as db:
        assert db.view("v").count() == len(MANY)


@pytest.mark.parametrize("size", ["", "2XB", 0, -1, 1.5, True, "GB"])
def test_a_limit_that_is_no_size_is_refused(size: Any) -> None:
    with pytest.raises(SchemaError, match="a number of bytes"):
        ivme.Database(memory_limit=size)
