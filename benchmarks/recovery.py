"""Opening a directory with a million rows, from a snapshot and from the log; and commits per second.

    python -m benchmarks.recovery [--rows 1000000] [--commits 300] [--runs 3]

The log has a record for each row in one case, and one for each thousand in the other. Commits with durability="sync"
are made by one thread and by sixteen, which share syncs; beside them stands SQLite in WAL mode with the same rows.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.measure import parse, seconds, show
from ivme.database import Database

QUERY = "SELECT a, COUNT(*) AS n, SUM(b) AS total FROM R GROUP BY a"


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


def opening(path: Path, rows: int, runs: int) -> float:
    """The median time to open a directory, after a check that everything is there."""
    with Database(path) as db:
        check(db, rows)

    def once() -> None:
        Database(path).close()

    return statistics.median(seconds(once) for _ in range(runs))


def commits(path: Path, count: int, threads: int) -> tuple[float, int]:
    """The time of this many commits of one row by each thread, and the syncs that they took."""
    with Database(path) as db:
        db.create_table("R", {"a": "int"})
        store = db._store
        assert store is not None
        before = store.log.commits.syncs

        def write() -> None:
            for number in range(count):
                db.insert("R", [(number,)])

        workers = [threading.Thread(target=write) for _ in range(threads)]
        taken = seconds(lambda: [[w.start() for w in workers], [w.join() for w in workers]])
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
            no_snapshots(lambda path=path, size=size: made(path, options.rows, size).close())
            show(f"opening {options.rows:,} rows, {what}", opening(path, options.rows, options.runs), "s", "at most 10")
        with Database(path) as db:
            db.checkpoint()
        show(f"opening {options.rows:,} rows, snapshot", opening(path, options.rows, options.runs), "s", "at most 10")
        alone, _ = commits(directory / "one", options.commits, 1)
        show("commits, one thread", options.commits / alone, "per s")
        taken, syncs = commits(directory / "many", options.commits, 16)
        show("commits, sixteen threads", 16 * options.commits / taken, "per s")
        show("  commits for each sync", 16 * options.commits / syncs, "times")
        show("  one thread / SQLite", in_sqlite(directory / "sqlite.db", options.commits) / alone, "times")


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
