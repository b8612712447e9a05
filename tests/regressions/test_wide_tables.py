"""Tables have as many columns as they have; views read those that they need."""

from __future__ import annotations

from pathlib import Path

import pytest

from ivme.database import Database
from ivme.errors import PlanError
from tests.databases import BACKENDS, make_database

COLUMNS = {f"c{i}": "int" for i in range(120)}
VIEW = "SELECT c7, COUNT(*) AS n, SUM(c119) AS s FROM wide GROUP BY c7"


def row(number: int) -> tuple[int, ...]:
    return tuple(number if i in (0, 119) else i for i in range(120))


def change_and_check(db: Database) -> None:
    view, followed = db.view("v"), db.view("v").changes()
    db.insert("wide", [row(1), row(1), row(2)])
    db.delete("wide", [row(1)])
    db.insert("wide", [row(number) for number in range(10, 2000)])
    with db.batch() as batch:
        batch.insert("wide", [row(number) for number in range(3, 100)])
        batch.delete("wide", [row(number) for number in range(3, 100)])
    db.delete("wide", [row(number) for number in range(10, 2000)], strict=False)
    assert [(7, 2, 3)] == list(view)
    assert 2 == len(db.contents("wide")[1])
    assert followed
    view.verify()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_table_may_have_more_than_64_columns(backend: str) -> None:
    db = make_database(backend)
    db.create_table("wide", COLUMNS)
    db.create_view("v", VIEW)
    change_and_check(db)


def test_a_wide_table_is_there_again_after_a_restart(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as db:
        db.create_table("wide", COLUMNS, primary_key=None)
        db.create_view("v", VIEW)
        change_and_check(db)
    with Database(tmp_path / "db") as db:
        assert [(7, 2, 3)] == list(db.view("v"))
        db.delete("wide", [row(2)])
        assert [(7, 1, 1)] == list(db.view("v"))


def test_a_wide_table_may_have_a_key() -> None:
    db = Database()
    db.create_table("wide", COLUMNS, primary_key="c0")
    view = db.create_view("v", VIEW)
    db.insert("wide", [row(1), row(2)])
    db.delete("wide", [row(1)])
    assert [(7, 1, 2)] == list(view)


def test_a_view_that_reads_too_many_columns_is_refused() -> None:
    db = Database()
    db.create_table("wide", COLUMNS)
    with pytest.raises(PlanError, match=r"view v reads 120 columns of wide; a view can read 64"):
        db.create_view("v", "SELECT * FROM wide")
    assert () == db.views
