"""Views in order while N grows: a top ten, running sums and ASOF joins that are maintained, for one changed row.

    python -m benchmarks.order_growth [--rows 10000 100000 1000000 10000000] [--sqlite-most 1000000]
        [--pathway-most 100000]

Rows come at the end of the order, at random places, and at the worst place: before all others, where every running sum
behind changes, or a price that all later orders of its key take. Answers are compared with those of DuckDB. It and
SQLite, which has an index, compute the answer anew; Pathway maintains ASOF joins, and has neither a top ten nor running
sums under changes. Times are of the processor, but for Pathway's, which has threads of its own. Operations are
comparisons in ordered maps and the kernel's. Slopes are exponents of N between the least and the greatest size.
"""

from __future__ import annotations

import argparse
import math
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.peers.missing import MissingError
from benchmarks.peers.pathway_asof import QUERY as _ASOF
from benchmarks.peers.pathway_asof import pathway_asof
from ivme import Database

_REPEATED = 20
_WORST = 2
_KEYS = 10
_TOP = "SELECT g, SUM(x) AS s FROM r GROUP BY g ORDER BY s DESC, g LIMIT 10"
_RUNNING = "SELECT g, ts, x, SUM(x) OVER (PARTITION BY g ORDER BY ts) AS total FROM r"
_ASOF_IN_SQLITE = """SELECT o.number, (SELECT price FROM prices p WHERE p.k = o.k AND p.ts <= o.ts
    ORDER BY p.ts DESC LIMIT 1) AS price FROM orders o"""


Batches = dict[str, list[tuple[int, ...]]]
"""Rows that come one by one, by where they come."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A view over tables of whole numbers, with batches of one row by where they come, and SQLite's text and index."""

    name: str
    query: str
    tables: dict[str, pa.Table]
    changed: str
    batches: Batches
    sqlite: str
    index: str
    check: str


def workloads(size: int) -> Iterator[Workload]:
    """A top ten of so many groups; running sums and an ASOF join over so many rows, in ten partitions."""
    rng = np.random.default_rng(1)
    groups = {"r": pa.table({"g": np.arange(size), "x": rng.integers(0, 10**6, size)})}
    updates = zip(rng.integers(0, size, _REPEATED).tolist(), rng.integers(-1000, 1000, _REPEATED).tolist(), strict=True)
    top: Batches = {"at random places": list(updates), "first, of ten": [(n, 10**7) for n in range(_WORST)]}
    everything = "SELECT g, s FROM ({})"
    yield Workload("top 10 of groups", _TOP, groups, "r", top, _TOP, "", everything)
    moments, keys = 2 * np.arange(size) + 2, np.arange(size) % _KEYS
    rows = {"r": pa.table({"g": keys, "ts": moments, "x": rng.integers(0, 100, size)})}
    yield Workload(
        *("running sum", _RUNNING, rows, "r", _places(size, lambda n, ts: (n % _KEYS, ts, 1)), _RUNNING),
        *("CREATE INDEX by_ts ON r (g, ts)", "SELECT COUNT(*), SUM(total) FROM ({})"),
    )
    prices = pa.table({"k": keys, "ts": moments, "price": rng.integers(0, 100, size)})
    orders = pa.table({"number": np.arange(size), "k": keys, "ts": rng.permutation(moments + 1)})
    changes = _places(size, lambda n, ts: (n % _KEYS, ts, 7))
    last = int(moments[-1])
    alone = pa.table({"k": keys[-_KEYS:], "ts": moments[-_KEYS:] * 0 + last // 2, "price": keys[-_KEYS:]})
    summed = "SELECT COUNT(price), SUM(price) FROM ({})"
    index = "CREATE INDEX by_ts ON prices (k, ts)"
    tables = {"orders": orders, "prices": prices}
    yield Workload("ASOF join, prices", _ASOF, tables, "prices", changes, _ASOF_IN_SQLITE, index, summed)
    few = {"orders": orders, "prices": alone}
    worst: Batches = {"worst place": [(n, last // 2 + 1, 7) for n in range(_WORST)]}
    yield Workload("ASOF join, few prices", _ASOF, few, "prices", worst, _ASOF_IN_SQLITE, index, summed)


def _places(size: int, row: Callable[[int, int], tuple[int, ...]]) -> Batches:
    places = np.random.default_rng(2).integers(1, size, _REPEATED).tolist()
    return {
        "appended": [row(n, 2 * size + 4 + 2 * n) for n in range(_REPEATED)],
        "at random places": [row(n, 2 * place + 1) for n, place in enumerate(places)],
        "before all others": [row(n, 0) for n in range(_WORST)],
    }


def _timed(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return 1000 * (time.process_time() - start)


def _operations(db: Database) -> int:
    compared = sum(getattr(state.group, "operations", 0) for state in db.definitions.runtime.catalog.views.values())
    kernel: Any = db.definitions.runtime.backend
    return int(compared) + int(kernel.operations)


def measure(work: Workload, peers: bool) -> dict[str, list[float]]:
    """By place: operations and milliseconds of a change, the rows that leave and enter; DuckDB's and SQLite's ms."""
    db, duck = Database(), duckdb.connect()
    for name, rows in work.tables.items():
        db.create_table(name, dict.fromkeys(rows.column_names, "int"))
        db.insert(name, rows)
        duck.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
    view = db.create_view("v", work.query)
    theirs = _timed(lambda: duck.sql(work.query).to_arrow_table())
    others = _in_sqlite(work) if peers else math.nan
    found = {}
    for place, rows in work.batches.items():
        changes = view.changes()
        before, spent = _operations(db), 0.0
        for row in rows:
            spent += _timed(partial(db.insert, work.changed, [row]))
        counted = _operations(db) - before
        moved = sum(abs(weight) for change in changes for weight in change.values())
        n = len(rows)
        found[place] = [counted / n, spent / n, moved / n, theirs, others]
        marks = ", ".join("?" for _ in rows[0])
        duck.executemany(f"INSERT INTO {work.changed} VALUES ({marks})", rows)
    _compare(work, view, duck)
    db.close()
    duck.close()
    return found


def _compare(work: Workload, view: Any, duck: Any) -> None:
    """Raises unless our rows add up to what DuckDB has after all changes."""
    mine = view.to_arrow()
    expected = duck.execute(work.check.format(work.query)).fetchall()
    found = duck.execute(work.check.format("SELECT * FROM mine")).fetchall()
    assert mine.num_rows, work.name
    assert expected == found, (work.name, expected[:3], found[:3])


def _in_sqlite(work: Workload) -> float:
    lite = sqlite3.connect(":memory:")
    for name, rows in work.tables.items():
        lite.execute(f"CREATE TABLE {name} ({', '.join(f'{column} INTEGER' for column in rows.column_names)})")
        marks = ", ".join("?" for _ in rows.column_names)
        lists = (column.to_pylist() for column in rows.columns)
        lite.executemany(f"INSERT INTO {name} VALUES ({marks})", zip(*lists, strict=True))
    lite.execute(work.index)
    spent = _timed(lambda: lite.execute(work.sqlite).fetchall())
    lite.close()
    return spent


def _in_pathway(work: Workload, size: int, most: int) -> str:
    if not work.name.startswith("ASOF join"):
        return "has none"
    if size > most or "at random places" not in work.batches:
        return ""
    try:
        return f"{pathway_asof(work.tables, work.batches['at random places']):,.1f}"
    except MissingError as error:
        return str(error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--sqlite-most", type=int, default=1_000_000, help="SQLite up to so many rows")
    parser.add_argument("--pathway-most", type=int, default=100_000, help="Pathway up to so many rows")
    given = parser.parse_args()
    print(
        "| view, and where the row comes | N | operations | ms | rows out and in | ns each | operations each ",
        end="",
    )
    print("| DuckDB, ms | SQLite, ms | Pathway, ms |\n" + "|---" * 10 + "|")
    grown: dict[str, list[list[float]]] = {}
    for size in given.rows:
        for work in workloads(size):
            pathway = _in_pathway(work, size, given.pathway_most)
            for place, numbers in measure(work, size <= given.sqlite_most).items():
                operations, spent, moved, theirs, others = numbers
                each = [1e6 * spent / moved, operations / moved] if moved >= 1 else [math.nan, math.nan]
                line = [operations, spent, moved, *each, theirs, others]
                grown.setdefault(f"{work.name}, {place}", []).append(line)
                _show(f"{work.name}, {place}", f"{size:,}", line, pathway)
    if len(given.rows) > 1:
        _show_slopes(grown, given.rows)


def _show(name: str, size: str, line: Sequence[float], pathway: str = "") -> None:
    shown = " | ".join("" if math.isnan(each) else f"{each:,.{2 if abs(each) < 100 else 0}f}" for each in line)
    print(f"| {name} | {size} | {shown} | {pathway} |", flush=True)


def _show_slopes(grown: dict[str, list[list[float]]], sizes: list[int]) -> None:
    """Exponents of N for each column that has a figure at the first size and at the last."""
    for name, lines in grown.items():
        pairs = zip(lines[0], lines[-1], strict=True)
        wide = math.log(sizes[-1] / sizes[0])
        _show(name, "slope", [math.log(max(b, 0.01) / max(a, 0.01)) / wide for a, b in pairs])


if __name__ == "__main__":
    main()
