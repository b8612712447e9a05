"""Upserts, updates, deletes by a condition, replaced contents, and columns that come and go."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import DataError, ExpressionError, IvmeError, PlanError, SchemaError, UnknownNameError
from tests.durability.directories import bag

ITEMS = {"k": "int", "n": "int", "s": "string", "x": "float"}


@pytest.fixture
def items(db: Database) -> Database:
    db.create_table("R", ITEMS, primary_key="k")
    db.create_view("v", "SELECT s, COUNT(*) AS c, SUM(n) AS t FROM R GROUP BY s")
    db.insert("R", [(1, 10, "a", 1.0), (2, 20, "b", None), (3, 30, "a", 2.5)])
    return db


def rows(db: Database, table: str = "R") -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for row, count in bag(db, table).items():
        found += [row] * count
    return sorted(found, key=repr)


def test_an_upsert_takes_the_place_of_the_rows_with_its_keys(items: Database) -> None:
    changes = items.view("v").changes()
    items.upsert("R", [(1, 11, "c", 0.0), (4, 40, "a", 1.0), (4, 41, "b", 1.0)])
    assert [(1, 11, "c", 0.0), (2, 20, "b", None), (3, 30, "a", 2.5), (4, 41, "b", 1.0)] == rows(items)
    assert [("a", 1, 30), ("b", 2, 61), ("c", 1, 11)] == sorted(items.view("v"))
    assert {("a", 2, 40): -1, ("a", 1, 30): 1, ("b", 1, 20): -1, ("b", 2, 61): 1, ("c", 1, 11): 1} == next(
        iter(changes)
    )
    items.view("v").verify()


def test_an_upsert_of_what_is_there_changes_nothing(items: Database) -> None:
    changes = items.view("v").changes()
    items.upsert("R", [(1, 10, "a", 1.0)])
    assert [] == list(changes)


def test_an_upsert_by_several_columns(db: Database) -> None:
    db.create_table("R", {"a": "string", "n": "int", "b": "date"}, primary_key=["b", "a"])
    day, later = datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)
    db.insert("R", [("x", 1, day), ("y", 2, day)])
    db.upsert("R", [("x", 3, day), ("x", 4, later), ("x", 5, later)])
    assert [("x", 3, day), ("x", 5, later), ("y", 2, day)] == rows(db)


def test_an_upsert_without_a_key_says_how_to_declare_one(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    with pytest.raises(SchemaError, match="primary_key='a'"):
        db.upsert("R", [(1, 2)])


def test_an_update_computes_from_the_old_row(items: Database) -> None:
    items.update("R", set={"n": "n + :d", "S": ":s", "x": 7}, where="k = :k OR x > 2", d=5, s="z", k=2)
    assert [(1, 10, "a", 1.0), (2, 25, "z", 7.0), (3, 35, "z", 7.0)] == rows(items)
    items.update("R", set={"n": "n * 2", "x": None})
    assert [(1, 20, "a", None), (2, 50, "z", None), (3, 70, "z", None)] == rows(items)
    items.view("v").verify()


def test_an_update_may_move_keys_and_not_make_two_of_one(items: Database) -> None:
    items.update("R", set={"k": "k + 1"})
    assert [(2, 10, "a", 1.0), (3, 20, "b", None), (4, 30, "a", 2.5)] == rows(items)
    before = rows(items)
    with pytest.raises(DataError, match="two rows of table R"):
        items.update("R", set={"k": "7"})
    with pytest.raises(DataError, match="cannot be NULL"):
        items.update("R", set={"k": None}, where="k = 2")
    assert before == rows(items)


def test_an_update_of_a_bag_keeps_multiplicities(db: Database) -> None:
    db.create_table("B", {"a": "int", "b": "int"})
    db.insert("B", [(1, 2), (1, 2), (2, 3)])
    db.update("B", set={"b": "b + 1"}, where="a = 1")
    assert [(1, 3), (1, 3), (2, 3)] == rows(db, "B")
    db.update("B", set={"a": 2}, where="a = 1")
    assert [(2, 3)] * 3 == rows(db, "B")


def test_numbers_become_the_columns_type_and_nothing_else_does(db: Database) -> None:
    db.create_table("R", {"a": "int", "d": "decimal(6, 2)", "f": "float", "t": "timestamp"})
    db.insert("R", [(1, Decimal("1.50"), 0.5, None)])
    db.update("R", set={"d": "d * 1.25", "f": "a", "t": datetime.datetime(2024, 1, 2)})
    assert [(1, Decimal("1.88"), 1.0, datetime.datetime(2024, 1, 2))] == rows(db)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"a": 1.5}, "whole number"),
        ({"a": True}, "bool"),
        ({"a": "t"}, "CAST"),
        ({"d": Decimal("99999")}, "decimal"),
        ({"d": "99999"}, "does not fit"),
        ({"a": "-9223372036854775807 - 1"}, "out of the range"),
        ({"f": "0.0 / 0"}, "division by zero"),
    ]
    for values, message in refused:
        with pytest.raises(IvmeError, match=message):
            db.update("R", set=values)


def test_rows_go_by_a_condition(items: Database) -> None:
    items.delete_where("R", "n > 15 AND s <> :s", s="b")
    assert [(1, 10, "a", 1.0), (2, 20, "b", None)] == rows(items)
    items.delete_where("R", "x = 1")
    items.delete_where("R", "NULL")
    items.delete_where("R", "k = 17")
    assert [(2, 20, "b", None)] == rows(items)
    items.delete_where("R", "k = 2 AND n = 21")
    items.delete_where("R", "true")
    assert [] == rows(items)
    items.view("v").verify()


def test_a_new_content_is_told_as_a_difference(items: Database) -> None:
    changes = items.view("v").changes()
    items.replace("R", [(3, 30, "a", 2.5), (1, 10, "a", 1.0), (5, 50, "e", None)])
    assert [("b", -1), ("e", 1)] == sorted((row[0], weight) for row, weight in next(iter(changes)).items())
    items.truncate("R")
    assert [] == rows(items) == list(items.view("v"))


def test_changes_in_a_batch_see_the_ones_before_them(items: Database) -> None:
    with items.batch() as batch:
        batch.insert("R", [(9, 9, "n", 1.0)])
        batch.update("R", set={"n": "n * 2"}, where="k >= 3")
        batch.upsert("R", [(9, 100, "m", 2.0), (1, 1, "m", None)])
        batch.delete_where("R", "k = 3")
        batch.insert("R", [(3, 3, "i", None)])
    assert [(1, 1, "m", None), (2, 20, "b", None), (3, 3, "i", None), (9, 100, "m", 2.0)] == rows(items)
    with items.batch() as batch:
        batch.truncate("R")
        batch.insert("R", [(1, 2, "t", None)])
        batch.replace("R", [(8, 8, "r", None)])
    assert [(8, 8, "r", None)] == rows(items)
    items.view("v").verify()


def test_a_failing_batch_changes_nothing(items: Database) -> None:
    before = rows(items)

    def change() -> None:
        with items.batch() as batch:
            batch.truncate("R")
            batch.insert("R", [(1, 0, "t", None)])
            batch.update("R", set={"x": "1 / n"})

    with pytest.raises(ExpressionError, match="division by zero"):
        change()
    assert before == rows(items)
    items.view("v").verify()


def test_tables_that_do_not_change_say_so(db: Database) -> None:
    db.create_table("A", {"a": "int"}, append_only=True)
    db.create_table("S", {"a": "int"}, static=True)
    for table in ("A", "S"):
        db.insert(table, [(1,)])
    for change in (db.truncate, lambda table: db.update(table, set={"a": 2})):
        with pytest.raises(DataError, match="append-only"):
            change("A")
        with pytest.raises(DataError, match="static"):
            change("S")
    db.replace("A", [(1,), (2,)])
    assert [(1,), (2,)] == rows(db, "A")


BAD: list[tuple[Callable[[Database], Any], type[Exception], str]] = [
    (lambda db: db.update("R", set={"s": "hello"}), UnknownNameError, "set= is an SQL expression.*x='hello'"),
    (lambda db: db.update("R", set={}), SchemaError, "at least one column"),
    (lambda db: db.update("R", set={"q": 1}), UnknownNameError, "has no column q"),
    (lambda db: db.update("R", set={"n": 1, "N": 2}), SchemaError, "twice"),
    (lambda db: db.update("R", set={"n": 1}, where="n = 1", w=1), UnknownNameError, "no parameter :w"),
    (lambda db: db.update("R", set={"n": "n, k"}), IvmeError, "one expression"),
    (lambda db: db.update("R", set={"n": "COUNT(*)"}), IvmeError, "is not allowed here"),
    (lambda db: db.delete_where("R", "n"), IvmeError, "not a condition"),
    (lambda db: db.delete_where("R", ""), IvmeError, "."),
    (lambda db: db.delete_where("R", None), SchemaError, "truncate"),  # type: ignore[arg-type]
    (lambda db: db.delete_where("R", "n = 1; DROP TABLE R"), IvmeError, "cannot begin with 'DROP'"),
    (lambda db: db.delete_where("R", "n = 1 GROUP BY n"), IvmeError, "GROUP BY"),
    (lambda db: db.delete_where("R", "n = 1 UNION SELECT * FROM R"), IvmeError, "one expression"),
    (lambda db: db.delete_where("R", "n = :q"), UnknownNameError, "has no value"),
    (lambda db: db.delete_where("R", "n = :q", q=[1]), SchemaError, "array or a struct"),
    (lambda db: db.delete_where("R", "n IN (SELECT 1)"), IvmeError, "subquery"),
    (lambda db: db.delete_where("v", "c = 1"), UnknownNameError, "is a view"),
    (lambda db: db.upsert("nowhere", []), UnknownNameError, "no table nowhere"),
    (lambda db: db.upsert("R", [(None, 1, "a", None)]), DataError, "cannot be NULL"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_what_makes_no_sense_is_refused(items: Database, number: int) -> None:
    change, error, message = BAD[number]
    before = rows(items)
    with pytest.raises(error, match=message):
        change(items)
    assert before == rows(items)


def test_columns_come_and_go(items: Database) -> None:
    items.add_column("R", "d", "decimal(5, 2)")
    items.add_column("R", "e", "string", default="é")
    items.insert("R", [(4, 1, "q", None, None, "z")])
    items.drop_column("R", "x")
    items.insert("R", [(5, 1, "q", Decimal("1.00"), "z")])
    items.upsert("R", [(1, 7, "q", None, "u")])
    items.delete("R", [(2, 20, "b", None, "é")])
    assert [(1, 7, "q", None, "u"), (3, 30, "a", None, "é"), (4, 1, "q", None, "z"), (5, 1, "q", 1, "z")] == rows(items)
    items.view("v").verify()
    assert [("a", 1, 30), ("q", 3, 9)] == sorted(items.view("v"))
    assert ("k", "n", "s", "d", "e") == items.relation("R").column_names


def test_a_column_gets_another_name_with_its_keys(items: Database) -> None:
    items.rename_column("r", "X", "weight")
    items.rename_column("R", "k", "id")
    items.rename_column("R", "id", "ID")
    assert ("ID", "n", "s", "weight") == items.relation("R").column_names
    assert ("ID",) == items.relation("R").primary_key
    items.upsert("R", [{"ID": 1, "n": 7, "s": "q", "weight": 0.5}])
    assert (1, 7, "q", 0.5) in rows(items)
    assert 0.5 == items.sql("SELECT weight FROM R WHERE id = 1").scalar()
    items.view("v").verify()


def test_a_column_that_something_needs_keeps_its_name(items: Database) -> None:
    items.create_table("T", {"r": "int"}, references={"r": "R(k)"})
    with pytest.raises(PlanError, match="rename column n of table R: view v reads it"):
        items.rename_column("R", "n", "m")
    with pytest.raises(PlanError, match="table T references it"):
        items.rename_column("R", "k", "id")
    with pytest.raises(SchemaError, match="no column 'q'"):
        items.rename_column("R", "q", "p")
    with pytest.raises(SchemaError, match="a column s already"):
        items.rename_column("R", "x", "S")
    with pytest.raises(SchemaError):
        items.rename_column("R", "x", "")
    items.rename_column("T", "r", "row")
    assert ("row",) == items.relation("T").references[0].columns
    assert ("k", "n", "s", "x") == items.relation("R").column_names


def test_rows_that_a_dropped_column_told_apart_are_equal_then(db: Database) -> None:
    db.create_table("B", {"a": "int", "b": "int"})
    db.insert("B", [(1, 1), (1, 2), (2, 1)])
    db.delete("B", [(2, 1)])
    db.drop_column("B", "b")
    assert [(1,), (1,)] == rows(db, "B")
    db.delete("B", [(1,)])
    assert [(1,)] == rows(db, "B")


def test_a_column_that_a_view_reads_cannot_go(items: Database) -> None:
    with pytest.raises(PlanError, match="column n of table R: view v reads it"):
        items.drop_column("R", "n")
    with pytest.raises(SchemaError, match="primary key"):
        items.drop_column("R", "k")
    with pytest.raises(SchemaError, match="no column 'q'"):
        items.drop_column("R", "q")
    with pytest.raises(SchemaError, match="already"):
        items.add_column("R", "S", "int")
    with pytest.raises(DataError, match="default of column y"):
        items.add_column("R", "y", "int", "text")


@pytest.mark.parametrize(
    "text", ["SELECT * FROM R", "Q(K) = R(K, N, S, X)", "SELECT R.k, y FROM R JOIN T ON R.n = T.n"]
)
def test_no_text_of_a_view_changes_its_meaning(items: Database, text: str) -> None:
    items.create_table("T", {"n": "int", "y": "int"})
    items.create_view("w", text)
    with pytest.raises(PlanError, match="view w would mean something else"):
        items.add_column("R", "y", "int")
    items.drop_view("w")
    items.add_column("R", "y", "int", 3)
    assert 3 == rows(items)[0][-1]


def test_a_batch_that_is_open_while_columns_change_is_refused(items: Database) -> None:
    before = rows(items)

    def change() -> None:
        with items.batch() as batch:
            batch.insert("R", [(number, 1, "a", None) for number in range(10, 50)])
            items.add_column("R", "y", "int")

    with pytest.raises(PlanError, match="other columns while the batch was open"):
        change()
    assert [(*row, None) for row in before] == rows(items)


def test_changed_columns_are_there_again_after_a_snapshot_and_a_log(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as db:
        db.create_table("R", ITEMS, primary_key="k")
        db.create_view("v", "SELECT s, SUM(n) AS t FROM R GROUP BY s")
        db.insert("R", [(number, number, "a", None) for number in range(100)])
        db.checkpoint()
        db.insert("R", [(number, number, "b", None) for number in range(100, 200)])
        db.insert("R", [(200, 1, "c", 1.0)])
        db.add_column("R", "at", "timestamp", datetime.datetime(2024, 1, 2, 3))
        db.update("R", set={"n": "n + 1"}, where="k < 150")
        db.drop_column("R", "x")
        db.rename_column("R", "at", "moment")
        expected = rows(db), sorted(db.view("v"))
    for _ in range(2):
        with Database(tmp_path / "db") as again:
            assert expected == (rows(again), sorted(again.view("v")))
            again.view("v").verify()
            again.checkpoint()
