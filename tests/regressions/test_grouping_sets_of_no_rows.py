"""ROLLUP, CUBE and several GROUPING SETS of no rows have no total, as in Spark; one set without keys has its row."""

from __future__ import annotations

import pytest

import ivme
from tests.databases import BACKENDS, make_database

SETS = {
    "ROLLUP (a)": 0,
    "CUBE (a, b)": 0,
    "GROUPING SETS ((a), ())": 0,
    "GROUPING SETS ((), ())": 0,
    "a, ROLLUP (b)": 0,
    "ROLLUP (a), ROLLUP (b)": 0,
    "a WITH ROLLUP": 0,
    "GROUPING SETS (())": 1,
}
"""How many rows Spark 4 has for each, over a table without rows."""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("sets", SETS)
def test_a_total_comes_and_goes_with_the_rows(backend: str, sets: str) -> None:
    db = make_database(backend)
    db.create_table("t", {"a": "int", "b": "int"})
    view = db.create_view("v", f"SELECT COUNT(*) AS n, SUM(b) AS s FROM t GROUP BY {sets}")

    assert [(0, None)] * SETS[sets] == list(view)
    db.insert("t", [(1, None), (1, None)])
    full = list(view)
    assert (2, None) in full
    view.verify()
    db.delete("t", [(1, None), (1, None)])
    assert [(0, None)] * SETS[sets] == list(view)
    view.verify()


def test_the_total_of_a_join_is_there_if_the_join_has_rows() -> None:
    db = ivme.Database()
    db.create_table("t", {"a": "int", "b": "int"})
    db.create_table("u", {"a": "int"})
    view = db.create_view("v", "SELECT t.b, COUNT(*) AS n FROM t JOIN u ON t.a = u.a GROUP BY ROLLUP (t.b)")
    db.insert("t", [(1, 5)])
    assert [] == list(view)
    db.insert("u", [(1,), (1,)])
    assert [(5, 2), (None, 2)] == sorted(view, key=lambda row: row[0] is None)
