"""The number of pairs that two tables of integers join to, kept fresh: in batches from Arrow, and row by row.

    python -m benchmarks.join_count [--rows 1000000] [--runs 3] [--cpu] [--pathway-python PATH] [--pathway-rows 100000]

Batches of both tables come in turn. Pathway (PyPI) is measured beside it where the Python at PATH has it; it gets the
rows with their times before its clock starts, and the quicker of two plans counts. For the ratio both have the same
rows and batches.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.measure import check_rows, median, parse, seconds, show
from ivme.database import Database
from ivme.view import View

QUERY = "SELECT COUNT(*) AS n FROM R JOIN S ON R.a = S.a"
BATCH = 1000
SINGLE_ROWS = 100_000


def tables(rows: int, seed: int = 1) -> dict[str, pa.RecordBatch]:
    rng = np.random.default_rng(seed)
    keys, values = (rng.integers(0, rows // 5, rows) for _ in range(2)), np.arange(rows)
    named = zip("RS", "bc", keys, strict=True)
    return {name: pa.record_batch({"a": key, value: values}) for name, value, key in named}


def declared() -> tuple[Database, View]:
    database = Database()
    database.create_table("R", {"a": "int", "b": "int"})
    database.create_table("S", {"a": "int", "c": "int"})
    return database, database.create_view("v", QUERY)


def in_turn(data: dict[str, pa.RecordBatch], size: int) -> list[tuple[str, pa.RecordBatch]]:
    starts = range(0, data["R"].num_rows, size)
    return [(name, rows.slice(start, size)) for start in starts for name, rows in data.items()]


def inserted(data: dict[str, pa.RecordBatch]) -> float:
    """Updates a second from empty tables."""
    database, _ = declared()
    batches = in_turn(data, BATCH)

    def work() -> None:
        for name, rows in batches:
            database.insert(name, rows)

    return float(2 * data["R"].num_rows / seconds(work))


def updated(data: dict[str, pa.RecordBatch]) -> float:
    """Updates a second on loaded tables: as many inserts as there are rows, and their deletes."""
    database, _ = declared()
    for name, rows in data.items():
        database.insert(name, rows)
    batches = in_turn(tables(data["R"].num_rows, seed=2), BATCH)

    def work() -> None:
        for sign in (1, -1):
            for name, rows in batches:
                database.apply(name, rows, np.full(rows.num_rows, sign))

    return float(4 * data["R"].num_rows / seconds(work))


def row_by_row(data: dict[str, pa.RecordBatch]) -> float:
    """Updates a second on loaded tables, with one call for each row: inserts, then deletes."""
    database, _ = declared()
    for name, rows in data.items():
        database.insert(name, rows)
    fresh = tables(SINGLE_ROWS, seed=2)
    lists = {name: [(*row.values(),) for row in rows.to_pylist()] for name, rows in fresh.items()}

    def work() -> None:
        for change in (database.insert, database.delete):
            for r, s in zip(lists["R"], lists["S"], strict=True):
                change("R", [r])
                change("S", [s])

    return 4 * SINGLE_ROWS / seconds(work)


def check(rows: int = 3000) -> None:
    """The count is DuckDB's after inserts and deletes, by batches and row by row."""
    data = tables(rows)
    database, view = declared()
    for name, part in in_turn(data, BATCH):
        database.insert(name, part)
    half = {name: pa.Table.from_batches([part.slice(rows // 2)]) for name, part in data.items()}
    for name, part in data.items():
        gone = part.slice(0, rows // 2)
        database.apply(name, gone.slice(0, BATCH), np.full(BATCH, -1))
        for row in gone.slice(BATCH).to_pylist():
            database.delete(name, [(*row.values(),)])
    check_rows(view.to_arrow(), QUERY, half)


def pathway(python: str, data: dict[str, pa.RecordBatch], size: int, clock: str) -> tuple[float, str]:
    """Pathway's updates a second by its quicker plan, after a check of its count; and the plan."""
    (expected,) = _count(data)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "tables.npz"
        columns = {f"{n.lower()}{c}": rows[c].to_numpy() for n, rows in data.items() for c in rows.schema.names}
        np.savez(path, **columns)
        rates = {}
        for plan in ("rows", "counts"):
            script = Path(__file__).parent / "peers" / "pathway_join.py"
            command = [python, str(script), str(path), str(size), plan]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            answer = json.loads(done.stdout.strip().splitlines()[-1])
            if answer["n"] != expected:
                raise AssertionError(f"Pathway counts {answer['n']}, DuckDB {expected}")
            rates[2 * data["R"].num_rows / answer[clock]] = plan
    best = max(rates)
    return best, rates[best]


def _count(data: dict[str, pa.RecordBatch]) -> tuple[int]:
    database, view = declared()
    for name, rows in data.items():
        database.insert(name, rows)
    check_rows(view.to_arrow(), QUERY, {name: pa.Table.from_batches([rows]) for name, rows in data.items()})
    return (view.scalar(),)


def has_pathway(python: str) -> bool:
    try:
        found = subprocess.run([python, "-c", "import pathway"], capture_output=True, check=False)
    except OSError:
        return False
    return found.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--pathway-python", default=sys.executable)
    parser.add_argument("--pathway-rows", type=int, default=100_000)
    options = parse(parser)
    check()
    data = tables(options.rows)
    figures: list[tuple[str, Callable[[dict[str, pa.RecordBatch]], float], str]] = [
        (f"inserts in batches of {BATCH:,}", inserted, "1,500,000"),
        (f"inserts and deletes in batches of {BATCH:,}", updated, "1,500,000"),
        ("inserts and deletes row by row", row_by_row, "250,000"),
    ]
    for name, measure, target in figures:
        rate = median(partial(measure, data), options.runs)
        show(f"{name}, {options.rows:,} rows", rate, "updates/s", target)
    if not has_pathway(options.pathway_python):
        print("Pathway is missing: pip install pathway somewhere and give --pathway-python")
        return
    few = tables(options.pathway_rows)
    theirs, plan = pathway(options.pathway_python, few, BATCH, "cpu" if options.cpu else "wall")
    ours = median(lambda: inserted(few), options.runs)
    show(f"Pathway ({plan}), batches of {BATCH:,}, {options.pathway_rows:,} rows", theirs, "updates/s")
    show("  ivme, the same", ours, "updates/s")
    show("  ivme / Pathway", ours / theirs, "times", "10")


if __name__ == "__main__":
    main()
