"""Window functions under updates: comparisons and time for one changed row, over N, beside DuckDB that computes anew.

python -m benchmarks.windows [--rows 10000 100000]
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa

from ivme.database import Database

_REPEATED = 20
_OVER = "(PARTITION BY g ORDER BY id)"
WINDOWS = {
    "running sum": f"SUM(x) OVER {_OVER}",
    "LAG": f"LAG(x) OVER {_OVER}",
    "frame of 7 rows": "AVG(x) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)",
    "share of a total": "x - AVG(x) OVER (PARTITION BY g)",
}


def _timed(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def _insert_each(db: Database, rows: list[tuple[int, int, int]]) -> None:
    for row in rows:
        db.insert("r", [row])


def _comparisons(db: Database) -> int:
    return sum(getattr(state.group, "operations", 0) for state in db.definitions.runtime.catalog.views.values())


def measure(text: str, size: int, partitions: int) -> tuple[list[float], float]:
    """For appends and for rows at random places, comparisons and milliseconds a row; and DuckDB's milliseconds."""
    rng, db = random.Random(1), Database()
    db.create_table("r", {"id": "int", "g": "int", "x": "int"})
    rows = pa.table(
        {
            "id": [2 * n for n in range(size)],
            "g": [n % partitions for n in range(size)],
            "x": [rng.randrange(100) for _ in range(size)],
        }
    )
    view = db.create_view("v", f"SELECT id, g, {text} AS w FROM r")
    db.insert("r", rows)
    duck = duckdb.connect()
    duck.register("r", rows)
    query = f"SELECT id, g, {text} AS w FROM r"
    expected: list[Any] = duck.execute(f"SELECT COUNT(*), SUM(w) FROM ({query})").fetchall()
    found = [(len(view), sum(row[2] for row in view if row[2] is not None))]
    assert abs(float(expected[0][1]) - float(found[0][1])) < 1e-3 * size, "the rows are those of DuckDB"
    numbers: list[float] = []
    appended = [2 * size + 2 * n for n in range(_REPEATED)]
    for places in (appended, [2 * rng.randrange(size) + 1 for _ in range(_REPEATED)]):
        before = _comparisons(db)
        changed = [(place, place // 2 % partitions, 1) for place in places]
        spent = _timed(partial(_insert_each, db, changed))
        numbers += [(_comparisons(db) - before) / _REPEATED, 1000 * spent / _REPEATED]
    return numbers, 1000 * _timed(lambda: duck.sql(query).to_arrow_table())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--partitions", type=int, default=10)
    given = parser.parse_args()
    print("| window | N | append: comparisons | ms | random place: comparisons | ms | DuckDB anew, ms |")
    print("|---|---|---|---|---|---|---|")
    for name, text in WINDOWS.items():
        for size in given.rows:
            numbers, duck = measure(text, size, given.partitions)
            shown = " | ".join(f"{number:.1f}" for number in numbers)
            print(f"| {name} | {size:,} | {shown} | {duck:.1f} |", flush=True)


if __name__ == "__main__":
    main()
