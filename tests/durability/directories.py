"""Durable databases that crash: what their files hold stays, and nothing else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from ivme.database import Database
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
