"""Rows of a view with heavy and light parts were left out by the compiled kernel where it reads on behind a NULL.

Found by the long streams: Q(C, D, E | A) = R(A, B, C), S(A, B, D), T(A, E) reads C and D first, then E for each pair.
"""

from __future__ import annotations

from typing import Any

from ivme.query.rule import parse_rule
from tests import oracle
from tests.databases import make_database

TEXT = "Q(C, D, E | A) = R(A, B, C), S(A, B, D), T(A, E)"
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "R": [(0, 0, 0), (0, 0, None), (0, None, 7)],
    "S": [(0, 0, 0), (0, 0, None), (0, None, 8)],
    "T": [(0, 0), (0, None), (None, 1)],
}


def test_rows_behind_a_null_are_read() -> None:
    answers = []
    for backend in ("native", "pure"):
        db = make_database(backend)
        for name, rows in ROWS.items():
            db.create_table(name, {f"c{i}": "int" for i in range(len(rows[0]))})
        view = db.create_view("v", TEXT, strategy="skew", epsilon=0)
        for name, rows in ROWS.items():
            for row in rows:
                db.insert(name, [row])
        assert list(view(A=None)) == []
        assert view.request_many(A=[None]).num_rows == 0
        answers.append(dict(view.items(A=0)))
    expected = oracle.rows(parse_rule(TEXT), {name: dict.fromkeys(rows, 1) for name, rows in ROWS.items()}, {"A": 0})
    assert len(expected) == 8
    assert answers == [expected, expected]
