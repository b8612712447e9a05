"""How much several threads help: streams of TPC-H's rows in batches, on one thread and on more.

    python -m benchmarks.threads [--sf 0.1] [--batch 1000 10000] [--query 3 5 18] [--threads 1 2] [--runs 5] [--ahead]

In nanoseconds a row: the time on the wall, which shows something on an idle machine only, as the sum of what each batch
took at least in any run, and of the best run as a whole; its CPU time, and that of the thread that writes: what it has
less of, others did. On virtual machines memory that no process has had before comes from the host at 2 ns a byte and
more, which the sum of the least leaves out mostly. `--ahead` adds `apply_batches` on the most threads. Runs alternate,
and views are compared.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.measure import parse
from benchmarks.tpch import Change, apply, as_given, tables_of, text_of
from benchmarks.tpch_schema import COLUMNS, KEYS
from benchmarks.tpch_stream import generated, inserts, read
from ivme.database import Database


class Taken(NamedTuple):
    """Seconds on the wall by batch, and in all; of CPU, and of CPU of the thread that writes."""

    batches: list[float]
    wall: float
    cpu: float
    writer: float


class Way(NamedTuple):
    """How a stream is applied."""

    threads: int
    ahead: bool

    def __str__(self) -> str:
        return f"{self.threads}, ahead" if self.ahead else str(self.threads)


def clocks() -> tuple[float, float, float]:
    return time.perf_counter(), time.process_time(), time.thread_time()


def run_stream(database: Database, batches: Sequence[list[Change]], ahead: bool) -> list[float]:
    """What each batch took; ahead, from the moment it is asked for to that of the next."""
    if not ahead:
        taken = []
        for changes in batches:
            begun = time.perf_counter()
            apply(database, changes)
            taken.append(time.perf_counter() - begun)
        return taken
    asked = []

    def given() -> Iterator[list[tuple[str, Any, int]]]:
        for changes in batches:
            asked.append(time.perf_counter())
            yield [(name, rows, sign) for name, sign, rows in changes]

    database.apply_batches(given())
    asked.append(time.perf_counter())
    return [after - before for before, after in pairwise(asked)]


def streamed(text: str, tables: Sequence[str], batches: Sequence[list[Change]], way: Way) -> tuple[Taken, Any]:
    """What a stream took, and the view's rows at the end."""
    with Database(threads=way.threads) as database:
        for name in tables:
            database.create_table(name, COLUMNS[name], primary_key=KEYS[name])
        view = database.create_view("v", text)
        gc.collect()
        begun = clocks()
        by_batch = run_stream(database, batches, way.ahead)
        taken = Taken(by_batch, *(now - then for now, then in zip(clocks(), begun, strict=True)))
        return taken, sorted(map(repr, view))


def measure(query: int, size: int, ways: Sequence[Way], runs: int, tables: Any) -> None:
    """Prints a line for each way."""
    text = text_of(query)
    chosen = tables_of(text, tables)
    stream = inserts(chosen, size)
    batches = as_given(stream, chosen, single=False)
    found: dict[Way, list[Taken]] = {way: [] for way in ways}
    answers = []
    for _ in range(runs):
        for way in ways:
            taken, rows = streamed(text, list(chosen), batches, way)
            found[way].append(taken)
            answers.append(rows)
    if any(rows != answers[0] for rows in answers):
        raise AssertionError(f"Q{query}: another answer on several threads")
    first = 0.0
    for way, each in found.items():
        least = sum(map(min, zip(*(taken.batches for taken in each), strict=True)))
        first = first or least
        best = min(each, key=lambda taken: taken.wall)
        cells = [f"{s / stream.changes * 1e9:,.0f}" for s in (least, best.wall, best.cpu, best.writer)]
        print(f"| {query} | {size:,} | {way} | {' | '.join(cells)} | {first / least:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sf", default="0.1")
    parser.add_argument("--batch", type=int, nargs="+", default=[10_000])
    parser.add_argument("--query", type=int, nargs="+", default=[3, 5, 18])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--ahead", action="store_true")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("TMPDIR", tempfile.gettempdir())) / "tpch")
    options = parse(parser)
    tables = read(generated(options.sf, options.data), COLUMNS)
    ways = [Way(threads, False) for threads in options.threads]
    if options.ahead:
        ways.append(Way(max(options.threads), True))
    print("\n| query | batch | threads | wall by batch, ns a row | wall | CPU | CPU of the writer | times the first |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for query in options.query:
        for size in options.batch:
            measure(query, size, ways, options.runs, tables)


if __name__ == "__main__":
    main()
