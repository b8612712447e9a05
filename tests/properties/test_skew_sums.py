"""Sums over heavy and light parts, read all at once: exact at the borders of 64 bits, and for every kind of sum.

Rows are found in several contexts, whose payloads are multiplied and added a slot at a time; the reference engine does
both with Python's own numbers.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.errors import DataError
from tests.databases import BACKENDS, make_database
from tests.example_counts import examples

LARGEST = 2**63 - 1
NODES = st.integers(0, 2)
INTS = st.sampled_from([None, 0, 1, -1, 7, LARGEST, -LARGEST, 2**62, -(2**62), 2**31])
DECIMALS = st.sampled_from([None, Decimal("0.01"), Decimal("-0.01"), Decimal(10**30), -Decimal(10**30)])
FLOATS = st.sampled_from([None, 0.1, -0.1, 1e300, -1e300, 5e-324, 2.0**53, 1.0])
TABLES = {
    "R": ({"a": "int", "b": "int", "x": "int"}, INTS),
    "S": ({"b": "int", "c": "int", "y": "decimal(38, 2)"}, DECIMALS),
    "T": ({"c": "int", "a": "int", "z": "float"}, FLOATS),
}
JOINED = "FROM R, S, T WHERE R.b = S.b AND S.c = T.c AND T.a = R.a GROUP BY R.a"
VIEWS = {
    "ints": f"SELECT R.a, COUNT(*) AS n, SUM(R.x) AS s {JOINED}",
    "means": f"SELECT R.a, AVG(R.x) AS m, COUNT(R.x) AS n {JOINED}",
    "decimals": f"SELECT R.a, SUM(S.y) AS s, COUNT(S.y) AS n {JOINED}",
    "floats": f"SELECT R.a, SUM(T.z) AS s {JOINED}",
    "all": f"SELECT R.a, AVG(R.x) AS s, SUM(S.y) AS t, SUM(T.z) AS u, COUNT(*) AS n {JOINED}",
}


def rows(table: str) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.tuples(NODES, NODES, TABLES[table][1]), min_size=4, max_size=16)


def answers(backend: str, text: str, given_rows: Any) -> list[Any] | None:
    """The rows of a view, the same by column and by row; None if a sum does not fit."""
    database = make_database(backend)
    for name, (columns, _) in TABLES.items():
        database.create_table(name, columns)
    view = database.create_view("v", text, strategy="skew", epsilon=0.5)
    try:
        for name in TABLES:
            database.insert(name, given_rows[name])
        table = view.to_arrow()
    except DataError:
        return None
    by_column = sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)
    assert by_column == sorted(view, key=repr)
    return by_column


@settings(max_examples=examples(24), deadline=None)
@given(st.sampled_from(sorted(VIEWS)), st.fixed_dictionaries({name: rows(name) for name in TABLES}))
def test_sums_over_parts_are_those_of_the_reference_engine(view: str, given_rows: Any) -> None:
    native, pure = (answers(backend, VIEWS[view], given_rows) for backend in BACKENDS)
    assert native == pure
