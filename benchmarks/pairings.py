"""ASOF joins, counts over inequalities, a clock, and first rows of requests: one change over N, beside others.

    python -m benchmarks.pairings [--rows 10000 100000 1000000]

Answers are compared with those of DuckDB before anything is timed; DuckDB and SQLite, which has an index, compute them
anew. Times are of the processor; operations are comparisons of rows in ordered maps.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from ivme import Database

_REPEATED = 20
_KEYS = 10
_ASOF = "SELECT o.id, p.price FROM orders o ASOF JOIN prices p ON o.k = p.k AND o.ts >= p.ts"
_COUNT = "SELECT COUNT(*) AS n, SUM(p.price) AS s FROM orders o JOIN prices p ON o.k = p.k AND o.ts >= p.ts"
_TOP = "SELECT id, ts FROM orders WHERE k = :k ORDER BY ts DESC, id LIMIT 10"
_ASOF_IN_SQLITE = """SELECT COUNT(price), SUM(price) FROM (SELECT (SELECT price FROM prices p WHERE p.k = o.k
    AND p.ts <= o.ts ORDER BY p.ts DESC LIMIT 1) AS price FROM orders o)"""


@dataclass(frozen=True, slots=True)
class Case:
    """A view, and the rows that change it one by one, with what DuckDB and SQLite run for all of its rows."""

    name: str
    query: str
    table: str
    rows: list[tuple[Any, ...]]
    duck: str
    sqlite: str | None = None


def _tables(size: int) -> dict[str, pa.Table]:
    rng = np.random.default_rng(1)
    orders = {"id": np.arange(size), "k": np.arange(size) % _KEYS, "ts": rng.permutation(4 * size)[:size]}
    prices = {"k": np.arange(size) % _KEYS, "ts": rng.permutation(4 * size)[:size], "price": rng.integers(0, 100, size)}
    return {"orders": pa.table(orders), "prices": pa.table(prices)}


def _cases(size: int) -> Iterable[Case]:
    rng = random.Random(2)
    ends = [4 * size + n for n in range(_REPEATED)]
    random_places = [rng.randrange(4 * size) for _ in range(_REPEATED)]
    asof = f"SELECT COUNT(price), SUM(price) FROM ({_ASOF})"
    for name, places in (("appended", ends), ("at random places", random_places)):
        orders = [(size + n, n % _KEYS, place) for n, place in enumerate(places)]
        prices = [(n % _KEYS, place, 7) for n, place in enumerate(places)]
        yield Case(f"ASOF join, orders {name}", _ASOF, "orders", orders, asof, _ASOF_IN_SQLITE)
        yield Case(f"ASOF join, prices {name}", _ASOF, "prices", prices, asof, _ASOF_IN_SQLITE)
        yield Case(f"COUNT and SUM of pairs, orders {name}", _COUNT, "orders", orders, _COUNT)
        yield Case(f"COUNT and SUM of pairs, prices {name}", _COUNT, "prices", prices, _COUNT)


def _timed(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return 1000 * (time.process_time() - start)


def _comparisons(db: Database) -> int:
    return sum(getattr(state.group, "operations", 0) for state in db.definitions.runtime.catalog.views.values())


def _insert_each(db: Database, case: Case) -> None:
    for row in case.rows:
        db.insert(case.table, [row])


def _advance_each(db: Database, moments: Iterable[datetime]) -> None:
    for moment in moments:
        db.advance(moment)


def measure(case: Case, size: int) -> list[float]:
    """Comparisons and milliseconds for each changed row; the milliseconds of DuckDB and SQLite for all rows."""
    tables, db, duck, lite = _tables(size), Database(), duckdb.connect(), sqlite3.connect(":memory:")
    for name, rows in tables.items():
        db.create_table(name, dict.fromkeys(rows.column_names, "int"))
        db.insert(name, rows)
        duck.register(name, rows)
        lite.execute(f"CREATE TABLE {name} ({', '.join(rows.column_names)})")
        marks = ", ".join("?" for _ in rows.column_names)
        lite.executemany(
            f"INSERT INTO {name} VALUES ({marks})", zip(*(c.to_pylist() for c in rows.columns), strict=True)
        )
        lite.execute(f"CREATE INDEX {name}_by_ts ON {name} (k, ts)")
    view = db.create_view("v", case.query)
    other: list[float] = []
    if size <= 100_000 or case.query == _ASOF:
        expected = duck.execute(case.duck).fetchone()
        found = view.to_arrow()
        shown = (
            (found.num_rows, sum(found.column("price").to_pylist())) if case.query == _ASOF else next(iter(view), None)
        )
        assert expected == shown, (case.name, expected, shown)
        other = [_timed(lambda: duck.execute(case.duck).fetchall())]
        text = case.sqlite
        other.append(float("nan") if text is None else _timed(lambda: lite.execute(text).fetchall()))
    before = _comparisons(db)
    spent = _timed(partial(_insert_each, db, case))
    counted = (_comparisons(db) - before) / _REPEATED
    return [counted, spent / _REPEATED, *(other or [float("nan")] * 2)]


def measure_clock(size: int) -> list[float]:
    """Moving the clock past ten rows; DuckDB counts the rows of the last days anew."""
    db, start = Database(), datetime(2024, 1, 1)
    moments = pa.array([start + timedelta(seconds=n) for n in range(size)], pa.timestamp("us"))
    rows = pa.table({"id": np.arange(size), "ts": moments})
    db.create_table("clicks", {"id": "int", "ts": "timestamp"})
    db.insert("clicks", rows)
    view = db.create_view("v", "SELECT id FROM clicks", expire="ts + INTERVAL '1' DAY")
    duck = duckdb.connect()
    duck.register("clicks", rows)
    leave = start + timedelta(days=1, seconds=size // 2)
    db.advance(leave)
    query = f"SELECT id FROM clicks WHERE ts + INTERVAL '1' DAY > TIMESTAMP '{leave}'"
    assert len(duck.execute(query).fetchall()) == len(view)
    before = _comparisons(db)
    steps = [leave + timedelta(seconds=10 * n) for n in range(1, _REPEATED + 1)]
    spent = _timed(partial(_advance_each, db, steps))
    counted = (_comparisons(db) - before) / _REPEATED
    return [counted, spent / _REPEATED, _timed(lambda: duck.sql(query).to_arrow_table()), float("nan")]


def measure_requests(size: int) -> list[float]:
    """The ten newest orders of a key, asked for; DuckDB and SQLite, by its index, are asked the same."""
    db, duck, lite = Database(), duckdb.connect(), sqlite3.connect(":memory:")
    rows = _tables(size)["orders"]
    db.create_table("orders", dict.fromkeys(rows.column_names, "int"))
    db.insert("orders", rows)
    view = db.create_view("v", _TOP)
    duck.register("orders", rows)
    lite.execute("CREATE TABLE orders (id, k, ts)")
    lite.executemany("INSERT INTO orders VALUES (?, ?, ?)", zip(*(c.to_pylist() for c in rows.columns), strict=True))
    lite.execute("CREATE INDEX by_ts ON orders (k, ts)")
    in_duck = _TOP.replace(":k", "3")
    assert duck.execute(in_duck).fetchall() == list(view(k=3)) == lite.execute(in_duck).fetchall()
    before = _comparisons(db)
    spent = _timed(lambda: [list(view(k=n % _KEYS)) for n in range(_REPEATED)])
    counted = (_comparisons(db) - before) / _REPEATED
    others = [_timed(lambda: duck.execute(in_duck).fetchall()), _timed(lambda: lite.execute(in_duck).fetchall())]
    return [counted, spent / _REPEATED, *others]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    sizes = parser.parse_args().rows
    print("| change | N | comparisons | ms | DuckDB, ms | SQLite, ms |")
    print("|---|---|---|---|---|---|")
    for size in sizes:
        for case in _cases(size):
            _show(case.name, size, measure(case, size))
        _show("the clock moves past 10 rows", size, measure_clock(size))
        _show("a request of the 10 newest of a key", size, measure_requests(size))


def _show(name: str, size: int, numbers: list[float]) -> None:
    shown = " | ".join("" if number != number else f"{number:,.2f}" for number in numbers)
    print(f"| {name} | {size:,} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
