"""SELECTs with parameters against DuckDB, which gets the values: also those that no row has, and NULL."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.engines import Engine
from tests.properties.test_select import Both, comparable, in_duckdb

QUERIES = (Path(__file__).parent / "parameter_queries.txt").read_text(encoding="utf-8").splitlines()
VALUES = (None, 0, 1, 2, 3, 17)
"""Values of parameters: 17 is in no row."""


def requests(query: str) -> list[dict[str, Any]]:
    """Requests for a query, with all parameters that it has."""
    names = dict.fromkeys(re.findall(r":([a-z]+)", query))
    return [{name: VALUES[(place + 2 * n) % len(VALUES)] for n, name in enumerate(names)} for place in range(6)]


def substituted(query: str, request: dict[str, Any]) -> str:
    """The query with the values in the place of parameters."""
    return re.sub(r":([a-z]+)", lambda found: _literal(request[found[1]]), in_duckdb(query))


def _literal(value: object) -> str:
    return "CAST(NULL AS BIGINT)" if value is None else str(value)


@pytest.mark.parametrize(
    ("backend", "batches"),
    [("native", 2), *(pytest.param(*each, marks=pytest.mark.long) for each in (("native", 5), ("pure", 2)))],
)
@pytest.mark.parametrize("query", QUERIES)
def test_requests_are_answered_like_duckdb_does(query: str, backend: str, batches: int, tmp_path: Path) -> None:
    engine = Engine(backend, tmp_path)
    both = Both(engine.database, seed=len(query))
    both.change()
    view = engine.database.create_view("v", query)
    for _ in range(batches):
        both.change()
        for request in requests(query):
            expected = comparable(both.duckdb.execute(substituted(query, request)).fetchall())
            assert comparable(list(view(**request))) == expected, request
            many = view.request_many(**{name: [value] for name, value in request.items()})
            rows = list(zip(*(column.to_pylist() for column in many.columns[len(request) :]), strict=True))
            assert comparable(rows) == expected, request
        view.verify()
