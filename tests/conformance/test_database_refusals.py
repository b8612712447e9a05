"""Bad input of every kind: the error names it, nothing is changed. And ring mode. On both backends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.errors import DataError, IvmeError, PlanError, SchemaError, UnknownNameError
from tests.databases import in_one_batch, rows_of, table_rows

# Overflow and bad input


def test_sums_that_overflow_are_refused_and_nothing_is_changed(db: Database) -> None:
    db.create_table("R", {"g": "int", "x": "int"})
    view = db.create_view("v", "SELECT g, SUM(x) AS s FROM R GROUP BY g")
    db.insert("R", [(1, 2**62), (2, 1)])
    with pytest.raises(DataError, match=r"does not fit.*nothing was changed"):
        db.insert("R", [(2, 5), (1, 2**62)])
    assert rows_of(view) == [(1, 2**62), (2, 1)]
    assert table_rows(db, "R") == {(1, 2**62): 1, (2, 1): 1}
    db.insert("R", [(1, -(2**62)), (1, 2**62 - 1)])
    assert rows_of(view) == [(1, 2**62 - 1), (2, 1)]


def test_multiplicities_that_overflow_are_refused_and_nothing_is_changed(db: Database) -> None:
    db.create_table("R", {"a": "int"})
    db.create_table("S", {"a": "int"})
    product = db.create_view("v", "SELECT COUNT(*) AS n FROM R JOIN S ON R.a = S.a")
    db.apply("R", [(1,)], 2**62)
    with pytest.raises(DataError, match="table R does not fit 64 bits"):
        db.apply("R", [(1,)], 2**62)
    with pytest.raises(DataError, match="does not fit"):
        db.apply("S", [(1,)], 2)
    assert product.scalar() == 0
    db.apply("S", [(1,)], 1)
    assert product.scalar() == 2**62


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([(1, 2.0, "x", 3)], "4 values"),
        ([(1, 2.0)], "2 values"),
        ([("one", 2.0, "x")], "column a"),
        ([(1, float("nan"), "x")], "NaN"),
        ([(2**63, 2.0, "x")], "out of the range"),
        ([(-(2**63), 2.0, "x")], "out of the range"),
        ([(True, 2.0, "x")], "bool"),
        ([(1, 2.0, "x"), (1, 2.0, b"x")], r"column c, rows\[1\]"),
        ([(1, 2.0, "\ud800")], "surrogate"),
        ([{"a": 1, "b": 2.0}], "column c is missing"),
        ([{"a": 1, "b": 2.0, "c": "x", "d": 0}], "no column 'd'"),
        ((1, 2.0, "x"), "one row"),
        ("rows", "no rows"),
        (17, "no rows"),
        (pd.DataFrame({"a": [1], "b": [2.0]}), "column c is missing"),
        (pa.table({"a": ["1"], "b": [2.0], "c": ["x"]}), "column a"),
        (np.zeros((2, 2)), "shape"),
    ],
)
def test_bad_rows_are_named_and_change_nothing(db: Database, rows: Any, named: str) -> None:
    db.create_table("R", {"a": "int", "b": "float", "c": "string"})
    view = db.create_view("v", "SELECT a FROM R")
    with pytest.raises(DataError, match=named):
        in_one_batch(db, ("insert", "R", [(1, 1.0, "fine")]), ("insert", "R", rows))
    assert list(view) == []


@pytest.mark.parametrize("weights", [[1], [1, 2, 3], [1.5, 1], [True, False], [None, 1], [2**63, 1], [2**70, 0], 2**70])
def test_bad_weights_are_refused(db: Database, weights: Any) -> None:
    db.create_table("R", {"a": "int"})
    with pytest.raises(DataError, match="table R"):
        db.apply("R", [(1,), (2,)], weights)
    with pytest.raises(DataError):
        db.apply("R", [(1,), (2,)], np.array([2**63, 1], dtype=np.uint64))
    assert table_rows(db, "R") == {}


def test_weights_come_in_many_forms(db: Database) -> None:
    db.create_table("R", {"a": "int"})
    for weights in ([1, 2], (1, 2), np.array([1, 2], dtype=np.uint8), pa.array([1, 2]), pd.Series([1, 2])):
        db.apply("R", [(1,), (2,)], weights)
    db.apply("R", [], [])
    assert table_rows(db, "R") == {(1,): 5, (2,): 10}


def test_unknown_names_are_refused(db: Database) -> None:
    db.create_table("R", {"a": "int"})
    db.create_view("v", "SELECT a FROM R")
    for call in (
        lambda: db.insert("nobody", [(1,)]),
        lambda: db.insert(None, [(1,)]),  # type: ignore[arg-type]
        lambda: db.insert("V", [(1,)]),
        lambda: db.view("nobody"),
        lambda: db.drop_view("R"),
        lambda: db.drop_table("v"),
        lambda: db.create_view("w", "SELECT a FROM nobody"),
        lambda: db.create_view("w", "SELECT nothing FROM R"),
    ):
        with pytest.raises(UnknownNameError):
            call()


@pytest.mark.parametrize(
    "text",
    ["SELECT x", "SELECT", "", "Q(A) = ", "SELECT a FROM R UNION SELECT a, s FROM R", "SELECT SUM(s) AS x FROM R"],
)
def test_bad_queries_are_refused_and_leave_nothing(db: Database, text: str) -> None:
    db.create_table("R", {"a": "int", "s": "string"})
    with pytest.raises(IvmeError):
        db.create_view("v", text)
    assert db.views == ()
    db.create_view("v", "SELECT a FROM R")


@pytest.mark.parametrize(
    "options", [{"strategy": "none"}, {"semantics": "odd"}, {"epsilon": 2}, {"unknown": 1}, {"strategy": 1}]
)
def test_bad_options_are_refused(db: Database, options: dict[str, Any]) -> None:
    db.create_table("R", {"a": "int"})
    with pytest.raises(PlanError):
        db.create_view("v", "SELECT a FROM R", **options)
    assert db.views == ()


@pytest.mark.parametrize("schema", [{}, ["a"], {"a": "int", "A": "int"}, {"a": "nothing"}])
def test_bad_tables_are_refused(db: Database, schema: Any) -> None:
    with pytest.raises(SchemaError):
        db.create_table("R", schema)
    assert db.tables == ()


# Ring mode


def test_ring_mode_allows_negative_multiplicities(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    db.create_table("S", {"b": "int"})
    view = db.create_view("v", "SELECT R.a FROM R JOIN S ON R.b = S.b", semantics="ring")
    counts = db.create_view("w", "SELECT a, COUNT(*) AS n FROM R GROUP BY a", semantics="ring")
    feed = view.changes()
    db.delete("R", [(1, 1), (2, 2)])
    db.apply("S", [(1,), (2,)], [2, -1])
    assert dict(view.items()) == {(1,): -2, (2,): 1}
    assert dict(counts.items()) == {(1, -1): 1, (2, -1): 1}
    assert list(view) == [(2,)]
    assert view.to_arrow().to_pylist() == [{"a": 2}]
    db.insert("R", [(1, 1), (2, 2)])
    assert dict(view.items()) == {}
    assert list(feed) == [{(1,): -2, (2,): 1}, {(1,): 2, (2,): -1}]


def test_negative_multiplicities_need_all_views_of_a_table_in_ring_mode(db: Database) -> None:
    db.create_table("R", {"a": "int"})
    with pytest.raises(DataError, match="not there"):
        db.delete("R", [(1,)])
    ring = db.create_view("ring_view", "SELECT a FROM R", semantics="ring")
    bag = db.create_view("bag", "SELECT a FROM R")
    with pytest.raises(DataError, match="not there"):
        db.delete("R", [(1,)])
    db.drop_view("bag")
    db.delete("R", [(1,)])
    assert dict(ring.items()) == {(1,): -1}
    with pytest.raises(PlanError, match="negative multiplicities"):
        db.create_view("bag", "SELECT a FROM R")
    with pytest.raises(PlanError, match="ring_view, which is in ring mode"):
        db.create_view("bag", "SELECT a FROM ring_view")
    db.insert("R", [(1,)])
    bag = db.create_view("bag", "SELECT a FROM R")
    assert list(bag) == []


def test_a_view_that_would_lose_rows_in_ring_mode_is_refused(db: Database) -> None:
    db.create_table("R", {"a": "int", "x": "int"})
    for text in (
        "SELECT a, SUM(x) AS s FROM R GROUP BY a",
        "SELECT a, MIN(x) AS s FROM R GROUP BY a",
        "SELECT DISTINCT a FROM R",
    ):
        with pytest.raises(PlanError, match="ring"):
            db.create_view("v", text, semantics="ring")


def test_rows_that_cancel_in_ring_mode_come_back(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    db.create_table("S", {"b": "int", "c": "int"})
    view = db.create_view("v", "SELECT R.a, S.c FROM R JOIN S ON R.b = S.b", semantics="ring")
    db.apply("R", [(1, 1), (1, 2)], [1, -1])
    db.insert("S", [(1, 7), (2, 7), (2, 8)])
    assert dict(view.items()) == {(1, 8): -1}
    db.delete("S", [(1, 7)])
    assert dict(view.items()) == {(1, 7): -1, (1, 8): -1}
