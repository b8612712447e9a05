"""What an attack on the single-row path of a few rows found: each of these lost, changed or refused something."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from ivme.errors import PlanError, UnknownNameError
from tests.databases import make_database

LARGE = 2**62


def test_rows_of_a_view_that_fit_together_are_passed_on_where_they_do_not_one_by_one() -> None:
    db = make_database("native")
    db.create_table("R", {"k": "int", "x": "int"})
    db.create_view("sums", "SELECT k, SUM(x) AS s FROM R GROUP BY k")
    total = db.create_view("total", "SELECT SUM(s) AS s FROM sums")
    db.insert("R", [(1, LARGE), (2, LARGE - 1)])
    with db.batch() as batch:
        batch.insert("R", [(3, LARGE)])
        batch.insert("R", [(1, -LARGE)])
    assert total.scalar() == 2 * LARGE - 1
    db.apply("R", [(4, LARGE), (3, -LARGE)], [1, 1])
    assert total.scalar() == 2 * LARGE - 1
    total.verify()


def test_an_error_on_the_way_does_not_end_a_batch_without_some_of_its_rows() -> None:
    db = make_database("native")
    for name in "AB":
        db.create_table(name, {"a": "int"})
    batch = db.batch().begin()
    batch.insert("A", [(1,)])
    batch.insert("B", [(1,)])
    db.drop_table("A")
    with pytest.raises(UnknownNameError, match="no table A"):
        batch.insert("B", [(2,)] * 20)
    with pytest.raises(UnknownNameError, match="no table A"):
        batch.__exit__(None, None, None)
    assert db.contents("B")[0].num_rows == 0


@pytest.mark.parametrize("later", [[(b"y",)], [{"x": b"y"}]])
def test_a_row_is_what_it_was_when_it_was_given(later: list[Any]) -> None:
    db = make_database("native")
    db.create_table("R", {"x": "binary"})
    given = bytearray(b"first")
    with db.batch() as batch:
        batch.insert("R", [(given,)])
        given[:] = b"other"
        batch.insert("R", later)
    assert sorted(db.contents("R")[0].column("x").to_pylist()) == [b"first", b"y"]


def held(db: Any) -> tuple[int, int]:
    """The kernel's bytes, and how many strings there are."""
    return db._runtime.backend.memory_bytes(), len(db._runtime.catalog.layout("R").domains[0].dictionary)


def test_strings_of_a_batch_that_is_given_up_are_not_kept() -> None:
    db = make_database("native")
    db.create_table("R", {"s": "string"})
    db.insert("R", [("kept",)])
    before = held(db)
    for number in range(20):
        batch = db.batch().begin()
        batch.insert("R", [(f"given up {number}",)])
        batch.__exit__(KeyError, KeyError(), None)
    assert held(db) == before


def test_a_batch_is_over_when_those_who_watch_are_told() -> None:
    db = make_database("native")
    db.create_table("R", {"a": "int"})
    batch = db.batch().begin()
    refused = []

    def told(*_: object) -> None:
        try:
            batch.insert("R", [(2,)])
        except PlanError as error:
            refused.append(str(error))

    db._runtime.observers = (told,)
    with batch:
        batch.insert("R", [(1,)])
    assert len(refused) == 1
    assert "the batch is over" in refused[0]


def test_a_few_rows_with_many_partners_go_together() -> None:
    db = make_database("native")
    for name in "RS":
        db.create_table(name, {"a": "int", "b": "int"})
    view = db.create_view("v", "SELECT R.b, S.b AS c FROM R JOIN S ON R.a = S.a", strategy="classical")
    db.insert("S", [(1, b) for b in range(20_000)])
    db.insert("R", [(1, b) for b in range(10)])
    assert view.count() == 200_000
    db.delete("R", [(1, b) for b in range(10)])
    assert view.count() == 0


def test_quotients_of_decimals_are_rounded_the_same_one_by_one_and_together() -> None:
    db = make_database("native")
    db.create_table("R", {"k": "int", "i": "int", "w": "decimal(30, 3)"})
    view = db.create_view("v", "SELECT SUM(i / w) AS s FROM R")
    rows = [(k, -1, Decimal("1.125")) for k in range(17)]
    for row in rows:
        db.insert("R", [row])
    one_by_one = view.scalar()
    db.insert("R", [(99, 0, Decimal(1))])
    db.delete("R", rows)
    assert view.scalar() == 0
    db.insert("R", rows)
    assert view.scalar() == one_by_one
    view.verify()
