"""Durable databases that crash: what their files hold stays, and nothing else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from ivme.database import Database
from ivme.errors import IvmeError
from tests.databases import weighted

SCHEMA = {
    "i": "int",
    "f": "float",
    "d": "decimal(9, 2)",
    "w": "decimal(30, 3)",
    "s": "string",
    "b": "bool",
    "day": "date",
    "at": "timestamp",
    "raw": "binary",
}
"""A column of each kind of values."""


def crash(db: Database) -> None:
    """Leaves the files as they are and lets go of the lock, as the end of a process does."""
    store = db.definitions.store
    assert store is not None
    if store._snapshot is not None:
        store._snapshot.join()
    store.log.release()
    store._lock.release()


def bag(db: Database, table: str) -> Counter[Any]:
    """The rows of a table with their multiplicities."""
    return Counter(weighted(*db.contents(table)))


def log_of(path: Path) -> Path:
    """The last segment of the log."""
    return max(path.glob("log-*.ivme"))


def flip(path: Path, place: int, bit: int = 0) -> None:
    """Turns a bit of a file over."""
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)


def small(path: Path, durability: str) -> Database:
    db = Database(path, durability=durability)
    db.create_table("R", {"a": "int", "b": "string"})
    db.create_view("v", "SELECT b, COUNT(*) AS n FROM R GROUP BY b")
    db.insert("R", [(0, "first")])  # opens the path
    return db


def batch_of(numbers: range) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"a": list(numbers), "b": [f"é{number % 7}" for number in numbers]})


def changed(db: Database, batch: list[tuple[str, int, Any]]) -> str:
    """What became of a batch."""
    try:
        if len(batch) == 1:
            ((table, weight, rows),) = batch
            (db.insert if weight > 0 else db.delete)(table, rows)
        else:
            with db.batch() as changes:
                for table, weight, rows in batch:
                    (changes.insert if weight > 0 else changes.delete)(table, rows)
    except IvmeError as error:
        return str(error)
    return "done"


def appended(db: Database) -> int:
    """The number of the last record that the kernel appended."""
    store = db.definitions.store
    assert store is not None
    return store.log.state.taken[1]
