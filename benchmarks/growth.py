"""The slowest of many single inserts: what a map that grows makes one of them wait.

    python -m benchmarks.growth [--rows 250000] [--runs 3] [--cpu]

A join of two binary tables on one column while rows of one come one by one; then the bytes that a row of it takes, with
the view's map and its index. Each insert is timed by itself; with --cpu by the thread's CPU time, for a machine that
others use too. What does not depend on them is counted: the pages that the system brought for one insert, and the bytes
that tables and arrays copied as they grew. A huge page counts as one, so how much of the memory these are is said, too.
"""

from __future__ import annotations

import argparse
import gc
import re
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.measure import parse, show
from ivme._kernel import bytes_copied
from ivme.database import Database


def faults() -> int:
    """The pages that the system has brought for this thread."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


def huge_bytes() -> int:
    """The memory of this process that lies on huge pages."""
    found = re.search(r"AnonHugePages:\s+(\d+) kB", Path("/proc/self/smaps_rollup").read_text("utf-8"))
    return 0 if found is None else int(found.group(1)) << 10


def joined() -> Database:
    """Two tables of two columns, and their join."""
    database = Database()
    for name in ("R", "S"):
        database.create_table(name, {"a": "int", "b": "int"})
    database.create_view("v", "SELECT R.a, S.a AS c FROM R JOIN S ON R.b = S.b", strategy="view-tree")
    return database


def by_insert(rows: int, now: Callable[[], float]) -> list[float]:
    """By how much a clock or counter went on with each of some inserts, the most first."""
    rng = np.random.default_rng(1)
    given = list(zip(range(rows), rng.integers(0, rows, rows).tolist(), strict=True))
    insert, taken = joined().insert, []
    gc.disable()
    for row in given:
        start = now()
        insert("R", [row])
        taken.append(now() - start)
    gc.enable()
    return sorted(taken, reverse=True)


def bytes_a_row(rows: int) -> float:
    """What a binary table takes with an index on one column, the view's own maps included."""
    database = joined()
    before = database.definitions.runtime.catalog.backend.memory_bytes()
    rng = np.random.default_rng(1)
    database.insert("R", np.stack([np.arange(rows), rng.integers(0, rows // 10, rows)], axis=1))
    return (database.definitions.runtime.catalog.backend.memory_bytes() - before) / rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=250_000)
    options = parse(parser)
    clock = time.thread_time if options.cpu else time.perf_counter
    runs = [by_insert(options.rows, clock) for _ in range(options.runs)]
    best = min(runs, key=lambda taken: taken[0])
    show(f"slowest of {options.rows:,} inserts", best[0] * 1e6, "µs", "below 1,000")
    show("the tenth", best[9] * 1e6, "µs")
    show("the median", best[len(best) // 2] * 1e6, "µs")
    brought = by_insert(options.rows, faults)
    show("most pages that came for one insert", brought[0], "pages")
    show("pages that came for all", sum(brought), "pages")
    show("memory on huge pages by then", huge_bytes() / 1e6, "MB")
    show("most bytes that were copied for one insert", by_insert(options.rows, bytes_copied)[0], "bytes")
    for rows in (100_000, 1_000_000):
        show(f"bytes a row of {rows:,}, with an index", bytes_a_row(rows), "bytes", "at most 80")


if __name__ == "__main__":
    main()
