"""What a pipeline has planned, and what became of it: the side of exactly-once that is not in the database.

A batch is planned here, under its number, before it is read; the database then takes its changes and its number in one
transaction. So the last planned batch has been applied if the database has its number, and otherwise not at all; if a
sink lacks it, it can be read again. Sinks note the last batch that they wrote. A file of changes has one line, under
its name, with the digest of its content: it is applied once, and what was refused says why.

The journal is SQLite, whose transactions survive crashes; it holds names and numbers, never rows.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TABLES = """
CREATE TABLE IF NOT EXISTS batches (number INTEGER PRIMARY KEY, source TEXT NOT NULL, plan TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS files (
    source TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL, batch INTEGER, reason TEXT, stamp TEXT,
    PRIMARY KEY (source, name, digest)
);
CREATE INDEX IF NOT EXISTS files_by_digest ON files (source, digest);
CREATE TABLE IF NOT EXISTS sinks (name TEXT PRIMARY KEY, batch INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Planned:
    """A batch: its number, the source of its changes, and what the source needs to read them again."""

    number: int
    source: str
    plan: Mapping[str, Any]


Stamp = tuple[int, int]
"""When a file was last written, in nanoseconds, and its size: while both stay, it is not read again."""


@dataclass(frozen=True, slots=True)
class ChangeFile:
    """A file of changes; `digest` is that of its content."""

    name: str
    digest: str
    stamp: Stamp | None = None


class RunJournal:
    """The journal in a folder. One process uses it at a time: the one that has the database beside it.

    Its threads share one connection, and take turns: those that Spark calls back would else get into the transactions
    of the one that drives.
    """

    def __init__(self, path: Path | None) -> None:
        """Opens the journal of a state; without a path an empty one, in memory."""
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.executescript(_TABLES)
        if "stamp" not in [column[1] for column in self._all("PRAGMA table_info(files)")]:  # a state of before
            self._connection.execute("ALTER TABLE files ADD COLUMN stamp TEXT")

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def contents(self) -> bytes:
        """The journal as a file of SQLite has it."""
        with self._lock:
            return self._connection.serialize()

    def last(self) -> Planned | None:
        """The batch that was planned last."""
        found = self._one("SELECT * FROM batches ORDER BY number DESC LIMIT 1")
        return None if found is None else Planned(found[0], found[1], json.loads(found[2]))

    def last_of(self, source: str) -> Planned | None:
        """The batch of a source that was planned last."""
        statement = "SELECT * FROM batches WHERE source = ? ORDER BY number DESC LIMIT 1"
        found = self._one(statement, source)
        return None if found is None else Planned(found[0], found[1], json.loads(found[2]))

    def plan(self, batch: Planned, files: Iterable[ChangeFile] = ()) -> None:
        """Plans a batch, or plans it again; the files are those that it now consists of."""
        with self._transaction():
            self._connection.execute("DELETE FROM files WHERE batch = ? AND reason IS NULL", (batch.number,))
            self._connection.execute(
                "INSERT OR REPLACE INTO batches VALUES (?, ?, ?)",
                (batch.number, batch.source, json.dumps(batch.plan)),
            )
            self._connection.executemany(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, NULL, ?)",
                [(batch.source, file.name, file.digest, batch.number, json.dumps(file.stamp)) for file in files],
            )
            self._forget_old(batch)

    def _forget_old(self, batch: Planned) -> None:
        """Keeps the last two batches of a source: what has been applied is in `files`, or in the source itself."""
        self._connection.execute(
            "DELETE FROM batches WHERE source = ? AND number < (SELECT MAX(number) FROM batches WHERE source = ?"
            " AND number < ?)",
            (batch.source, batch.source, batch.number),
        )

    def drop(self, batch: Planned) -> None:
        """Forgets a planned batch of which nothing is left."""
        with self._transaction():
            self._connection.execute("DELETE FROM files WHERE batch = ? AND reason IS NULL", (batch.number,))
            self._connection.execute("DELETE FROM batches WHERE number = ?", (batch.number,))

    def refuse(self, source: str, file: ChangeFile, reason: str) -> None:
        """Notes that a file is not applied, and why."""
        values = (source, file.name, file.digest, reason, json.dumps(file.stamp))
        self._all("INSERT OR REPLACE INTO files VALUES (?, ?, ?, NULL, ?, ?)", *values)

    def known(self, source: str, name: str) -> list[tuple[str, str | None]]:
        """The digests under which a file of that name is known, with the reasons for refusing it."""
        statement = "SELECT digest, reason FROM files WHERE source = ? AND name = ?"
        return self._all(statement, source, name)

    def same_content(self, source: str, digest: str) -> str | None:
        """The name of a planned or applied file with that content."""
        statement = "SELECT name FROM files WHERE source = ? AND digest = ? AND reason IS NULL"
        found = self._one(statement, source, digest)
        return None if found is None else str(found[0])

    def names(self, source: str) -> list[str]:
        """The names of the planned or applied files."""
        return [name for (name,) in self._all("SELECT name FROM files WHERE source = ? AND reason IS NULL", source)]

    def stamps(self, source: str) -> dict[str, Stamp]:
        """The files that were looked at, each with its stamp at the time."""
        found = self._all("SELECT name, stamp FROM files WHERE source = ? ORDER BY rowid", source)
        read = ((name, None if stamp is None else json.loads(stamp)) for name, stamp in found)
        return {name: (stamp[0], stamp[1]) for name, stamp in read if stamp is not None}

    def applied(self, source: str, up_to: int) -> list[ChangeFile]:
        """The files whose batches are not above a number, in the order in which they were applied."""
        statement = (
            "SELECT name, digest FROM files WHERE source = ? AND batch <= ? AND reason IS NULL ORDER BY batch, rowid"
        )
        return [ChangeFile(*found) for found in self._all(statement, source, up_to)]

    def refused(self) -> list[tuple[str, str, str]]:
        """All refused files: source, name, reason."""
        statement = "SELECT source, name, reason FROM files WHERE reason IS NOT NULL ORDER BY source, name"
        return self._all(statement)

    def refused_files(self, source: str) -> list[ChangeFile]:
        """The refused files of a source, in the order in which they were."""
        statement = "SELECT name, digest FROM files WHERE source = ? AND reason IS NOT NULL ORDER BY rowid"
        return [ChangeFile(*found) for found in self._all(statement, source)]

    def forget_refused(self, source: str, file: ChangeFile) -> None:
        """Forgets that a file was refused, so that it is looked at again."""
        statement = "DELETE FROM files WHERE source = ? AND name = ? AND digest = ? AND reason IS NOT NULL"
        self._all(statement, source, file.name, file.digest)

    def written(self, sink: str) -> int | None:
        """The last batch that a sink has; None for a new one."""
        found = self._one("SELECT batch FROM sinks WHERE name = ?", sink)
        return None if found is None else int(found[0])

    def wrote(self, sinks: Iterable[str], batch: int) -> None:
        """Notes that sinks have a batch."""
        with self._transaction():
            self._connection.executemany("INSERT OR REPLACE INTO sinks VALUES (?, ?)", [(s, batch) for s in sinks])

    def fact(self, name: str) -> str | None:
        """Something that was noted under a name."""
        found = self._one("SELECT value FROM facts WHERE name = ?", name)
        return None if found is None else str(found[0])

    def facts(self, prefix: str) -> dict[str, str]:
        """What was noted under names with a prefix, without it, in the order in which it first was."""
        found = self._all("SELECT name, value FROM facts WHERE substr(name, 1, ?) = ?", len(prefix), prefix)
        return {name[len(prefix) :]: value for name, value in found}

    def note(self, name: str, value: str) -> None:
        """Notes something under a name."""
        self._all("INSERT OR REPLACE INTO facts VALUES (?, ?)", name, value)

    def _all(self, statement: str, *values: Any) -> list[Any]:
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def _one(self, statement: str, *values: Any) -> Any:
        with self._lock:
            return self._connection.execute(statement, values).fetchone()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")


def digits(number: int) -> str:
    """A batch number such that names sort like numbers."""
    return f"{number:012d}"


def numbered(names: Iterable[str], prefix: str) -> Iterator[int]:
    """The batch numbers of the names that have a prefix."""
    for name in names:
        if name.startswith(prefix) and name[len(prefix) :].isdigit():
            yield int(name[len(prefix) :])
