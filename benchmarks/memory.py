"""Bytes for each tuple of a binary relation of integers with one secondary index, all included.

    python -m benchmarks.memory [--rows 2000000]

The view answers `b` for a given `a`, so that it needs an index on `a`. Counted are the kernel's own bytes, and how
much the process grew, in a process of its own.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys

import numpy as np
import pyarrow as pa

from benchmarks.measure import check_rows, show
from ivme.database import Database
from ivme.view import View

QUERY = "Q(b | a) = R(a, b)"


def loaded(rows: int, batch: int = 10_000) -> tuple[Database, View, pa.Table]:
    rng = np.random.default_rng(5)
    data = pa.table({"a": rng.integers(0, rows // 10, rows), "b": np.arange(rows)})
    database = Database()
    database.create_table("R", {"a": "int", "b": "int"})
    view = database.create_view("v", QUERY)
    for start in range(0, rows, batch):
        database.insert("R", data.slice(start, batch))
    return database, view, data


def resident() -> int:
    """The bytes of memory that the process has."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def measure(rows: int) -> None:
    loaded(1000)
    gc.collect()
    before = resident()
    _, view, data = loaded(rows)
    data_bytes = data.nbytes
    del data
    gc.collect()
    show("kernel", view.stats()["memory_bytes"] / rows, "bytes/tuple", "at most 80")
    show("process", (resident() - before) / rows, "bytes/tuple", "at most 80")
    show("  for scale: the data in Arrow", data_bytes / rows, "bytes/tuple")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        measure(options.rows)
        return
    _, view, data = loaded(2000)
    keys = np.arange(200)
    check_rows(view.request_many(a=keys), "SELECT a, b FROM R", {"R": data})
    command = [sys.executable, "-m", "benchmarks.memory", "--inside", "--rows", str(options.rows)]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
