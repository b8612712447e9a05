"""Counts of small subgraphs of a real graph, edge by edge, beside DuckDB's recount.

    python -m benchmarks.subgraphs [GRAPH] [--edges 500 | --edges all] [--only NAME]

GRAPH is a file of edges, one a line (ego-facebook of SNAP by default, if it is there; nothing is measured otherwise).
All edges but the last ones are loaded at once, then the last, or all, come one by one, each in one transaction; the
count is read after each, and compared with DuckDB's in the end. Triangles and 4-cliques are counted over edges from the
smaller node to the larger; lollipops (a triangle with a pendant) and barbells (two triangles with an edge between them)
over both directions. DuckDB gets the text that suits it best: triangles are counted by node first. Times are CPU time.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import duckdb
import numpy as np
import pyarrow as pa

from ivme.database import Database

DEFAULT = Path("../shared/data/graphs/ego-facebook.tsv")
BY_NODE = """WITH t AS (SELECT x.a AS a, COUNT(*) AS n FROM E x, E y, E z
    WHERE x.b = y.a AND y.b = z.a AND z.b = x.a GROUP BY x.a) """


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A pattern as a rule over E, the same count in DuckDB's words, and whether E has both directions of an edge."""

    rule: str
    recount: str
    both: bool


PATTERNS = {
    "triangle": Subgraph(
        "Q(COUNT) = E(A, B), E(B, C), E(A, C)",
        "SELECT COUNT(*) FROM E x, E y, E z WHERE x.b = y.a AND z.a = x.a AND z.b = y.b",
        both=False,
    ),
    "4-clique": Subgraph(
        "Q(COUNT) = E(A, B), E(A, C), E(A, D), E(B, C), E(B, D), E(C, D)",
        "SELECT COUNT(*) FROM E ab, E bc, E ac, E ad, E bd, E cd WHERE ab.b = bc.a AND ac.a = ab.a AND ac.b = bc.b "
        "AND ad.a = ab.a AND bd.a = ab.b AND bd.b = ad.b AND cd.a = bc.b AND cd.b = ad.b",
        both=False,
    ),
    "lollipop": Subgraph(
        "Q(COUNT) = E(A, B), E(B, C), E(C, A), E(A, D)",
        BY_NODE + "SELECT SUM(t.n)::BIGINT FROM t, E WHERE t.a = E.a",
        both=True,
    ),
    "barbell": Subgraph(
        "Q(COUNT) = E(A, B), E(B, C), E(C, A), E(A, D), E(D, F), E(F, G), E(G, D)",
        BY_NODE + "SELECT SUM(t.n::HUGEINT * u.n)::HUGEINT FROM t, E, t AS u WHERE t.a = E.a AND E.b = u.a",
        both=True,
    ),
}


def edges_of(path: Path) -> np.ndarray:
    """Each edge once, from the smaller node to the larger, in a random order."""
    rows = np.loadtxt(path, dtype=np.int64, usecols=(0, 1))
    rows = np.unique(np.sort(rows[rows[:, 0] != rows[:, 1]], axis=1), axis=0)
    return rows[np.random.default_rng(1).permutation(len(rows))]


def measure(name: str, pattern: Subgraph, edges: np.ndarray, last: int) -> None:
    """Prints the time of an edge and of a recount; raises if the counts differ."""
    first = edges[: len(edges) - last]
    loaded = np.concatenate([first, first[:, ::-1]]) if pattern.both else first
    db = Database(replan=False)
    db.create_table("E", {"a": "int", "b": "int"})
    db.insert("E", pa.table({"a": loaded[:, 0], "b": loaded[:, 1]}))
    began = process_time()
    view = db.create_view("counted", pattern.rule)
    built = process_time() - began
    slowest, whole = 0.0, 0.0
    for a, b in edges[-last:].tolist():
        began = process_time()
        db.insert("E", [(a, b), (b, a)] if pattern.both else [(a, b)])
        found = view.scalar()
        taken = process_time() - began
        slowest, whole = max(slowest, taken), whole + taken
    one, explained = whole / last, view.explain()
    told = f"{name:<9} {explained.strategy:<10} built in {built:6.1f} s; an edge {1e6 * one:9,.0f} µs"
    seconds, theirs = recount(pattern, edges)
    if theirs != found:
        raise AssertionError(f"{name}: {found} here, {theirs} in DuckDB")
    print(
        f"{told} (slowest {1e3 * slowest:,.1f} ms); DuckDB's recount {seconds:,.2f} s, {seconds / one:,.0f} edges' "
        f"worth; count {found:,}, update {explained.update}",
        flush=True,
    )


def recount(pattern: Subgraph, edges: np.ndarray) -> tuple[float, int]:
    """DuckDB's CPU time and its count."""
    rows = np.concatenate([edges, edges[:, ::-1]]) if pattern.both else edges
    connection = duckdb.connect()
    connection.register("given", pa.table({"a": rows[:, 0], "b": rows[:, 1]}))
    connection.execute("CREATE TABLE E AS SELECT * FROM given")
    began = process_time()
    (found,) = connection.execute(pattern.recount).fetchone() or (None,)
    return process_time() - began, int(found or 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--edges", default="500")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    if not given.graph.is_file():
        print(f"{given.graph} is not there: give the path of a file with an edge a line, as SNAP has them")
        return 1
    edges = edges_of(given.graph)
    last = len(edges) if given.edges == "all" else int(given.edges)
    print(f"{given.graph.name}: {len(edges):,} edges, the last {last:,} one by one", flush=True)
    for name, pattern in PATTERNS.items():
        if given.only in name:
            measure(name, pattern, edges, last)
    return 0


if __name__ == "__main__":
    sys.exit(main())
