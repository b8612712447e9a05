"""Reading views of every strategy into Arrow: rows a second, the ratio to a view tree, and operations a row.

    python -m benchmarks.read_strategies [--rows 200000] [--runs 3] [--cpu] [--only NAME]

Each view is made small first, and its answers compared with DuckDB's, read as a table, as a list and by its items. What
is timed is `to_arrow`; for a view that hides the key it groups by also `weighted`, which adds equal rows up; and for
views with parameters `request_many` over all of their values.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import check_rows, median, parse, seconds
from ivme.database import Database
from ivme.view import View

TARGET = 5_000_000
"""Rows a second, for any strategy."""

Tables = dict[str, pa.Table]
TRIANGLE = "R(A, B), S(B, C), T(C, A)"
JOINED = "R, S, T WHERE R.b = S.a AND S.b = T.a AND T.b = R.a"


@dataclass(frozen=True, slots=True)
class Case:
    """A view, the same in DuckDB's words, and how its rows are read."""

    name: str
    query: str
    sql: str
    tables: Callable[[int], Tables]
    options: Mapping[str, Any] = field(default_factory=lambda: {"strategy": "skew", "epsilon": Fraction(1, 2)})
    types: Mapping[str, str] = field(default_factory=dict)
    way: str = "to_arrow"

    def made(self, rows: int) -> tuple[View, Tables]:
        """The view over tables such that it has about that many rows."""
        database, tables = Database(), self.tables(rows)
        for name, table in tables.items():
            database.create_table(name, {column: self.types.get(column, "int") for column in table.column_names})
            database.insert(name, table)
        return database.create_view("v", self.query, **self.options), tables

    def read(self, view: View, asked: Mapping[str, Any]) -> int:
        """Reads everything; how many rows came."""
        if self.way == "weighted":
            return sum(int(counts.sum()) for _, counts in view.weighted())
        return int(self.table(view, asked).num_rows)

    def table(self, view: View, asked: Mapping[str, Any]) -> pa.Table:
        """All rows; those of a view with parameters with their values in front."""
        return view.request_many(**asked) if self.way == "request_many" else view.to_arrow()


def graphs(rows: int) -> Tables:
    """Three relations with about so many triangles: a few nodes have many neighbours, and many a few.

    Edges go from i to i, from the hubs to everything, and round a circle of cliques.
    """
    nodes, hubs = max(40, rows // 20), 4
    step = np.arange(nodes)
    clique = np.repeat(step, 5), np.repeat(step // 5 * 5, 5) + np.tile(np.arange(5), nodes)
    to_all = np.repeat(np.arange(hubs), nodes), np.tile(step, hubs)
    pairs = [np.stack(clique), np.stack(to_all), np.stack(to_all[::-1])]
    found = np.unique(np.concatenate(pairs, axis=1), axis=1)
    return {name: pa.table({"a": found[0], "b": found[1]}) for name in "RST"}


def shuffled(rows: int) -> Tables:
    """The same, each relation in an order of its own."""
    random = np.random.default_rng(4)
    return {name: table.take(random.permutation(table.num_rows)) for name, table in graphs(rows).items()}


def stars(rows: int) -> Tables:
    """R(a, b) and S(a, c) with a few heavy values of a and many light ones; the join has about so many rows."""
    random = np.random.default_rng(2)
    hubs = 4
    each = max(2, int((rows / 2 / hubs) ** 0.5))
    light = rows // 2 // 4
    tables = {}
    for name, column in (("R", "b"), ("S", "c")):
        heavy = np.stack([np.repeat(np.arange(hubs), each), np.tile(np.arange(each), hubs)])
        some = np.stack([np.repeat(np.arange(light) + hubs, 2), random.integers(0, 10 * rows, 2 * light)])
        both = np.unique(np.concatenate([heavy, some], axis=1), axis=1)
        tables[name] = pa.table({"a": both[0], column: both[1], f"x{column}": both[1] % 1000})
    return tables


def flat(rows: int) -> Tables:
    """R(a, b) and S(a, c), joined by a to about as many rows."""
    random = np.random.default_rng(1)
    r = {"a": random.integers(0, rows, rows), "b": np.arange(rows)}
    return {"R": pa.table(r), "S": pa.table({"a": random.integers(0, rows, rows), "c": np.arange(rows)})}


def paths(rows: int) -> Tables:
    """R(a, b), S(b, c), T(c, d), each value in few rows."""
    random = np.random.default_rng(3)
    pairs = {"R": "ab", "S": "bc", "T": "cd"}
    return {name: pa.table({c: random.integers(0, rows, rows) for c in columns}) for name, columns in pairs.items()}


def factors(rows: int) -> Tables:
    """Two components: R(a, b) alone, and S(c, d) with T(c, e)."""
    each = max(2, int(rows**0.5))
    step = np.arange(each)
    return {
        "R": pa.table({"a": step, "b": step}),
        "S": pa.table({"c": step, "d": step}),
        "T": pa.table({"c": step, "e": step}),
    }


def whole_numbers(rows: int) -> Tables:
    return {"R": pa.table({"a": np.arange(rows), "b": np.arange(rows)})}


def prices(rows: int) -> Tables:
    """R(a, b, f, p): groups of two rows by a, with floats and decimals."""
    from decimal import Decimal

    step = np.arange(2 * rows)
    amounts = pa.array([Decimal(i).scaleb(-2) for i in range(100)], pa.decimal128(12, 2)).take(pa.array(step % 100))
    return {"R": pa.table({"a": step // 2, "b": step, "f": step / 8, "p": amounts})}


FLAT = "SELECT R.a, b, c FROM R JOIN S ON R.a = S.a"
FLAT_RULE = "Q(A, B, C) = R(A, B), S(A, C)"
PAIRS = "SELECT b, c FROM R JOIN S ON R.a = S.a"
PATH = "SELECT a, R.b, S.c, d FROM R JOIN S ON R.b = S.b JOIN T ON S.c = T.c"
SUMS = f"SELECT R.a, COUNT(*) AS n, SUM(R.b) AS s FROM {JOINED} GROUP BY R.a"
TOTALS = "SELECT COUNT(*) AS n, SUM(b) AS s FROM R"
PRODUCT = "SELECT a, b, S.c, d, e FROM R, S JOIN T ON S.c = T.c"


def grouped(name: str, shown: str, way: str = "to_arrow") -> Case:
    """Groups of R by a, read from a view tree."""
    text = f"SELECT {shown} FROM R GROUP BY a"
    return Case(name, text, text, prices, {}, {"f": "float", "p": "decimal(12, 2)"}, way)


def same(name: str, text: str, tables: Callable[[int], Tables]) -> Case:
    """A view over heavy and light parts, in SQL."""
    return Case(name, text, text, tables)


CASES = [
    Case("view tree: join", FLAT_RULE, FLAT, flat, {}),
    grouped("view tree: COUNT", "a, COUNT(*) AS n"),
    grouped("view tree: SUM of ints", "a, SUM(b) AS n"),
    grouped("view tree: SUM of floats", "a, SUM(f) AS n"),
    grouped("view tree: SUM of decimals", "a, SUM(p) AS n"),
    grouped("view tree: AVG of ints", "a, AVG(b) AS n"),
    grouped("view tree: COUNT(b), MIN, MAX", "a, COUNT(b) AS n, MIN(b) AS l, MAX(b) AS m"),
    grouped("key not selected", "SUM(b) AS n"),
    grouped("key not selected, weighted", "SUM(b) AS n", "weighted"),
    Case("global aggregates", TOTALS, TOTALS, whole_numbers, {}),
    Case("guards of two components", "Q(A, B, C, D, E) = R(A, B), S(C, D), T(C, E)", PRODUCT, factors, {}),
    Case("classical", FLAT_RULE, FLAT, flat, {"strategy": "classical"}),
    Case("recompute", FLAT_RULE, FLAT, flat, {"strategy": "recompute"}),
    Case("marks: 3-path", "Q(A, B, C, D) = R(A, B), S(B, C), T(C, D)", PATH, paths, {"strategy": "marks"}),
    same("skew C1, distinct", f"SELECT DISTINCT R.a FROM {JOINED}", graphs),
    same("skew C1, distinct, any order", f"SELECT DISTINCT R.a FROM {JOINED}", shuffled),
    same("skew C1, counts", f"SELECT R.a, COUNT(*) AS n FROM {JOINED} GROUP BY R.a", graphs),
    same("skew C1, sums", SUMS, graphs),
    same("skew C1, sums, any order", SUMS, shuffled),
    same("skew C2, distinct", f"SELECT DISTINCT R.a, R.b FROM {JOINED}", graphs),
    Case("skew C2", f"Q(A, B|.) = {TRIANGLE}", f"SELECT R.a, R.b FROM {JOINED}", graphs),
    Case("skew C3", f"Q(A, B, C|.) = {TRIANGLE}", f"SELECT R.a, S.a, T.a FROM {JOINED}", graphs),
    same("skew listing", PAIRS, stars),
    same("skew listing, distinct", PAIRS.replace("SELECT", "SELECT DISTINCT"), stars),
    same("skew listing, sums", PAIRS.replace(" FROM", ", COUNT(*) AS n, SUM(xb) AS s FROM") + " GROUP BY b, c", stars),
    Case("skew C3 by A", f"Q(B, C|A) = {TRIANGLE}", f"SELECT R.a, S.a, T.a FROM {JOINED}", graphs, way="request_many"),
    Case("skew listing by B", "Q(C|B) = R(A, B, X), S(A, C, Y)", PAIRS, stars, way="request_many"),
]


def check(case: Case) -> None:
    """The small view has DuckDB's rows, whichever way it is read."""
    view, tables = case.made(600)
    check_rows(case.table(view, parameters(view, tables)), case.sql, tables)
    if view.parameters:
        return
    weighted: Counter[tuple[Any, ...]] = Counter()
    for batch, counts in view.weighted():
        for row, count in zip(zip(*(c.to_pylist() for c in batch.columns), strict=True), counts.tolist(), strict=True):
            weighted[row] += count
    listed = Counter(zip(*(column.to_pylist() for column in view.to_arrow().columns), strict=True))
    for other in (Counter(view), Counter(dict(view.items())), weighted):
        if other != listed:
            raise AssertionError(f"{case.name}: the ways of reading differ")


def parameters(view: View, tables: Tables) -> dict[str, Any]:
    """Requests for all rows: each value of the first table's column once."""
    return {name: np.unique(tables["R"].column(name.lower()).to_numpy()) for name in view.parameters}


def steps(case: Case, view: View, asked: Mapping[str, Any]) -> int:
    """The kernel's operations for one reading: rows with many contexts cost as many."""
    backend = view._runtime.backend
    before = backend.operations
    case.read(view, asked)
    return backend.operations - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--only", default="")
    options = parse(parser)
    first, slow = 0.0, []
    for case in CASES:
        if options.only not in case.name:
            continue
        check(case)
        view, tables = case.made(options.rows)
        asked = parameters(view, tables)
        rows = case.read(view, asked)
        took = median(partial(seconds, partial(case.read, view, asked)), options.runs)
        speed = rows / took
        first = first or speed
        slow += [case.name] if speed < TARGET and rows > 1 else []
        figures = f"{rows:>9,} rows {1e3 * took:>9.2f} ms {speed:>14,.0f} rows/s {speed / first:>8.3f}"
        print(f"{case.name:<32} {figures} {steps(case, view, asked) / max(rows, 1):>8.1f}", flush=True)
    if slow:
        print(f"below {TARGET:,} rows/s: {', '.join(slow)}")


if __name__ == "__main__":
    main()
