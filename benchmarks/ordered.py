"""Rows in order: updates of the ordered map, and the first ten of many groups while they change.

    python -m benchmarks.ordered [--quick] [--cpu]

Answers are compared with those of DuckDB and SQLite, which sort all groups anew, before anything
is timed. Operations are comparisons of rows in the ordered map.
"""

from __future__ import annotations

import argparse
import sqlite3
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.measure import parse, seconds
from ivme import Database, _kernel
from ivme.engine.codes.native_dictionary import native_domains
from ivme.engine.native_backend import native_columns
from ivme.engine.ordered import OrderedColumn, place_keys
from ivme.query.types import parse_type

BATCH = 1_000
TOP = "SELECT g, SUM(x) AS s FROM r GROUP BY g ORDER BY s DESC, g LIMIT 10"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 100k rows")
    most = 100_000 if parse(parser).quick else 1_000_000
    for kind in ("int", "string"):
        measure_map(kind, most)
    measure_top([size for size in (10_000, 100_000, 1_000_000) if size <= most])


def measure_map(kind: str, size: int) -> None:
    """Loads rows of two columns, takes some away and puts them back, in batches."""
    rng = np.random.default_rng(1)
    domains = native_domains()
    columns = [domains.domain(parse_type(kind)), domains.domain(parse_type("int"))]
    numbers = rng.integers(0, 2**40, size)
    values = numbers if kind == "int" else columns[0].encode(pa.array([f"name {n:012d} of a user" for n in numbers]))
    rows = [np.ascontiguousarray(values), np.arange(size, dtype=np.int64)]
    order = place_keys([OrderedColumn(0, columns[0])], [], columns)
    ordered = _kernel.OrderedMap(native_columns(order), 0, [])
    loading = seconds(lambda: ordered.load(rows, np.ones(size, np.int64)))
    places = rng.permutation(size)[: min(size // 2, 200_000)]
    batches = [places[start : start + BATCH] for start in range(0, len(places), BATCH)]

    def change(weight: int) -> None:
        for batch in batches:
            ordered.apply([column[batch] for column in rows], np.full(len(batch), weight))
            ordered.commit()

    before = ordered.copies
    going, coming = seconds(lambda: change(-1)), seconds(lambda: change(1))
    assert ordered.copies == before
    ordered.check()
    hashed = _hash_map(rows)
    print(
        f"{kind}, {size:,} rows: load {size / loading / 1e6:.2f}M/s, deletes {len(places) / going / 1e6:.2f}M/s, "
        f"inserts {len(places) / coming / 1e6:.2f}M/s in batches of {BATCH:,}; "
        f"{ordered.memory_bytes() / size:.1f} bytes a row, of a hash map {hashed / size:.1f}"
    )


def _hash_map(rows: list[Any]) -> int:
    """The bytes of the kernel's hash map with the same rows."""
    kernel = _kernel.Kernel(1)
    number = kernel.add_map(2, [])
    load: Any = ("load", 0, 0, [0, 1], [], [], [], [])
    trigger = kernel.add_trigger(1, [], [load, ("add", 0, number, "")])
    before = kernel.memory_bytes()
    kernel.run(trigger, [(rows, np.ones(len(rows[0]), np.int64))])
    kernel.release_buffers()
    return kernel.memory_bytes() - before


def measure_top(sizes: list[int]) -> None:
    """The first ten of so many groups: an update and a read, against sorting anew."""
    print(f"\n{TOP}, an update of {BATCH} rows and a read")
    for size in sizes:
        _measure_top(size)


def _measure_top(size: int) -> None:
    rng = np.random.default_rng(2)
    rows = pa.table({"g": np.arange(size), "x": rng.integers(0, 10**6, size)})
    db = Database()
    db.create_table("r", {"g": "int", "x": "int"})
    db.insert("r", rows)
    view = db.create_view("top", TOP)
    duck, lite = duckdb.connect(), sqlite3.connect(":memory:")
    duck.execute("CREATE TABLE r AS SELECT * FROM rows")
    lite.execute("CREATE TABLE r (g INTEGER, x INTEGER)")
    lite.executemany("INSERT INTO r VALUES (?, ?)", zip(*(column.tolist() for column in _arrays(rows)), strict=True))
    batches = [pa.table({"g": rng.integers(0, size, BATCH), "x": rng.integers(-1000, 1000, BATCH)}) for _ in range(20)]
    changes = view.changes()
    group: Any = db.definitions.catalog.views["top"].group
    compared, took = group.operations, {"ivme": 0.0, "DuckDB": 0.0, "SQLite": 0.0}
    for batch in batches:
        pairs = list(zip(*(column.tolist() for column in _arrays(batch)), strict=True))
        duck.register("batch", batch)

        def ours(batch: pa.Table = batch) -> None:
            db.insert("r", batch)
            list(view)

        def ducks() -> None:
            duck.execute("INSERT INTO r SELECT * FROM batch")
            duck.execute(TOP).fetchall()

        def lites(pairs: list[Any] = pairs) -> None:
            lite.executemany("INSERT INTO r VALUES (?, ?)", pairs)
            lite.execute(TOP).fetchall()

        for name, act in (("ivme", ours), ("DuckDB", ducks), ("SQLite", lites)):
            took[name] += seconds(act)
        assert list(view) == duck.execute(TOP).fetchall() == lite.execute(TOP).fetchall()
    moved = sum(abs(weight) for change in changes for weight in change.values())
    updates = BATCH * len(batches)
    each = {name: 1000 * value / len(batches) for name, value in took.items()}
    print(
        f"{size:>9,} groups: {(group.operations - compared) / updates:5.1f} comparisons an update, "
        f"{moved} rows moved in {updates:,} updates; ivme {each['ivme']:.2f} ms, "
        f"DuckDB {each['DuckDB']:.1f} ms ({each['DuckDB'] / each['ivme']:.1f}x), "
        f"SQLite {each['SQLite']:.1f} ms ({each['SQLite'] / each['ivme']:.1f}x)"
    )
    db.close()
    duck.close()
    lite.close()


def _arrays(rows: pa.Table) -> list[Any]:
    return [rows.column(name).to_numpy() for name in rows.column_names]


if __name__ == "__main__":
    main()
