"""What a row of a batch costs, by part: encoding, applying, what is looked after behind it, and Python around.

    python -m benchmarks.phases [--sf 0.1] [--batch 1000 10000] [--threads 1 2] [--runs 3] [--data DIRECTORY]

Streams of inserts for TPC-H's Q3, Q12 and Q18 (full schemas with keys) and for the count of a join of two tables of
integers. CPU time of all threads, in nanoseconds a row, and in brackets that of the thread that writes: what it has
less of, others did. The first run of a process is left out: most of it is memory that the system brings.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks import join_count
from benchmarks.measure import parse
from benchmarks.tpch import Change, apply, as_given, tables_of, text_of
from benchmarks.tpch_schema import COLUMNS, KEYS
from benchmarks.tpch_stream import generated, inserts, read
from ivme.database import Database
from ivme.engine.runtime.record_batches import EncodedBatches
from ivme.engine.runtime.runtime import Runtime

PARTS: dict[str, tuple[Any, str]] = {
    "encode": (EncodedBatches, "take"),
    "apply": (EncodedBatches, "try_apply"),
    "behind": (Runtime, "reclaim_after_rows"),
}
JOIN_ROWS = 500_000

Costs = dict[str, tuple[float, float]]
Make = Callable[[Database], None]


def clocks() -> tuple[float, float]:
    """CPU seconds of all threads, and of this one."""
    return time.process_time(), time.thread_time()


@contextmanager
def watched(costs: Costs) -> Iterator[None]:
    """Adds up what the parts take."""

    def timed(part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            begun = clocks()
            try:
                return work(*given)
            finally:
                all_threads, writer = (now - then for now, then in zip(clocks(), begun, strict=True))
                costs[part] = (costs[part][0] + all_threads, costs[part][1] + writer)

        return run

    costs |= dict.fromkeys(PARTS, (0.0, 0.0))
    patches = [patch.object(owner, name, timed(part, getattr(owner, name))) for part, (owner, name) in PARTS.items()]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


def streamed(make: Make, batches: Sequence[list[Change]], threads: int) -> Costs:
    """What the parts of a stream took."""
    costs: Costs = {}
    with Database(threads=threads) as database:
        make(database)
        gc.collect()
        with watched(costs):
            begun = clocks()
            for changes in batches:
                apply(database, changes)
            all_threads, writer = (now - then for now, then in zip(clocks(), begun, strict=True))
    known = [sum(column) for column in zip(*costs.values(), strict=True)]
    return costs | {"Python": (all_threads - known[0], writer - known[1]), "all": (all_threads, writer)}


def workloads(scale: str, data: Path, size: int) -> Iterator[tuple[str, Make, list[list[Change]], int]]:
    """The name of each, what makes its tables and view, its batches and their rows."""
    tables = read(generated(scale, data), COLUMNS)
    for query in (3, 12, 18):
        text = text_of(query)
        chosen = tables_of(text, tables)
        stream = inserts(chosen, size)

        def make(database: Database, text: str = text, names: Sequence[str] = tuple(chosen)) -> None:
            for name in names:
                database.create_table(name, COLUMNS[name], primary_key=KEYS[name])
            database.create_view("v", text)

        yield f"Q{query}", make, as_given(stream, chosen, single=False), stream.changes

    def join(database: Database) -> None:
        for name, column in (("R", "b"), ("S", "c")):
            database.create_table(name, {"a": "int", column: "int"})
        database.create_view("v", join_count.QUERY)

    parts = join_count.in_turn(join_count.tables(JOIN_ROWS), size)
    yield "join count", join, [[(name, 1, rows)] for name, rows in parts], 2 * JOIN_ROWS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sf", default="0.1")
    parser.add_argument("--batch", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("TMPDIR", tempfile.gettempdir())) / "tpch")
    options = parse(parser)
    names = [*PARTS, "Python", "all"]
    print(f"\n| | batch | threads | {' | '.join(names)} |\n|---|---:|---:|{'---:|' * len(names)}")
    for size in options.batch:
        for name, make, batches, rows in workloads(options.sf, options.data, size):
            for threads in options.threads:
                runs = [streamed(make, batches, threads) for _ in range(options.runs + 1)][1:]
                best = min(runs, key=lambda costs: costs["all"][0])
                cells = [f"{best[part][0] / rows * 1e9:,.0f} ({best[part][1] / rows * 1e9:,.0f})" for part in names]
                print(f"| {name} | {size:,} | {threads} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
