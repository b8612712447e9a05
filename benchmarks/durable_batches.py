"""Batches into a database in a directory, beside the same in memory: what the log costs.

    python -m benchmarks.durable_batches [--sf 0.1] [--batch 1000] [--batches 600] [--threads 1 2] [--runs 5]
        [--only "two integers" q12] [--ahead] [--cpu] [--data DIRECTORY]

Streams of record batches into tables with a view: a count over two integers, and TPC-H's Q1, Q3 and Q12 over full
schemas with keys. With durability="async" the log is written by the commit and synced soon after, and snapshots that
fall due are a part of the time. Microseconds a batch, the least of the runs, which alternate; the views are compared
with those in memory, also after the directory is opened again.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import now, parse
from benchmarks.tpch import Change, apply, as_given, tables_of, text_of
from benchmarks.tpch_schema import COLUMNS, KEYS
from benchmarks.tpch_stream import generated, inserts, read
from ivme.database import Database


@dataclass(frozen=True, slots=True)
class Workload:
    """Tables with a view, and what comes in batches."""

    make: Callable[[Database], None]
    batches: Sequence[list[Change]]


def two_integers(size: int, count: int) -> Workload:
    """A table of two integers, counted by one of them."""
    rng = np.random.default_rng(1)
    rows = pa.RecordBatch.from_pydict({"a": rng.integers(0, 1000, size * count), "b": np.arange(size * count)})

    def make(database: Database) -> None:
        database.create_table("R", {"a": "int", "b": "int"})
        database.create_view("v", "SELECT a, COUNT(*) AS n FROM R GROUP BY a")

    return Workload(make, [[("R", 1, rows.slice(start, size))] for start in range(0, size * count, size)])


def tpch(query: int, size: int, count: int, tables: Mapping[str, pa.Table]) -> Workload:
    """All tables that a query reads."""
    chosen = tables_of(text_of(query), tables)

    def make(database: Database) -> None:
        for name in chosen:
            database.create_table(name, COLUMNS[name], primary_key=KEYS[name])
        database.create_view("v", text_of(query))

    return Workload(make, as_given(inserts(chosen, size), chosen, single=False)[:count])


def shown(database: Database) -> list[str]:
    return sorted(map(repr, database.view("v")))


def streamed(work: Workload, database: Database, ahead: bool) -> tuple[float, list[str]]:
    """Seconds for all batches, and the view's rows at the end."""
    work.make(database)
    gc.collect()
    begun = now()
    if ahead:
        database.apply_batches([(name, rows, sign) for name, sign, rows in changes] for changes in work.batches)
    else:
        for changes in work.batches:
            apply(database, changes)
    return now() - begun, shown(database)


def in_memory(work: Workload, threads: int, ahead: bool) -> tuple[float, list[str]]:
    with Database(threads=threads) as database:
        return streamed(work, database, ahead)


def in_directory(work: Workload, threads: int, ahead: bool) -> tuple[float, list[str]]:
    with tempfile.TemporaryDirectory(prefix="durable") as path:
        with Database(path, durability="async", threads=threads) as database:
            taken, rows = streamed(work, database, ahead)
        with Database(path) as again:
            if rows != shown(again):
                raise AssertionError("the directory shows something else after it was opened again")
        return taken, rows


def line(name: str, work: Workload, threads: int, runs: int, ahead: bool) -> str:
    """A line of the table."""
    taken: dict[Any, float] = {}
    answers = []
    for _ in range(runs):
        for way in (in_memory, in_directory):
            seconds, rows = way(work, threads, ahead)
            taken[way] = min(seconds, taken.get(way, seconds))
            answers.append(rows)
    if any(rows != answers[0] for rows in answers):
        raise AssertionError(f"{name}: another answer in a directory")
    memory, directory = (taken[way] / len(work.batches) * 1e6 for way in (in_memory, in_directory))
    return f"| {name} | {threads}{', ahead' * ahead} | {memory:,.0f} | {directory:,.0f} | {memory / directory:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sf", default="0.1")
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--batches", type=int, default=600)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", nargs="+", default=["two integers", "q1", "q3", "q12"])
    parser.add_argument("--ahead", action="store_true", help="by apply_batches, which encodes the next batch")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("TMPDIR", tempfile.gettempdir())) / "tpch")
    options = parse(parser)
    make: dict[str, Callable[[int, int], Workload]] = {"two integers": two_integers}
    tables = read(generated(options.sf, options.data), COLUMNS)
    make |= {f"q{query}": partial(tpch, query, tables=tables) for query in (1, 3, 12)}
    print(f"batches of {options.batch:,} rows, microseconds a batch")
    print("| workload | threads | in memory | in a directory | of the speed in memory |\n|---|---|---:|---:|---:|")
    for name in options.only:
        work = make[name](options.batch, options.batches)
        for threads in options.threads:
            print(line(name, work, threads, options.runs, options.ahead), flush=True)


if __name__ == "__main__":
    main()
