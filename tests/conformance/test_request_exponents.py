"""Views that are evaluated at requests: counted operations of updates and requests over growing tables."""

from __future__ import annotations

from math import log
from typing import Any

import pytest

from ivme.database import Database
from ivme.plan.ir.exponent import bound
from tests.databases import BACKENDS, make_database

SIZES = (200, 800)

CASES = {
    "path": ("Q(D | A) = R(A, B), S(B, C), T(C, D)", 1.0),
    "triangles of a node": ("Q(B, C | A) = R(A, B), S(B, C), T(C, A)", 1.0),
    "least and number of what is three hops away": (
        "Q(MIN(D), COUNT(DISTINCT C) | A) = R(A, B), S(B, C), T(C, D)",
        1.0,
    ),
    "4-cycles of a node": ("Q(. | A) = R(A, B), S(B, C), T(C, D), U(D, A)", 1.0),
}


def filled(backend: str, text: str, size: int) -> Database:
    """A hub 0 with edges to all nodes and back, and edges from each node to itself."""
    db = make_database(backend)
    names = [name for name in "RSTU" if f"{name}(" in text]
    for name in names:
        db.create_table(name, {"x": "int", "y": "int"})
    for name in names:
        first, last = name == "R", name == names[-1]
        rows = [(0, i) if first else (i, 0) if last else (i, i) for i in range(size)]
        db.insert(name, rows)
    db.create_view("q", text, strategy="request")
    return db


def counted(db: Database, act: Any) -> int:
    before = db._runtime.backend.operations
    act()
    return db._runtime.backend.operations - before


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES)
def test_requests_grow_as_the_exponent_says_and_updates_do_not(case: str, backend: str) -> None:
    text, promised = CASES[case]
    requests, updates = [], []
    for size in SIZES:
        db = filled(backend, text, size)
        requests.append(counted(db, lambda db=db: list(db.view("q").items(A=0))))
        updates.append(counted(db, lambda db=db: db.insert("S", [(7, 9)])))
    assert log(requests[1] / requests[0]) / log(SIZES[1] / SIZES[0]) == pytest.approx(promised, abs=0.1)
    assert updates[0] == updates[1]


LISTED = {
    "paths": ("Q(B, C, D | A) = R(A, B), S(B, C), T(C, D)", {"R": "0i", "S": "i0", "T": "0i"}),
    "ears behind three hops": (
        "Q(D, E, F | A) = R(A, B), S(B, C), T(C, D), U(D, E), V(D, F)",
        {"R": "0i", "S": "i0", "T": "00", "U": "0i", "V": "0i"},
    ),
    "4-cycles": ("Q(B, C, D | A) = R(A, B), S(B, C), T(C, D), U(D, A)", {"R": "0i", "S": "i0", "T": "0i", "U": "i0"}),
}
"""Views with size^2 rows for A = 0, and what the rows of their tables are for i below size."""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", LISTED)
def test_the_first_row_takes_linear_time_and_further_ones_take_the_same_however_many_there_are(
    case: str, backend: str
) -> None:
    text, tables = LISTED[case]
    first, further, updates = [], [], []
    for size in SIZES:
        db = make_database(backend)
        for name, row in tables.items():
            db.create_table(name, {"x": "int", "y": "int"})
            db.insert(name, [*{tuple(i if part == "i" else 0 for part in row) for i in range(size)}])
        view = db.create_view("q", text, strategy="request")
        before = db._runtime.backend.operations
        rows = view.items(A=0)
        next(rows)
        first.append(db._runtime.backend.operations - before)
        further.append(counted(db, lambda rows=rows: [next(rows) for _ in range(10_000)]))
        if backend == "pure":
            del rows  # the plain engine reads what an open reader has left before a change
        updates.append(counted(db, lambda db=db: db.insert("S", [(9_999, 9_999)])))
    assert view.explain().delay == bound(1)
    assert log(first[1] / first[0]) / log(SIZES[1] / SIZES[0]) == pytest.approx(1, abs=0.1)
    assert further[0] == further[1] <= 4 * 10_000, "two a row, of blocks that are read ahead"
    assert updates[0] == updates[1]
