"""Reachability kept fresh, against recomputing it: digraphs, sliding windows, requests, and IES in SQL.

    python -m benchmarks.closure [--samples 3] [--ies 300] [--spark 0] [--runs 3] [--cpu]

wiki-vote and college-msg are read from ../shared/data/graphs (or $IVME_GRAPHS) if they are there, else made up. A
stream inserts all edges in random order, a tenth of the changes being deletes, in batches of 100. DuckDB's recursive
CTE recomputes the closure at `--samples` points of the stream (0: not at all): there the answers are compared, all
pairs, and the time of one recomputation is set against that of one batch. `--ies` is the number of edges of the random
DAG on which the IES in DuckDB runs, `--spark` that on Spark SQL (0: not at all; 2000 takes some minutes).
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.measure import median, now, parse, seconds, show
from ivme._kernel import Closure
from ivme.closure.duckdb_executor import DuckDbExecutor
from ivme.closure.executor import Executor
from ivme.closure.systems import acyclic_closure
from ivme.database import Database

GRAPHS = Path(os.environ.get("IVME_GRAPHS", Path(__file__).resolve().parents[2] / "shared" / "data" / "graphs"))
SIZES = {"wiki-vote": (7115, 103_689), "college-msg": (1899, 59_835)}
BATCH = 100
Edges = np.ndarray[Any, Any]

RECURSIVE = (
    "WITH RECURSIVE r(src, dst) AS (SELECT src, dst FROM edge UNION "
    "SELECT r.src, e.dst FROM r JOIN edge e ON r.dst = e.src) SELECT src, dst FROM r"
)


def edges_of(name: str) -> tuple[Edges, str]:
    """The edges of a graph in their order, and where they are from."""
    path = GRAPHS / f"{name}.txt"
    if path.exists():
        return np.loadtxt(path, dtype=np.int64)[:, :2].copy(), "real"
    nodes, edges = SIZES[name]
    rng = np.random.default_rng(1)
    return np.minimum(rng.zipf(1.6, (edges, 2)), nodes).astype(np.int64), "generated"


def stream(edges: Edges) -> Iterator[tuple[list[Any], list[int]]]:
    """Batches of 100 changes: each edge once, in random order, and a delete for every nine inserts."""
    chance = random.Random(1)
    rows = [tuple(row) for row in np.unique(edges, axis=0).tolist()]
    chance.shuffle(rows)
    held: list[Any] = []
    size = BATCH - BATCH // 10
    for start in range(0, len(rows), size):
        come = rows[start : start + size]
        gone = [held.pop(chance.randrange(len(held))) for _ in range(min(BATCH // 10, len(held)))]
        held += come
        yield [*come, *gone], [1] * len(come) + [-1] * len(gone)


def digraph(name: str, samples: int) -> None:
    edges, origin = edges_of(name)
    database = Database()
    database.create_table("edge", {"src": "int", "dst": "int"})
    view = database.create_view("reach", "Q(X, Y) = closure(edge)")
    batches = [(table_of(rows), np.array(weights)) for rows, weights in stream(edges)]
    points = {len(batches) * (i + 1) // samples for i in range(samples)}
    spent = total = 0.0
    for number, (rows, weights) in enumerate(batches, 1):
        spent += seconds(partial(database.apply, "edge", rows, weights))
        if number in points:
            total += spent
            each, spent = spent / (len(batches) // samples), 0.0
            theirs = recomputed(database, view)
            done = f"{name} ({origin}), {number * BATCH:,} changes, {view.count():,} pairs"
            print(done)
            show("  one batch of 100 here", each * 1e3, "ms")
            show("  one recomputation by DuckDB", theirs * 1e3, "ms")
            show("  times as fast", theirs / each, "x", "100")
    show(f"{name}: changes a second, whole stream", len(batches) * BATCH / total, "changes/s")
    show(f"{name}: memory of the closure", view.stats()["memory_bytes"] / 1e6, "MB")


def table_of(rows: list[Any]) -> pa.Table:
    columns = np.array(rows, dtype=np.int64)
    return pa.table({"src": columns[:, 0].copy(), "dst": columns[:, 1].copy()})


def recomputed(database: Database, view: Any) -> float:
    """Seconds of DuckDB's recursive CTE over the same edges, once its answer was found to be ours."""
    edges = database._runtime.reader.contents("edge")[0]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE edge AS SELECT src, dst FROM edges")
    start = now()
    theirs = connection.sql(RECURSIVE).to_arrow_table()
    took = now() - start
    ours = view.to_arrow()
    if not np.array_equal(sorted_pairs(ours), sorted_pairs(theirs)):
        raise AssertionError("the closure differs from DuckDB's")
    assert edges.num_rows
    return took


def sorted_pairs(table: pa.Table) -> Edges:
    first, last = (column.to_numpy() for column in table.columns)
    return np.sort(first * 2**32 + last)


def window(size: int, batch: int, runs: int) -> None:
    """College messages as undirected edges that live for a number of messages."""
    edges, origin = edges_of("college-msg")
    batches = list(sliding(edges, size, batch))
    changes = sum(len(weights) for *_, weights in batches)

    def in_kernel() -> float:
        closure = Closure("undirected", 1)

        def work() -> None:
            for a, b, weights in batches:
                closure.change(a, b, weights)
                closure.commit()

        took = seconds(work)
        check_connected(closure, edges[len(edges) - size :])
        return took

    def in_database() -> float:
        database = Database()
        database.create_table("edge", {"src": "int", "dst": "int"})
        view = database.create_view("near", "Q(Y | X) = closure(edge)(X, Y)", graph="undirected")
        tables = [(pa.table({"src": a, "dst": b}), weights) for a, b, weights in batches]

        def work() -> None:
            for rows, weights in tables:
                database.apply("edge", rows, weights)

        took = seconds(work)
        check_connected(view.state.group.engine, edges[len(edges) - size :])  # type: ignore[attr-defined]
        return took

    name = f"window of {size:,} ({origin}), batches of {2 * batch:,}"
    show(f"{name}: kernel", changes / median(in_kernel, runs), "changes/s", "200,000")
    show(f"{name}: database", changes / median(in_database, runs), "changes/s", "200,000")


def sliding(edges: Edges, size: int, batch: int) -> Iterator[tuple[Edges, Edges, Edges]]:
    for start in range(0, len(edges), batch):
        end = min(start + batch, len(edges))
        come, gone = edges[start:end], edges[max(0, start - size) : max(0, end - size)]
        both = np.concatenate([come, gone])
        weights = np.concatenate([np.ones(len(come), np.int64), -np.ones(len(gone), np.int64)])
        yield both[:, 0].copy(), both[:, 1].copy(), weights


def check_connected(closure: Any, edges: Edges) -> None:
    """The closure has as many pairs as components by union and find have."""
    above: dict[int, int] = {}

    def root(node: int) -> int:
        while above.setdefault(node, node) != node:
            above[node] = above[above[node]]
            node = above[node]
        return node

    for a, b in edges.tolist():
        above[root(a)] = root(b)
    sizes = np.unique([root(node) for node in list(above)], return_counts=True)[1]
    if closure.pairs != int((sizes**2).sum()):
        raise AssertionError("the connected pairs differ from those by union and find")


def requests(name: str, count: int, runs: int) -> None:
    edges, origin = edges_of(name)
    closure = Closure("digraph", 1)
    closure.change(edges[:, 0].copy(), edges[:, 1].copy(), np.ones(len(edges), np.int64))
    closure.commit()
    rng = np.random.default_rng(2)
    a, b = (rng.choice(edges[:, 0], count), rng.choice(edges[:, 1], count))
    took = median(lambda: seconds(lambda: closure.reaches_many(a, b)), runs)
    show(f"{name} ({origin}): does a reach b", took / count * 1e9, "ns", "1,000")
    few = a[:2000]
    rows = len(closure.targets_many(few)[1])
    took = median(lambda: seconds(lambda: closure.targets_many(few)), runs)
    show(f"{name} ({origin}): a descendant", took / rows * 1e9, "ns")


def random_dag(edges: int) -> list[tuple[int, int]]:
    """A random acyclic graph with a large closure: a quarter as many nodes as edges."""
    chance = random.Random(5)
    found: set[tuple[int, int]] = set()
    nodes = max(4, edges // 4)
    while len(found) < edges:
        a, b = sorted(chance.sample(range(nodes), 2))
        found.add((a, b))
    return sorted(found, key=lambda _: chance.random())


def single_edges(executor: Executor, dag: list[tuple[int, int]], changes: int) -> tuple[float, float]:
    """Mean seconds of a single insert and of a single delete, once all other edges are there."""
    executor.insert_many("edge", dag[changes:])
    inserts = [seconds(partial(executor.insert, "edge", edge)) for edge in dag[:changes]]
    deletes = [seconds(partial(executor.delete, "edge", edge)) for edge in dag[: changes // 2]]
    return float(np.mean(inserts)), float(np.mean(deletes))


def ies_in_duckdb(edges: int) -> None:
    dag = random_dag(edges)
    executor = DuckDbExecutor(acyclic_closure())
    insert, delete = single_edges(executor, dag, 20)
    start = now()
    theirs = sorted(executor.connection.execute(RECURSIVE).fetchall())
    recompute = now() - start
    if theirs != executor.answer():
        raise AssertionError("the IES differs from the recursive CTE")
    print(f"IES in DuckDB, random DAG of {edges:,} edges, {len(theirs):,} pairs")
    report(insert, delete, recompute)


def ies_in_spark(edges: int) -> None:
    from pyspark.sql import SparkSession

    from ivme.closure.spark_executor import SparkExecutor

    settings: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    dag = random_dag(edges)
    executor = SparkExecutor(acyclic_closure(), spark)
    insert, delete = single_edges(executor, dag, 6)
    query = RECURSIVE.replace("UNION", "UNION ALL").replace("SELECT src, dst FROM r", "SELECT DISTINCT src, dst FROM r")
    own = executor.spark
    own.conf.set("spark.sql.cteRecursionRowLimit", "-1")
    own.conf.set("spark.sql.cteRecursionLevelLimit", "-1")
    print(f"IES in Spark SQL, random DAG of {edges:,} edges, {len(executor.answer()):,} pairs")
    start = now()
    try:
        theirs = sorted(tuple(row) for row in own.sql(query).collect())
        recompute = now() - start
        if theirs != executor.answer():
            raise AssertionError("the IES differs from Spark's WITH RECURSIVE")
    except Exception as error:
        if isinstance(error, AssertionError):
            raise
        print(f"  Spark's WITH RECURSIVE failed after {now() - start:.0f} s: {str(error).splitlines()[0][:90]}")
        recompute = now() - start
    report(insert, delete, recompute)
    spark.stop()


def report(insert: float, delete: float, recompute: float) -> None:
    show("  an insert", insert * 1e3, "ms")
    show("  a delete", delete * 1e3, "ms")
    show("  WITH RECURSIVE", recompute * 1e3, "ms")
    show("  times as fast, nine inserts to a delete", recompute / (0.9 * insert + 0.1 * delete), "x", "1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--ies", type=int, default=300)
    parser.add_argument("--spark", type=int, default=0)
    options = parse(parser)
    for size, batch in ((5_000, 500), (20_000, 5_000)) if options.runs else ():
        window(size, batch, options.runs)
    for name in SIZES if options.runs else ():
        requests(name, 1_000_000, options.runs)
    if options.ies:
        ies_in_duckdb(options.ies)
    for name in ("college-msg", "wiki-vote") if options.samples else ():
        digraph(name, options.samples)
    if options.spark:
        ies_in_spark(options.spark)


if __name__ == "__main__":
    main()
