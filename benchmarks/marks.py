"""Do inserts into append-only tables cost the same however full they are? Counts kernel operations over growing n.

    python -m benchmarks.marks [--largest 1000000] [--cpu]

Acyclic joins over skewed data, each filled from nothing: a path of three tables, a path of four hops over a graph with
power-law degrees (and over wiki-vote, if it is there), and a snowflake of six tables; no row comes twice. Operations
per insert are counted for `marks` and, at smaller sizes, for the counting view tree beside it, one row at a time; then
inserts per second in batches of 10,000. All rows are deleted again, and the dearest single updates are made.

Results are checked against DuckDB before anything is measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import check_rows, median, parse, seconds, show
from ivme.database import Database
from ivme.view import View

GRAPHS = Path(__file__).parents[2] / "shared/data/graphs"
BATCH = 10_000
SLOPE, SPEED = 0.05, 500_000
COUNTED = (1_000, 3_000, 10_000)
"""The sizes at which the counting view tree is measured."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A join and its tables; `rows` makes the rows of a database of n rows in all."""

    name: str
    query: str
    sql: str
    columns: Mapping[str, tuple[str, ...]]

    def rows(self, n: int) -> dict[str, pa.Table]:
        """About n distinct rows over all tables, the same each time; all columns are skewed."""
        generator = np.random.default_rng(n)
        share = n // len(self.columns)
        return {table: _distinct(generator, names, share) for table, names in self.columns.items()}


PATH = Workload(
    "3-path",
    "Q(A, B, C, D) = R(A, B), S(B, C), T(C, D)",
    "SELECT a, R.b, S.c, d FROM R JOIN S ON R.b = S.b JOIN T ON S.c = T.c",
    {"R": ("a", "b"), "S": ("b", "c"), "T": ("c", "d")},
)
HOPS = Workload(
    "4 hops, power law",
    "Q(A, B, C, D, F) = E(A, B), E(B, C), E(C, D), E(D, F)",
    "SELECT e1.a, e2.a AS b, e3.a AS c, e4.a AS d, e4.b AS f"
    " FROM E e1 JOIN E e2 ON e1.b = e2.a JOIN E e3 ON e2.b = e3.a JOIN E e4 ON e3.b = e4.a",
    {"E": ("a", "b")},
)
SNOWFLAKE = Workload(
    "snowflake of 6",
    "Q(K, L, M, P, Q, X, Y) = fact(K, L, M), first(K, P), second(L, Q), third(M), outer1(P, X), outer2(Q, Y)",
    "SELECT fact.k, fact.l, fact.m, first.p, second.q, x, y FROM fact JOIN first ON fact.k = first.k"
    " JOIN second ON fact.l = second.l JOIN third ON fact.m = third.m"
    " JOIN outer1 ON first.p = outer1.p JOIN outer2 ON second.q = outer2.q",
    {
        "fact": ("k", "l", "m"),
        "first": ("k", "p"),
        "second": ("l", "q"),
        "third": ("m",),
        "outer1": ("p", "x"),
        "outer2": ("q", "y"),
    },
)


def _distinct(generator: np.random.Generator, names: tuple[str, ...], n: int) -> pa.Table:
    """At most n distinct rows in random order, whose values have Zipf frequencies over n/2 values."""
    weights = np.cumsum(1 / np.arange(1, n // 2 + 2))
    drawn = np.searchsorted(weights, generator.random((3 * n, len(names))) * weights[-1]).astype(np.int64)
    rows = generator.permutation(np.unique(drawn, axis=0))[:n]
    return pa.table({name: rows[:, i] for i, name in enumerate(names)})


def _total(rows: Mapping[str, pa.Table]) -> int:
    return sum(len(table) for table in rows.values())


def _database(workload: Workload, strategy: str | None, *, growing: bool = True) -> tuple[Database, View]:
    """An empty database with the view; deletes are possible if tables need not only grow."""
    db = Database()
    for table, columns in workload.columns.items():
        db.create_table(table, dict.fromkeys(columns, "int"), primary_key=columns, append_only=growing)
    view = db.create_view("v", workload.query, **({} if strategy is None else {"strategy": strategy}))
    return db, view


def _batches(rows: Mapping[str, pa.Table], size: int) -> Iterator[dict[str, pa.Table]]:
    """All rows in batches of about a size, each with its share of every table."""
    count = max(1, _total(rows) // size)
    for i in range(count):
        cuts = {name: (len(table) * i // count, len(table) * (i + 1) // count) for name, table in rows.items()}
        yield {name: rows[name].slice(start, end - start) for name, (start, end) in cuts.items() if end > start}


def _apply(db: Database, rows: Mapping[str, pa.Table], size: int, *, delete: bool = False) -> None:
    for part in _batches(rows, size):
        with db.batch() as batch:
            for table, some in part.items():
                (batch.delete if delete else batch.insert)(table, some)


def _check(workload: Workload) -> None:
    """The rows of a small database, halfway deleted, are DuckDB's."""
    db, view = _database(workload, "marks", growing=False)
    rows = workload.rows(240)
    _apply(db, rows, 20)
    _apply(db, {name: table.slice(0, len(table) // 3) for name, table in rows.items()}, 7, delete=True)
    left = {name: table.slice(len(table) // 3) for name, table in rows.items()}
    check_rows(view.to_arrow(), workload.sql, left)


def operations(workload: Workload, rows: Mapping[str, pa.Table], strategy: str, size: int) -> tuple[float, float]:
    """Kernel operations for each insert of these rows, and for each delete of all of them afterwards."""
    db, view = _database(workload, strategy, growing=False)
    n = _total(rows)
    _apply(db, rows, size)
    inserted = view.stats()["operations"]
    shuffled = {name: table.take(np.random.default_rng(1).permutation(len(table))) for name, table in rows.items()}
    _apply(db, shuffled, size, delete=True)
    return inserted / n, (view.stats()["operations"] - inserted) / n


def slope(sizes: list[int], counts: list[float]) -> float:
    """The growth of counts with n on a log-log scale, by least squares."""
    x, y = np.log(sizes), np.log(counts)
    return float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())


def flat(workload: Workload, sizes: list[int], options: argparse.Namespace) -> bool:
    """Operations per insert and per delete at growing sizes, the view tree beside it, and the speed at the largest."""
    counts = [operations(workload, workload.rows(n), "marks", BATCH) for n in sizes]
    for n, (inserted, deleted) in zip(sizes, counts, strict=True):
        print(f"  n = {n:>9,}: {inserted:6.2f} operations an insert, {deleted:6.2f} a delete")
    grown = [slope(sizes, [each[i] for each in counts]) for i in (0, 1)]
    show(f"{workload.name}: slope of an insert", grown[0], "", f"<= {SLOPE}")
    show(f"{workload.name}: slope of a delete", grown[1], "", f"<= {SLOPE}")
    trees = [operations(workload, workload.rows(n), "view-tree", 1)[0] for n in COUNTED]
    ours = [operations(workload, workload.rows(n), "marks", 1)[0] for n in COUNTED]
    show(f"{workload.name}: slope of an insert, one by one", slope([*COUNTED], ours), "")
    show(f"{workload.name}: the counting view tree's", slope([*COUNTED], trees), "")
    speed = _speed(workload, workload.rows(sizes[-1]), options.runs)
    show(f"{workload.name}: batches of {BATCH:,}", speed, "inserts/s", f">= {SPEED:,}")
    return max(grown) <= SLOPE and speed >= SPEED


def _speed(workload: Workload, rows: Mapping[str, pa.Table], runs: int) -> float:
    """Inserts a second in batches; the view is there when the clock starts."""

    def once() -> float:
        db, view = _database(workload, None)
        assert view.explain().strategy == "marks"
        return seconds(lambda: _apply(db, rows, BATCH))

    return _total(rows) / median(once, runs)


def wiki_vote(path: Path, options: argparse.Namespace) -> bool:
    """Four hops over all of wiki-vote, and over parts of it."""
    edges = np.loadtxt(path, dtype=np.int64, comments="#")
    edges = edges[np.random.default_rng(0).permutation(len(edges))]
    whole = pa.table({"a": edges[:, 0], "b": edges[:, 1]})
    sizes = [len(whole) // 10, len(whole) // 3, len(whole)]
    counts = [operations(HOPS, {"E": whole.slice(0, n)}, "marks", BATCH) for n in sizes]
    grown = [slope(sizes, [each[i] for each in counts]) for i in (0, 1)]
    print("  " + ", ".join(f"n = {n:,}: {a:.2f} and {b:.2f}" for n, (a, b) in zip(sizes, counts, strict=True)))
    show("4 hops, wiki-vote: slope of an insert", grown[0], "", f"<= {SLOPE}")
    show("4 hops, wiki-vote: slope of a delete", grown[1], "", f"<= {SLOPE}")
    trees = [operations(HOPS, {"E": whole.slice(0, n)}, "view-tree", 1)[0] for n in COUNTED]
    show("4 hops, wiki-vote: the counting view tree's", slope([*COUNTED], trees), "")
    speed = _speed(HOPS, {"E": whole}, options.runs)
    show(f"4 hops, wiki-vote: batches of {BATCH:,}", speed, "inserts/s", f">= {SPEED:,}")
    return max(grown) <= SLOPE and speed >= SPEED


def single_updates(largest: int) -> bool:
    """One row that all others wait for: the first partner of n rows comes, and goes again."""
    sizes = [largest // 100, largest // 10, largest]
    costs: list[tuple[int, int]] = []
    for n in sizes:
        db, view = _database(PATH, "marks", growing=False)
        zeros = pa.array(np.zeros(n, np.int64))
        db.insert("S", pa.table({"b": np.arange(n), "c": zeros}))
        db.insert("R", pa.table({"a": zeros, "b": np.arange(n)}))
        costs.append((_cost(view, db.insert, (0, 0)), _cost(view, db.delete, (0, 0))))
    measured = list(zip(sizes, costs, strict=True))
    grown = [
        max(log(later[i] / earlier[i]) / log(m / n) for (n, earlier), (m, later) in pairwise(measured)) for i in (0, 1)
    ]
    show("the dearest insert: slope", grown[0], "", "<= 1.0")
    show("the dearest delete: slope", grown[1], "", "<= 1.0")
    return max(grown) <= 1.01


def _cost(view: View, change: Any, row: tuple[int, ...]) -> int:
    before = view.stats()["operations"]
    change("T", [row])
    return int(view.stats()["operations"] - before)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--largest", type=int, default=1_000_000)
    parser.add_argument("--graphs", type=Path, default=GRAPHS, help="the folder with wiki-vote.txt")
    options = parse(parser)
    sizes = [n for n in (10_000, 30_000, 100_000, 300_000, 1_000_000) if n <= options.largest]
    held = []
    for workload in (PATH, HOPS, SNOWFLAKE):
        _check(workload)
        held.append(flat(workload, sizes, options))
    votes = options.graphs / "wiki-vote.txt"
    if votes.exists():
        held.append(wiki_vote(votes, options))
    else:
        print(f"wiki-vote is left out: there is no {votes}")
    held.append(single_updates(options.largest // 10))
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
