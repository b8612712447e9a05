"""Values by position: a median under changes, the rank and the running sum of one row, a range of a parameter.

    python -m benchmarks.positions [--rows 10000 100000 1000000] [--without-sqlite]

Answers are compared with those of DuckDB and SQLite before anything is timed. These have an index where it helps, and
compute the answer from the rows; ours are maintained. Times are of the processor, for one changed row or one request;
operations are comparisons in ordered maps, or the kernel's where a view is one block. Slopes are exponents of N between
the least and the greatest size.
"""

from __future__ import annotations

import argparse
import math
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from ivme import Database

_REPEATED = 20
_RANK = "SELECT place FROM (SELECT id, RANK() OVER (ORDER BY score DESC) AS place FROM r) WHERE id = :id"
_RUNNING = "SELECT total FROM (SELECT id, SUM(x) OVER (ORDER BY score, id) AS total FROM r) WHERE id = :id"


@dataclass(frozen=True, slots=True)
class Case:
    """A view and a request of it, with what SQLite runs for the same, and the rows that one change inserts."""

    name: str
    text: str
    asked: dict[str, int]
    sqlite: str | None


def cases(rows: pa.Table) -> list[Case]:
    """Views over rows, and requests for the row in the middle."""
    size, middle = rows.num_rows, int(np.argsort(rows.column("score").to_numpy(), kind="stable")[rows.num_rows // 2])
    return [
        Case("median of one group", "SELECT MEDIAN(x) AS m FROM r", {}, None),
        Case(
            *("rank of one row", _RANK, {"id": middle}),
            "SELECT 1 + COUNT(*) FROM r WHERE score > (SELECT score FROM r WHERE id = :id)",
        ),
        Case(
            *("running sum at one row", _RUNNING, {"id": middle}),
            """SELECT SUM(r.x) FROM r, (SELECT id, score FROM r WHERE id = :id) q
               WHERE (r.score, r.id) <= (q.score, q.id)""",
        ),
        Case(
            *("sum over a range", "SELECT COUNT(*) AS n, SUM(x) AS s FROM r WHERE score BETWEEN :low AND :high"),
            {"low": size // 4, "high": 3 * size},
            "SELECT COUNT(*), SUM(x) FROM r WHERE score BETWEEN :low AND :high",
        ),
    ]


def rows_of(size: int) -> pa.Table:
    rng = np.random.default_rng(1)
    columns = {"id": np.arange(size), "score": rng.integers(0, 4 * size, size), "x": rng.integers(0, 10**6, size)}
    return pa.table(columns)


def _timed(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return 1000 * (time.process_time() - start)


def _insert_each(db: Database, rows: list[tuple[int, int, int]]) -> None:
    for row in rows:
        db.insert("r", [row])


def _operations(db: Database) -> int:
    compared = sum(getattr(state.group, "operations", 0) for state in db.definitions.runtime.catalog.views.values())
    kernel: Any = db.definitions.runtime.backend
    return int(compared) + int(kernel.operations)


def measure(case: Case, rows: pa.Table, duck: Any, lite: sqlite3.Connection | None) -> list[float]:
    """Operations and milliseconds of a change, those of a request, and milliseconds of DuckDB and of SQLite."""
    db = Database()
    db.create_table("r", dict.fromkeys(rows.column_names, "int"))
    db.insert("r", rows)
    view = db.create_view("v", case.text)
    in_duckdb = case.text
    for name in case.asked:
        in_duckdb = in_duckdb.replace(f":{name}", f"${name}")
    expected = duck.execute(in_duckdb, case.asked).fetchall()
    assert expected == list(view(**case.asked)), (case.name, expected, list(view(**case.asked)))
    theirs = _timed(lambda: duck.execute(in_duckdb, case.asked).fetchall())
    others = float("nan")
    if lite is not None and case.sqlite is not None:
        assert [tuple(row) for row in lite.execute(case.sqlite, case.asked).fetchall()] == expected, case.name
        others = _timed(lambda: lite.execute(str(case.sqlite), case.asked).fetchall())
    size = rows.num_rows
    rng = np.random.default_rng(2)
    new = [(size + n, int(score), n) for n, score in enumerate(rng.integers(0, 4 * size, _REPEATED))]
    before = _operations(db)
    spent = _timed(lambda: _insert_each(db, new))
    changed = (_operations(db) - before) / _REPEATED
    before = _operations(db)
    read = _timed(lambda: [list(view(**case.asked)) for _ in range(_REPEATED)])
    requested = (_operations(db) - before) / _REPEATED
    db.close()
    return [changed, spent / _REPEATED, requested, read / _REPEATED, theirs, others]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--without-sqlite", action="store_true")
    given = parser.parse_args()
    print("| answer | N | change: operations | ms | request: operations | ms | DuckDB, ms | SQLite, ms |")
    print("|---|---|---|---|---|---|---|---|")
    found: dict[str, list[list[float]]] = {}
    for size in given.rows:
        rows, duck = rows_of(size), duckdb.connect()
        duck.execute("CREATE TABLE r AS SELECT * FROM rows")
        lite = None if given.without_sqlite else sqlite3.connect(":memory:")
        if lite is not None:
            lite.execute("CREATE TABLE r (id INTEGER PRIMARY KEY, score INTEGER, x INTEGER)")
            lists = (column.to_pylist() for column in rows.columns)
            lite.executemany("INSERT INTO r VALUES (?, ?, ?)", zip(*lists, strict=True))
            lite.execute("CREATE INDEX by_score ON r (score, id)")
        for case in cases(rows):
            numbers = measure(case, rows, duck, lite)
            found.setdefault(case.name, []).append(numbers)
            shown = " | ".join("" if math.isnan(number) else f"{number:,.2f}" for number in numbers)
            print(f"| {case.name} | {size:,} | {shown} |", flush=True)
    if len(given.rows) > 1:
        _print_slopes(found, given.rows)


def _print_slopes(found: dict[str, list[list[float]]], sizes: list[int]) -> None:
    for name, lines in found.items():
        grown = [math.log(max(b, 0.01) / max(a, 0.01)) for a, b in zip(lines[0], lines[-1], strict=True)]
        slopes = [each / math.log(sizes[-1] / sizes[0]) for each in grown]
        shown = " | ".join("" if math.isnan(slope) else f"{slope:.2f}" for slope in slopes)
        print(f"| {name} | slope | {shown} |")


if __name__ == "__main__":
    main()
