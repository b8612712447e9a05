"""A witness is a row that passes the filter; where none is found, nothing is said."""

from __future__ import annotations

import pytest

from ivme.plan.explain.witness import witness
from ivme.query.expression import evaluate
from ivme.query.model import Query, table
from ivme.query.sql import parse_sql

T = table(
    "t",
    {"i": "int", "f": "float", "d": "decimal(4, 2)", "s": "string", "b": "bool", "day": "date", "at": "timestamp"},
)


def only_atom(where: str) -> Query:
    return parse_sql(f"SELECT i FROM t WHERE {where}", [T])


@pytest.mark.parametrize(
    "where",
    [
        "i > 3 AND f < 2.5e0 AND d = 1.25",
        "s LIKE 'ab%_' AND s <> 'aba'",
        "b AND NOT i = 0",
        "NOT b",
        "day >= DATE '2020-01-01' AND day < '2020-01-02'",
        "at > TIMESTAMP '2020-01-01 00:00:00'",
        "i IN (NULL, 7) AND i <> 8",
        "CASE WHEN i = 4 THEN s = 'x' ELSE FALSE END",
        "i = 1 OR i = NULL",
    ],
)
def test_a_witness_passes_the_filter(where: str) -> None:
    (atom,) = only_atom(where).atoms
    assert atom.where is not None
    row = witness(atom.where, T)
    assert row is not None
    assert None not in row.values()
    assert evaluate(atom.where, row) is True


@pytest.mark.parametrize(
    "where",
    ["i = NULL", "i = 1 AND i = 2", "d = 1.234", "d > 99.99", "s < ''", "b AND NOT b", "i IS NULL"],
)
def test_there_is_no_witness_of_a_filter_that_no_row_without_null_passes(where: str) -> None:
    (atom,) = only_atom(where).atoms
    assert atom.where is not None
    assert witness(atom.where, T) is None
