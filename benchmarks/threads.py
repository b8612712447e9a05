"""How much several threads help: streams of TPC-H's rows in batches, on one thread and on more.

    python -m benchmarks.threads [--sf 0.1] [--batch 10000] [--query 3 5 18] [--threads 1 2] [--runs 3]

Beside the time on the wall, which shows something on an idle machine only, the CPU time of all threads and that of the
thread that writes, in nanoseconds a row: what the latter has less of, others did. Views are compared.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.measure import parse
from benchmarks.tpch import Change, apply, as_given, tables_of, text_of
from benchmarks.tpch_schema import COLUMNS, KEYS
from benchmarks.tpch_stream import generated, inserts, read
from ivme.database import Database


class Taken(NamedTuple):
    """Seconds on the wall, of CPU, and of CPU of the thread that writes."""

    wall: float
    cpu: float
    writer: float


def clocks() -> Taken:
    return Taken(time.perf_counter(), time.process_time(), time.thread_time())


def streamed(text: str, tables: Sequence[str], batches: Sequence[list[Change]], threads: int) -> tuple[Taken, Any]:
    """What a stream took, and the view's rows at the end."""
    with Database(threads=threads) as database:
        for name in tables:
            database.create_table(name, COLUMNS[name], primary_key=KEYS[name])
        view = database.create_view("v", text)
        gc.collect()
        begun = clocks()
        for changes in batches:
            apply(database, changes)
        taken = Taken(*(now - then for now, then in zip(clocks(), begun, strict=True)))
        return taken, sorted(map(repr, view))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sf", default="0.1")
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--query", type=int, nargs="+", default=[3, 5, 18])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("TMPDIR", tempfile.gettempdir())) / "tpch")
    options = parse(parser)
    tables = read(generated(options.sf, options.data), COLUMNS)
    print("\n| query | threads | wall, ns a row | CPU | CPU of the writer |\n|---|---:|---:|---:|---:|")
    for query in options.query:
        text = text_of(query)
        chosen = tables_of(text, tables)
        stream = inserts(chosen, options.batch)
        batches = as_given(stream, chosen, single=False)
        answers = []
        for threads in options.threads:
            runs = [streamed(text, list(chosen), batches, threads) for _ in range(options.runs)]
            answers += [rows for _, rows in runs]
            best = min((taken for taken, _ in runs), key=lambda taken: taken.wall)
            cells = " | ".join(f"{seconds / stream.changes * 1e9:,.0f}" for seconds in best)
            print(f"| {query} | {threads} | {cells} |", flush=True)
        if any(rows != answers[0] for rows in answers):
            raise AssertionError(f"Q{query}: another answer on several threads")


if __name__ == "__main__":
    main()
