"""The slowest of many single inserts: what a map that grows makes one of them wait.

    python -m benchmarks.growth [--rows 250000] [--runs 3] [--cpu]

A join of two binary tables on one column while rows of one come one by one; then the bytes that a row of it takes, with
the view's map and its index. Each insert is timed by itself; with --cpu by the thread's CPU time, for a machine that
others use too.
"""

from __future__ import annotations

import argparse
import gc
import time

import numpy as np

from benchmarks.measure import parse, show
from ivme.database import Database


def slowest(rows: int, clock: str) -> list[float]:
    """The seconds of each insert, the longest first."""
    database = Database()
    for name in ("R", "S"):
        database.create_table(name, {"a": "int", "b": "int"})
    database.create_view("v", "SELECT R.a, S.a AS c FROM R JOIN S ON R.b = S.b", strategy="view-tree")
    rng = np.random.default_rng(1)
    given = list(zip(range(rows), rng.integers(0, rows, rows).tolist(), strict=True))
    insert, now = database.insert, time.thread_time if clock == "cpu" else time.perf_counter
    taken = []
    gc.disable()
    for row in given:
        start = now()
        insert("R", [row])
        taken.append(now() - start)
    gc.enable()
    return sorted(taken, reverse=True)


def bytes_a_row(rows: int) -> float:
    """What a binary table takes with an index on one column, the view's own maps included."""
    database = Database()
    for name in ("R", "S"):
        database.create_table(name, {"a": "int", "b": "int"})
    database.create_view("v", "SELECT R.a, S.a AS c FROM R JOIN S ON R.b = S.b", strategy="view-tree")
    before = database.definitions.runtime.catalog.backend.memory_bytes()
    rng = np.random.default_rng(1)
    database.insert("R", np.stack([np.arange(rows), rng.integers(0, rows // 10, rows)], axis=1))
    return (database.definitions.runtime.catalog.backend.memory_bytes() - before) / rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=250_000)
    options = parse(parser)
    runs = [slowest(options.rows, "cpu" if options.cpu else "wall") for _ in range(options.runs)]
    best = min(runs, key=lambda taken: taken[0])
    show(f"slowest of {options.rows:,} inserts", best[0] * 1e6, "µs", "below 1,000")
    show("the tenth", best[9] * 1e6, "µs")
    show("the median", best[len(best) // 2] * 1e6, "µs")
    for rows in (100_000, 1_000_000):
        show(f"bytes a row of {rows:,}, with an index", bytes_a_row(rows), "bytes", "at most 80")


if __name__ == "__main__":
    main()
