"""All ways of reading a view give the same rows: iterated, listed, as items, in Arrow, by request."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest

from ivme.database import Database
from ivme.query.model import Query
from ivme.view import View
from tests import oracle
from tests.databases import BACKENDS, make_database

TRIANGLE = "R(A, B), S(B, C), T(C, A)"
LISTING = "R(A, B), S(A, C)"
SKEW: dict[str, Any] = {"strategy": "skew", "epsilon": 0.5}
VIEWS: list[tuple[str, dict[str, Any]]] = [
    ("Q(A, B, C) = R(A, B), S(A, C)", {}),
    ("Q(A, COUNT, SUM(B), AVG(C)) = R(A, B), S(A, C)", {}),
    ("Q(A, MIN(B), MAX(B)) = R(A, B)", {}),
    ("Q(COUNT, SUM(B)) = R(A, B)", {}),
    ("Q(A, B, C, D, E) = R(A, B), S(C, D), T(C, E)", {}),
    ("Q(B, D, E | A) = R(A, B), S(C, D), T(C, E)", {}),
    (f"Q(A, B, C) = {LISTING}", {"strategy": "classical"}),
    (f"Q(A, B, C) = {LISTING}", {"strategy": "recompute"}),
    ("Q(A, B, C, D) = R(A, B), S(B, C), T(C, D)", {"strategy": "marks"}),
    (f"Q(A) = {TRIANGLE}", SKEW),
    (f"Q(A, B) = {TRIANGLE}", SKEW),
    (f"Q(A, B, C) = {TRIANGLE}", SKEW),
    (f"Q(COUNT) = {TRIANGLE}", SKEW),
    (f"Q(A, COUNT, SUM(C), AVG(B)) = {TRIANGLE}", SKEW),
    (f"Q(C | A, B) = {TRIANGLE}", SKEW),
    (f"Q(B, C | A) = {TRIANGLE}", SKEW),
    (f"Q(. | A) = {TRIANGLE}", SKEW),
    (f"Q(B, C) = {LISTING}", SKEW),
    (f"Q(B, C | .) = {LISTING}", {**SKEW, "semantics": "set"}),
    (f"Q(C | B) = {LISTING}", SKEW),
    (f"Q(B, C, COUNT, SUM(A)) = {LISTING}", SKEW),
    ("Q(A, C, D, F) = R(A, B), S(B, C), T(D, E), U(E, F)", SKEW),
    ("Q(C, D, E | A) = R(A, B), R(B, C), S(B, D), T(A, E)", {"strategy": "skew", "epsilon": 0}),
]


def tables() -> dict[str, list[tuple[int, int]]]:
    """A few values with many partners, and many with one."""
    hubs = [(0, i) for i in range(12)] + [(i, 0) for i in range(1, 12)] + [(1, i) for i in range(1, 6)]
    chain = [(i, (i + 1) % 9) for i in range(9)]
    return {"R": hubs + chain, "S": hubs + chain[::2], "T": hubs + chain[1::2], "U": hubs[::3] + chain}


def filled(backend: str) -> Database:
    database = make_database(backend)
    for name, rows in tables().items():
        database.create_table(name, {"x": "int", "y": "int"})
        database.insert(name, rows)
    return database


def rows_of(table: Any) -> list[Any]:
    """The rows of a table or batch, which may have no columns."""
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def ways(view: View, inputs: dict[str, Any]) -> dict[str, Counter[Any]]:
    """The rows of one request, read in every way."""
    weighted: Counter[Any] = Counter()
    for batch, counts in view.weighted(**inputs):
        for row, count in zip(rows_of(batch) or [()] * len(counts), counts.tolist(), strict=True):
            weighted[row] += count
    one_by_one: Counter[Any] = Counter()
    for row in view(**inputs):
        one_by_one[row] += 1
    return {
        "iterated": one_by_one,
        "listed": Counter(list(view(**inputs))),
        "items": Counter(dict(view.items(**inputs))),
        "to_arrow": Counter(rows_of(view.to_arrow(**inputs))),
        "weighted": weighted,
        "multiplicity": Counter({row: view.multiplicity(row, **inputs) for row in one_by_one}),
    }


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("text", "options"), VIEWS, ids=[f"{o.get('strategy', 'chosen')} {t}" for t, o in VIEWS])
def test_all_ways_of_reading_agree_with_the_oracle(backend: str, text: str, options: dict[str, Any]) -> None:
    database = filled(backend)
    view = database.create_view("v", text, **options)
    query: Query = view.state.typed.query
    contents: Any = {name: Counter(rows) for name, rows in tables().items()}
    requests = [dict(zip(query.parameters, each, strict=True)) for each in product([0, 3, 77], repeat=len(query.input))]
    everything: Counter[Any] = Counter()
    for inputs in requests:
        expected = Counter(oracle.rows(query, contents, inputs))
        for way, found in ways(view, inputs).items():
            assert expected == found, way
        everything.update({(*inputs.values(), *row): count for row, count in expected.items()})
    if query.input and query.head:
        columns = {name: [inputs[name] for inputs in requests] for name in query.parameters}
        assert everything == Counter(rows_of(view.request_many(**columns)))
    database.close()
