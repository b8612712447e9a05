"""Views over heavy and light parts, read as a whole on several threads: the rows of one thread, in their order.

Only maps of some thousand entries are read by several threads, so the graphs here are larger than elsewhere: a few
nodes have edges to and from all others, and the rest are cliques of five.
"""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from ivme import Database
from ivme.errors import DataError

JOINED = "FROM R, S, T WHERE R.b = S.a AND S.b = T.a AND T.b = R.a"
VIEWS = {
    "sums": f"SELECT R.a, COUNT(*) AS n, SUM(R.x) AS s, AVG(S.x) AS m {JOINED} GROUP BY R.a",
    "counts": f"SELECT R.a, COUNT(*) AS n {JOINED} GROUP BY R.a",
    "distinct": f"SELECT DISTINCT R.a, R.b {JOINED}",
    "floats": f"SELECT R.a, SUM(R.y) AS s {JOINED} GROUP BY R.a",
    "pairs": "SELECT R.b, S.b AS c, COUNT(*) AS n, SUM(R.x) AS s FROM R JOIN S ON R.a = S.a GROUP BY R.b, S.b",
}
REQUESTS = f"SELECT R.b, COUNT(*) AS n, SUM(R.x) AS s {JOINED} AND R.a = :a GROUP BY R.b"


def edges(nodes: int, hubs: int = 3) -> pa.Table:
    step = np.arange(nodes)
    clique = np.repeat(step, 5), np.repeat(step // 5 * 5, 5) + np.tile(np.arange(5), nodes)
    to_all = np.repeat(np.arange(hubs), nodes), np.tile(step, hubs)
    found = np.unique(np.concatenate([np.stack(clique), np.stack(to_all), np.stack(to_all[::-1])], axis=1), axis=1)
    a, b = np.random.default_rng(1).permutation(found, axis=1)
    return pa.table({"a": a, "b": b, "x": a * 7 - b, "y": a / 8})


def filled(threads: int, data: pa.Table) -> Database:
    database = Database(threads=threads)
    for name in "RST":
        database.create_table(name, {"a": "int", "b": "int", "x": "int", "y": "float"})
        database.insert(name, data)
    return database


@pytest.mark.parametrize("name", VIEWS)
def test_threads_find_the_same_rows_in_the_same_order(name: str) -> None:
    data = edges(300 if name == "pairs" else 1500)
    tables = []
    for threads in (1, 2, 3):
        with filled(threads, data) as database:
            view = database.create_view("v", VIEWS[name], strategy="skew", epsilon=0.5)
            tables.append(view.to_arrow())
    assert all(table == tables[0] for table in tables)
    found = sorted(zip(*(column.to_pylist() for column in tables[0].columns), strict=True))
    connection = duckdb.connect()
    for table in "RST":
        connection.register(table, data)
    assert sorted(connection.sql(VIEWS[name]).fetchall()) == pytest.approx(found)


def test_threads_answer_many_requests_as_one_does() -> None:
    data = edges(1500)
    answers = []
    for threads in (1, 3):
        with filled(threads, data) as database:
            view = database.create_view("v", REQUESTS, strategy="skew", epsilon=0.5)
            answers.append(view.request_many(a=[0, 1499, 17, 1, 0, -1]))
    assert answers[0] == answers[1]


def weighted(threads: int, weights: list[int], nodes: int = 5000) -> Any:
    """How often each node is in a triangle with a hub; of the last node, edges to the hubs count so many times."""
    hubs, step = len(weights), np.arange(nodes)
    with Database(threads=threads) as database:
        for name in "RST":
            database.create_table(name, {"a": "int", "b": "int"})
        query = "SELECT R.a, COUNT(*) AS n FROM R, S, T WHERE R.b = S.a AND S.b = T.a AND T.b = R.a GROUP BY R.a"
        view = database.create_view("v", query, strategy="skew", epsilon=0.5)
        database.insert("S", [(hub, hub) for hub in range(hubs)])
        database.insert("T", pa.table({"a": np.repeat(np.arange(hubs), nodes), "b": np.tile(step, hubs)}))
        for hub, weight in enumerate(weights):
            rows = pa.table({"a": step, "b": np.full(nodes, hub)})
            database.apply("R", rows, np.where(step == nodes - 1, weight, 1))
        return sorted(zip(*(column.to_pylist() for column in view.to_arrow().columns), strict=True))


def test_counts_are_added_up_to_the_largest_that_fits() -> None:
    weights = [2**62, 2**61, 2**61 - 5001]
    expected = [(node, len(weights)) for node in range(4999)] + [(4999, sum(weights))]
    assert expected == weighted(1, weights) == weighted(2, weights)


@pytest.mark.parametrize("weights", [[2**62, 2**62, 1], [1, 2**62, 2**62], [2**62, 1, 2**62, 1]])
def test_counts_that_do_not_fit_are_refused(weights: list[int]) -> None:
    for threads in (1, 2, 3):
        with pytest.raises(DataError):
            weighted(threads, weights)
