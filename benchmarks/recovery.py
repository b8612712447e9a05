"""Opening a directory with a million rows, from a snapshot and from the log, its views loaded and built; and commits.

    python -m benchmarks.recovery [--rows 1000000] [--commits 300] [--runs 3]

The log has a record for each row in one case, and one for each thousand in the other. Each of several views is loaded
from a snapshot, and built from the tables of the same one, in turns, on the wall and in seconds of the CPU. Commits
with durability="sync" are made by one thread and by sixteen, which share syncs; beside them stands SQLite in WAL mode
with the same rows.
"""

from __future__ import annotations

import argparse
import logging
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.measure import parse, seconds, show
from ivme.database import Database

QUERY = "SELECT a, COUNT(*) AS n, SUM(b) AS total FROM R GROUP BY a"
EDGES = ("R", "S", "T")
VIEWS: dict[str, tuple[str, dict[str, Any]]] = {
    "sums of a text": ("SELECT name, COUNT(*) AS n, SUM(b) AS total FROM R GROUP BY name", {}),
    "least and greatest": ("SELECT a, MIN(b) AS least, MAX(b) AS most FROM R GROUP BY a", {}),
    "path, view tree": ("Q(A, B, C, D) = R(A, B), S(B, C), T(C, D)", {"strategy": "view-tree"}),
    "triangles of a node, heavy and light": ("Q(B, C | A) = R(A, B), S(B, C), T(C, A)", {"strategy": "skew"}),
    "triangles, all listed": ("Q(A, B, C) = R(A, B), S(B, C), T(C, A)", {"strategy": "classical"}),
}
"""Over one table with a text, or over three tables of edges."""


def write(path: Path, rows: int, size: int) -> None:
    made(path, rows, size).close()


def made(path: Path, rows: int, size: int) -> Database:
    """A database whose log has the rows in batches of a size."""
    db = Database(path, durability="async")
    db.create_table("R", {"a": "int", "b": "int", "note": "string"})
    db.create_view("v", QUERY)
    numbers = np.arange(rows)
    data = pa.table({"a": numbers % 1000, "b": numbers, "note": [f"note {n}" for n in range(rows)]})
    if size == 1:
        for row in zip(*(column.to_pylist() for column in data.columns), strict=True):
            db.insert("R", [row])
    else:
        for start in range(0, rows, size):
            db.insert("R", data.slice(start, size))
    return db


def check(db: Database, rows: int) -> None:
    assert rows == sum(n for _, n, _ in db.view("v"))
    assert rows * (rows - 1) // 2 == sum(total for _, _, total in db.view("v"))


def show_opening(path: Path, rows: int, runs: int, what: str) -> None:
    """Shows the median time to open a directory, after a check that everything is there."""
    with Database(path) as db:
        check(db, rows)
    times = [timed_opening(path) for _ in range(runs)]
    show(f"opening {rows:,} rows, {what}", statistics.median(wall for wall, _, _ in times), "s", "at most 10")
    show("  of the CPU", statistics.median(cpu for _, cpu, _ in times), "s")


def timed_opening(path: Path) -> tuple[float, float, int]:
    """How long it takes to open a directory, on the wall and of the CPU; and how many entries it has."""
    wall, cpu = time.perf_counter(), time.process_time()
    with Database(path) as db:
        return time.perf_counter() - wall, time.process_time() - cpu, db.entries()


def with_view(path: Path, rows: int, query: str, options: dict[str, Any]) -> None:
    """A database with a snapshot of one view, over as many rows."""
    choose = np.random.default_rng(1)
    with Database(path, durability="async") as db:
        if "name" in query or "least" in query:
            db.create_table("R", {"a": "int", "b": "int", "name": "string"})
            names = [f"name {n}" for n in choose.integers(0, rows // 4, rows)]
            values = {"a": choose.integers(0, 1000, rows), "b": choose.integers(0, rows, rows), "name": names}
            db.insert("R", pa.table(values))
        else:
            for table in EDGES:
                db.create_table(table, {"a": "int", "b": "int"})
                db.insert(table, pa.table({end: skewed(choose, rows // 3) for end in ("a", "b")}))
        db.create_view("v", query, **options)
        db.checkpoint()


def skewed(choose: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
    """Ends of edges: some nodes have many."""
    nodes = max(2, count // 10)
    return np.where(choose.random(count) < 0.1, choose.zipf(1.5, count) % nodes, choose.integers(0, nodes, count))


def loaded_and_built(path: Path, runs: int) -> dict[str, tuple[float, float]]:
    """The median times to open a directory with its view loaded, and built: on the wall, and of the CPU."""
    times: dict[str, list[tuple[float, float]]] = {"loaded": [], "built": []}
    hidden, entries = path.parent / "hidden", set()
    (file,) = path.glob("views-*")
    for _ in range(runs):
        for how, taken in times.items():
            if how == "built":
                file.rename(hidden)
            wall, cpu, size = timed_opening(path)
            taken.append((wall, cpu))
            entries.add(size)
            if how == "built":
                hidden.rename(file)
    assert len(entries) == 1, "what was loaded is not what was built"
    return {how: (statistics.median(w for w, _ in t), statistics.median(c for _, c in t)) for how, t in times.items()}


def compare_views(directory: Path, rows: int, runs: int) -> None:
    for name, (query, options) in VIEWS.items():
        path = directory / name
        with_view(path, rows, query, options)
        found = loaded_and_built(path, runs)
        for how, (wall, cpu) in found.items():
            show(f"{name}, {how}", wall, "s", "at most 10")
            show("  of the CPU", cpu, "s")
        show("  built / loaded, of the CPU", found["built"][1] / found["loaded"][1], "times")


def commits(path: Path, count: int, threads: int) -> tuple[float, int]:
    """The time of this many commits of one row by each thread, and the syncs that they took."""
    with Database(path) as db:
        db.create_table("R", {"a": "int"})
        store = db.definitions.store
        assert store is not None
        before = store.log.commits.syncs

        def write() -> None:
            for number in range(count):
                db.insert("R", [(number,)])

        workers = [threading.Thread(target=write) for _ in range(threads)]
        taken = seconds(partial(run_all, workers))
        return taken, store.log.commits.syncs - before


def in_sqlite(path: Path, count: int) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE R (a INTEGER)")
    taken = seconds(lambda: [connection.execute("INSERT INTO R VALUES (?)", (n,)) for n in range(count)])
    connection.close()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--commits", type=int, default=300)
    options = parse(parser)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for size, what in ((1000, "log of batches"), (1, "log of single rows")):
            path = directory / what
            no_snapshots(partial(write, path, options.rows, size))
            show_opening(path, options.rows, options.runs, what)
        with Database(path) as db:
            db.checkpoint()
        show_opening(path, options.rows, options.runs, "snapshot")
        logging.getLogger("ivme.store").setLevel(logging.ERROR)  # that a view is built is what was asked for
        compare_views(directory, options.rows, options.runs)
        alone, _ = commits(directory / "one", options.commits, 1)
        show("commits, one thread", options.commits / alone, "per s")
        taken, syncs = commits(directory / "many", options.commits, 16)
        show("commits, sixteen threads", 16 * options.commits / taken, "per s")
        show("  commits for each sync", 16 * options.commits / syncs, "times")
        show("  one thread / SQLite", in_sqlite(directory / "sqlite.db", options.commits) / alone, "times")


def run_all(workers: list[threading.Thread]) -> None:
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def no_snapshots(work: Callable[[], None]) -> None:
    """Does something without snapshots in between, so that all of it stays in the log."""
    import ivme.store.store

    limit, ivme.store.store.LEAST_LOG = ivme.store.store.LEAST_LOG, 2**60
    try:
        work()
    finally:
        ivme.store.store.LEAST_LOG = limit


if __name__ == "__main__":
    main()
