"""Bytes for each tuple of a binary relation of integers with one secondary index, and of TPC-H's Q3.

    python -m benchmarks.memory [--rows 2000000] [--sf 0.1] [--data DIRECTORY]

The first view answers `b` for a given `a`, so that it needs an index on `a`. Counted are the kernel's own bytes, and
how much the process grew, in a process of its own. Of Q3 over the full schemas with keys, the bytes of the tables with
their keys and strings are counted, and what the view takes besides.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.measure import check_rows, show
from benchmarks.tpch import apply, as_given, tables_of, text_of
from benchmarks.tpch_schema import COLUMNS, KEYS
from benchmarks.tpch_stream import generated, inserts, read
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


def measure_query(scale: str, data: Path) -> None:
    """TPC-H's Q3, as its tables grow in batches, and the same tables without it."""
    text = text_of(3)
    tables = tables_of(text, read(generated(scale, data), COLUMNS))
    stream = inserts(tables, 10_000)
    taken = []
    for with_view in (False, True):
        database = Database()
        for name in tables:
            database.create_table(name, COLUMNS[name], primary_key=KEYS[name])
        if with_view:
            database.create_view("v", text)
        for changes in as_given(stream, tables, single=False):
            apply(database, changes)
        taken.append(database._runtime.catalog.memory()["memory_bytes"] / stream.changes)
        database.close()
    show(f"Q3 at SF {scale}: tables", taken[0], "bytes/tuple")
    show(f"Q3 at SF {scale}: the view besides", taken[1] - taken[0], "bytes/tuple", "at most 41")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--sf", default="0.1")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("TMPDIR", tempfile.gettempdir())) / "tpch")
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
    measure_query(options.sf, options.data)


if __name__ == "__main__":
    main()
