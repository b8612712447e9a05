"""The number of triangles of a graph, kept fresh: with parts, without, in Pathway, and counted anew in DuckDB.

    python -m benchmarks.triangles [--graphs DIR] [--runs 3] [--cpu] [--pathway-python PATH] [--edges 1000000]
        [--only pathway]

Edges of one table come and go in batches; the count of E(A,B), E(B,C), E(C,A) is read after each. All counts are
compared first. Real graphs are taken from DIR (or IVME_GRAPHS) where they are; made ones stand in for them otherwise.
Pathway gets its rows with their times before its clock starts. With --cpu the seconds of all threads of a peer count.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.graphs import FILES, Rows, Stream, graph, in_and_out, power_law, uniform, window
from benchmarks.join_count import has_pathway
from benchmarks.measure import median, now, parse, seconds, show
from ivme.database import Database
from ivme.view import View

QUERY = "SELECT COUNT(*) AS n FROM E e1, E e2, E e3 WHERE e1.b = e2.a AND e2.b = e3.a AND e3.b = e1.a"
BATCH = 5000
SINGLE_UPDATES = 1000


def declared(strategy: str) -> tuple[Database, View]:
    database = Database()
    database.create_table("E", {"a": "int", "b": "int"})
    return database, database.create_view("triangles", QUERY, strategy=strategy)


def counts(stream: Stream, size: int, strategy: str) -> list[int]:
    """The count after each batch."""
    return streamed(stream, size, *declared(strategy))


def streamed(stream: Stream, size: int, database: Database, view: View) -> list[int]:
    found = []
    for rows, weights in stream.batches(size):
        database.apply("E", rows, weights)
        found.append(view.scalar())
    return found


def rate(stream: Stream, size: int, strategy: str) -> float:
    """Updates a second, the reads included; the view is there when the clock starts."""
    return len(stream.edges) / seconds(partial(streamed, stream, size, *declared(strategy)))


def recount(edges: Rows, weights: Rows) -> int:
    """DuckDB's count, with multiplicities."""
    connection = duckdb.connect()
    connection.register("changes", pa.table({"a": edges[:, 0], "b": edges[:, 1], "w": weights}))
    connection.execute(
        "CREATE TABLE E AS SELECT a, b, SUM(w)::BIGINT AS w FROM changes GROUP BY ALL HAVING SUM(w) <> 0"
    )
    weighted = QUERY.replace("COUNT(*)", "COALESCE(SUM(e1.w * e2.w * e3.w), 0)::BIGINT")
    found = connection.execute(weighted).fetchone()
    assert found is not None
    return int(found[0])


def check(name: str, stream: Stream, size: int) -> list[int]:
    """The counts of both strategies, which are equal, and DuckDB's half-way."""
    ours, classical = counts(stream, size, "skew"), counts(stream, size, "classical")
    middle = len(ours) // 2
    cut = (middle + 1) * size
    theirs = recount(stream.edges[:cut], stream.weights[:cut])
    if ours != classical or ours[middle] != theirs:
        raise AssertionError(f"{name}: skew {ours[middle]}, classical {classical[middle]}, DuckDB {theirs}")
    return ours


def pathway(python: str, stream: Stream, expected: list[int], clock: str) -> float:
    """Pathway's updates a second, after a check of its counts."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "edges.npz"
        np.savez(path, a=stream.edges[:, 0], b=stream.edges[:, 1], weight=stream.weights)
        script = Path(__file__).parent / "peers" / "pathway_triangles.py"
        command = [python, str(script), str(path), str(BATCH)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    if any(expected[int(batch)] != n for batch, n in answer["counts"].items()):
        raise AssertionError("Pathway's counts differ")
    return len(stream.edges) / float(answer[clock])


def single_update(edges: int, runs: int) -> None:
    """One update on a large graph, among its hubs and elsewhere, against a full recount."""
    rows = power_law(edges, edges // 5)
    database = Database()
    database.create_table("E", {"a": "int", "b": "int"})
    database.insert("E", rows)
    view = database.create_view("triangles", QUERY, strategy="skew")
    chosen = [tuple(row) for row in rows[: SINGLE_UPDATES // 2].tolist()]

    def updates() -> None:
        for row in chosen:
            database.delete("E", [row])
            database.insert("E", [row])

    connection = duckdb.connect()
    connection.register("given", pa.table({"a": rows[:, 0], "b": rows[:, 1]}))
    connection.execute("CREATE TABLE E AS SELECT * FROM given")
    began = now()
    (theirs,) = connection.execute(QUERY).fetchone() or (None,)
    whole = now() - began
    if view.scalar() != theirs:
        raise AssertionError(f"the view has {view.scalar()} triangles, DuckDB {theirs}")
    one = median(lambda: seconds(updates) / (2 * len(chosen)), runs)
    show(f"one update, {len(rows):,} edges", 1e6 * one, "µs")
    show("  DuckDB's recount", 1e3 * whole, "ms")
    show("  recount / update", whole / one, "times", "10,000")


def graphs(folder: Path, runs: int) -> None:
    """Both strategies on each graph."""
    streams = {
        "wiki-vote": in_and_out(graph("wiki-vote", folder)[0]),
        "college-msg": window(graph("college-msg", folder)[0], 20_000, 1000),
        "ego-facebook": in_and_out(graph("ego-facebook", folder)[0]),
        "random": in_and_out(uniform(100_000, 20_000)),
    }
    for name, stream in streams.items():
        check(name, stream, BATCH)
        ours, classical = (median(partial(rate, stream, BATCH, each), runs) for each in ("skew", "classical"))
        kind = graph(name, folder)[1] if name in FILES else "made"
        show(f"{name} ({kind}), batches of {BATCH:,}", ours, "updates/s")
        show("  classical", classical, "updates/s")
        show("  skew / classical", ours / classical, "times", "0.7")


def fed(folder: Path, runs: int) -> None:
    """An undirected graph as a stream of inserts."""
    edges, kind = graph("ego-facebook", folder)
    stream = Stream(edges, np.ones(len(edges), dtype=np.int64))
    ours = median(lambda: rate(stream, 1000, "skew"), runs)
    show(f"ego-facebook ({kind}), inserts in batches of 1,000", ours, "rows/s", "150,000")


def beside_pathway(folder: Path, runs: int, python: str, clock: str) -> None:
    """Pathway and ivme on the same stream."""
    if not has_pathway(python):
        print("Pathway is missing: pip install pathway somewhere and give --pathway-python")
        return
    stream = in_and_out(graph("wiki-vote", folder)[0])
    theirs = pathway(python, stream, check("wiki-vote", stream, BATCH), clock)
    ours = median(lambda: rate(stream, BATCH, "skew"), runs)
    show(f"Pathway, wiki-vote, batches of {BATCH:,}", theirs, "updates/s")
    show("  ivme, the same", ours, "updates/s")
    show("  ivme / Pathway", ours / theirs, "times", "50")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=Path, default=Path(os.environ.get("IVME_GRAPHS", "../shared/data/graphs")))
    parser.add_argument("--pathway-python", default=sys.executable)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--only", choices=("graphs", "inserts", "update", "pathway"))
    options = parse(parser)
    clock = "cpu" if options.cpu else "wall"
    tasks: dict[str, Callable[[], None]] = {
        "graphs": lambda: graphs(options.graphs, options.runs),
        "inserts": lambda: fed(options.graphs, options.runs),
        "update": lambda: single_update(options.edges, options.runs),
        "pathway": lambda: beside_pathway(options.graphs, options.runs, options.pathway_python, clock),
    }
    for name, task in tasks.items():
        if options.only in (None, name):
            task()


if __name__ == "__main__":
    main()
