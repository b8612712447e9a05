"""What a table costs that no view reads, and what columns cost that no view reads.

    python -m benchmarks.tables [--rows 1000000] [--batch 100000] [--build 10000000] [--runs 3] [--cpu]

Rows come in batches, as Arrow or as Python's tuples: integers, or rows like those of TPC-H's lineitem with decimals,
dates and strings. Bytes are those of the kernel and of dictionaries; a copy of the columns in memory stands beside
them. A view over one of 8 columns, or two of 16, is compared with the same view over a table of only these; answers
are compared first. Last, a view is built over many rows while another thread inserts: its longest stop is printed.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Sequence
from itertools import count
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import median, now, parse, seconds, show
from ivme.database import Database

Schema = dict[str, str]
LINEITEM: Schema = {
    **dict.fromkeys(("orderkey", "partkey", "suppkey", "linenumber"), "int"),
    **dict.fromkeys(("quantity", "extendedprice", "discount", "tax"), "decimal(15, 2)"),
    **dict.fromkeys(("returnflag", "linestatus"), "string"),
    **dict.fromkeys(("shipdate", "commitdate", "receiptdate"), "date"),
    **dict.fromkeys(("shipinstruct", "shipmode", "comment"), "string"),
}
GROUPS = "SELECT a, COUNT(*) AS n FROM R GROUP BY a"
SUMS = "SELECT a, SUM(b) AS s FROM R GROUP BY a"
LINEITEM_SUMS = "SELECT suppkey, SUM(extendedprice) AS s FROM R GROUP BY suppkey"


def integers(width: int, rows: int) -> pa.Table:
    """The first column has a thousand values, the last is a key."""
    rng = np.random.default_rng(1)
    columns = {name: rng.integers(0, 1000, rows) for name in _names(width)}
    return pa.table({**columns, "key": np.arange(rows)})


def lineitem(rows: int) -> pa.Table:
    rng = np.random.default_rng(2)

    def words(*values: str) -> pa.Array:
        return pa.array(values).take(pa.array(rng.integers(0, len(values), rows)))

    def decimals(most: int) -> pa.Array:
        return pa.array(rng.integers(0, most, rows)).cast(pa.decimal128(19, 0)).cast(pa.decimal128(15, 2))

    def days() -> pa.Array:
        return pa.array(rng.integers(8000, 10600, rows).astype(np.int32)).cast(pa.date32())

    keys = [np.arange(rows) // 4, rng.integers(0, 200_000, rows), rng.integers(0, 10_000, rows), np.arange(rows) % 4]
    comments = [f"carefully final request {number:x}" for number in rng.integers(0, 2**31, rows)]
    arrays = [*map(pa.array, keys), decimals(50), decimals(90_000), decimals(10), decimals(8)]
    arrays += [words("A", "N", "R"), words("O", "F"), days(), days(), days()]
    arrays += [
        words("COLLECT COD", "NONE", "TAKE BACK RETURN"),
        words("AIR", "MAIL", "RAIL", "SHIP"),
        pa.array(comments),
    ]
    return pa.table(dict(zip(LINEITEM, arrays, strict=True)))


def _names(width: int) -> Sequence[str]:
    return "abcdefghijklmnopqrstuvw"[: width - 1]


def filled(
    schema: Schema, batches: Sequence[Any], key: str | None = None, view: str | None = None
) -> tuple[Database, float]:
    """A database that has taken the batches, and the seconds for them."""
    database = Database()
    database.create_table("R", schema, primary_key=key)
    if view is not None:
        database.create_view("v", view)
    start = now()
    for batch in batches:
        database.insert("R", batch)
    return database, now() - start


def cut(data: pa.Table, batch: int) -> list[pa.Table]:
    """Batches as sources give them: each in one piece."""
    return [pa.table(piece) for piece in data.combine_chunks().to_batches(batch)]


def tuples(batches: Sequence[pa.Table]) -> list[list[tuple[Any, ...]]]:
    return [list(zip(*(column.to_pylist() for column in batch.columns), strict=True)) for batch in batches]


def per_row(rows: int, runs: int, work: Callable[[], tuple[Database, float]]) -> float:
    """Nanoseconds a row."""

    def once() -> float:
        database, taken = work()
        database.close()
        return taken

    return median(once, runs) / rows * 1e9


def show_unread(name: str, schema: Schema, data: pa.Table, options: argparse.Namespace) -> None:
    """Inserts into a table without views, in both forms, and a copy of the columns beside them."""
    batches, rows = cut(data, options.batch), data.num_rows
    copied = median(lambda: seconds(lambda: [pa.concat_tables([b, b]).combine_chunks() for b in batches]), options.runs)
    show(f"{name}: two copies in Arrow", copied / rows * 1e9, "ns/row")
    show(f"{name}: insert, Arrow", per_row(rows, options.runs, lambda: filled(schema, batches)), "ns/row")
    database, _ = filled(schema, batches)
    show(f"{name}: memory", database._runtime.catalog.memory()["memory_bytes"] / rows, "bytes/row")
    database.close()
    few = tuples(batches[:1])
    show(f"{name}: insert, tuples", per_row(len(few[0]), options.runs, lambda: filled(schema, few)), "ns/row")


def show_integers(options: argparse.Namespace) -> None:
    schema = dict.fromkeys((*_names(8), "key"), "int")
    data = integers(8, options.rows)
    show_unread("8 integers", schema, data, options)
    batches = cut(data, options.batch)
    show(
        "8 integers: insert, keyed",
        per_row(options.rows, options.runs, lambda: filled(schema, batches, "key")),
        "ns/row",
    )
    for key in (None, "key"):

        def deleted(key: str | None = key) -> tuple[Database, float]:
            database, _ = filled(schema, batches, key)
            start = now()
            for batch in batches:
                database.delete("R", batch)
            return database, now() - start

        name = "8 integers: delete, no key" if key is None else "8 integers: delete, keyed"
        show(name, per_row(options.rows, options.runs, deleted), "ns/row")


def show_columns(
    name: str, view: str, schema: Schema, read: Sequence[str], data: pa.Table, o: argparse.Namespace
) -> None:
    """A view over few columns of a wide table, and over a table of only these."""
    narrow = {column: schema[column] for column in read}
    batches = cut(data, o.batch)
    few = cut(data.select(list(read)), o.batch)
    answers = []
    for given, rows in ((schema, batches), (narrow, few)):
        database, _ = filled(given, rows[:1], None, view)
        answers.append(sorted(database.view("v")))
        database.close()
    assert answers[0] == answers[1], "a view over few columns of a wide table has another answer"
    wide_time = per_row(data.num_rows, o.runs, lambda: filled(schema, batches, None, view))
    few_time = per_row(data.num_rows, o.runs, lambda: filled(narrow, few, None, view))
    show(f"{name}: wide table", wide_time, "ns/row")
    show(f"{name}: narrow table", few_time, "ns/row")
    show("  wide / narrow", wide_time / few_time, "times", "at most 1.1")


def show_build(options: argparse.Namespace) -> None:
    """The longest stop of a writer of small batches while a view is built."""
    database = Database()
    database.create_table("R", dict.fromkeys((*_names(4), "key"), "int"))
    for start in range(0, options.build, 1_000_000):
        database.insert("R", integers(4, min(1_000_000, options.build - start)))
    stops: list[float] = []
    over = threading.Event()

    def write() -> None:
        for number in count():
            if over.is_set():
                return
            start = perf_counter()
            database.insert("R", [(number % 1000, 1, 2, number)] * 20)
            stops.append(perf_counter() - start)
            over.wait(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    over.wait(0.3)
    alone = max(stops)
    stops.clear()
    begin = perf_counter()
    database.create_view("v", SUMS)
    taken = perf_counter() - begin
    over.set()
    writer.join()
    show(f"build over {options.build:,} rows", taken, "s")
    show("  longest stop of a writer, before", alone * 1000, "ms")
    show("  longest stop of a writer, during", max(stops, default=taken) * 1000, "ms", "at most 100")
    show("  batches written meanwhile", len(stops), "")
    database.view("v").verify()
    database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=100_000)
    parser.add_argument("--build", type=int, default=10_000_000)
    options = parse(parser)
    show_integers(options)
    data = lineitem(options.rows)
    show_unread("lineitem", LINEITEM, data, options)
    for width, read, view in ((8, ["a"], GROUPS), (16, ["a", "b"], SUMS)):
        schema = dict.fromkeys((*_names(width), "key"), "int")
        name = f"view over {len(read)} of {width} columns"
        show_columns(name, view, schema, read, integers(width, options.rows), options)
    show_columns("view over 2 of lineitem's", LINEITEM_SUMS, LINEITEM, ["suppkey", "extendedprice"], data, options)
    show_build(options)


if __name__ == "__main__":
    main()
