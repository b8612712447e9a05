"""What a pipeline is, once its file has been read: tables with their sources, views, sinks."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from ivme.definitions.user_functions import UserFunction
from ivme.pipeline.document import Place
from ivme.query.model import Table
from ivme.query.types import Type

Settings = tuple[tuple[str, str], ...]
"""Options of a Spark format, or of a session: names and values."""

WEIGHT = "ivme_weight"
"""The column of changes that says how often a row came (positive) or went (negative)."""

BATCH = "ivme_batch"
"""The column, or the partition, of a sink of changes that says in which batch of the pipeline they were made."""

INSERTS = ("insert", "i", "c", "r", "+", "update_postimage")
UPSERTS = (*INSERTS, "update", "u", "upsert", "merge")
TRUNCATES = ("truncate", "t")
DELETES = ("delete", "d", "-", "update_preimage")
"""The operations that a column of operations may have, in any case; the others only where rows go by their key."""

LOG = "ivme_transaction_log"
"""The source of the log of transactions, as the journal names it."""

DEBEZIUM, DEBEZIUM_LOG = "debezium", "debezium transactions"
"""Envelopes: events of rows, and the ends of transactions."""

REASON, ORIGIN, RAW = "ivme_reason", "ivme_source", "ivme_raw"
"""The columns of rows that were set aside: why, from which file or stream, and their text where it is not a row."""


FRAME = "frame"
"""The format of rows that Python gives as a DataFrame; their path is its name."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that Spark can read: a format, where it is, and what to make of its columns.

    `schema` is the layout of the files in Spark's DDL where it is not that of the table; `select` computes columns
    of the table from it in Spark SQL, and `where` leaves rows out. `frame` is the DataFrame of the format `frame`, if
    Python has given one; `table` names a table of Spark's catalog, or of Iceberg's.
    """

    format: str
    path: str | None
    place: Place
    options: Settings = ()
    schema: str | None = None
    select: Settings = ()
    where: str | None = None
    frame: Any = field(default=None, compare=False, repr=False)
    table: str | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """Where a table's changes come from.

    `kind` is `directory` (files, each of which is applied once), `stream` (anything that Spark streams, a streaming
    DataFrame of Python among it), `delta` (the change feed of a Delta table), `iceberg` (the snapshots of a table),
    `view` (a sink of another pipeline's changes) or `jdbc` (rows that are new by the column `cursor`, which may be as
    late as `delay`). One of `operation` and `weight` names the column that says what happens to a row; feeds and sinks
    have columns of their own for that.

    With `upsert`, rows take the place of those with their primary key, and deletes go by key; an `envelope` (debezium)
    says so for each event. `sequence_by` are expressions whose values say which event of a key is the newest, of the
    types `sequence_types`, and `history` names a view of all versions of rows by them. With `snapshot` each file, or
    version, is all that the table holds. `transaction_by` and `transaction_number` are expressions for the transaction
    of an event and its number there, and `collection` is the name that the log of transactions has for the table.
    """

    kind: str
    rows: Rows
    operation: str | None = None
    weight: str | None = None
    files_per_batch: int = 100
    ordered: bool = False
    once_by_content: bool = False
    starting_version: int | None = None
    upsert: bool = False
    envelope: str | None = None
    snapshot: bool = False
    sequence_by: tuple[str, ...] = ()
    sequence_types: tuple[Type, ...] = ()
    history: str | None = None
    transaction_by: str | None = None
    transaction_number: str | None = None
    collection: str | None = None
    cursor: str | None = None
    delay: str | None = None

    @property
    def is_keyed(self) -> bool:
        """Whether rows are found by their primary key."""
        return self.upsert or self.envelope == DEBEZIUM


@dataclass(frozen=True, slots=True)
class Watermark:
    """The column with the time of a table's events, how late they may come, and for how long the table keeps them."""

    column: str
    delay: timedelta
    keep: timedelta | None = None


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table, what it is loaded from when the pipeline is new, and what changes it.

    `defaults` are the values of columns in rows that were there before the columns.
    """

    table: Table
    place: Place
    load: Rows | None = None
    changes: Changes | None = None
    defaults: tuple[tuple[str, object], ...] = ()
    watermark: Watermark | None = None


@dataclass(frozen=True, slots=True)
class ViewText:
    """A view as the file has it."""

    name: str
    query: str
    place: Place
    options: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Sink:
    """Where the rows of a view, or the changes of its rows, are written.

    `mode` is `changes`, `rows` (all of them, each time) or `merge` (a table is made equal to the view by the columns of
    `key`). `every` is the number of batches after which rows are written again. `duplicates` accepts a format that
    cannot be written twice without harm: after a crash its last batch may be there twice. `table` names a table of
    Spark's catalog, `call` a Python function.
    """

    name: str
    view: str
    mode: str
    format: str
    path: str | None
    place: Place
    options: Settings = ()
    every: int = 1
    duplicates: bool = False
    key: tuple[str, ...] = ()
    table: str | None = None
    call: str | None = None


@dataclass(frozen=True, slots=True)
class Sharded:
    """Tables and views in shards on Spark's hosts.

    `checkpoint` is where their steps and snapshots are, a folder or an address that all hosts reach; without it a
    folder of the state. `hosts` is how many processes or tasks serve the shards; with `tls` connections are encrypted.
    """

    shards: int
    checkpoint: str | None = None
    hosts: int | None = None
    tls: bool = False


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Everything that a pipeline file says; relative paths start at the file."""

    name: str
    file: Path
    state: Path
    tables: tuple[TableSource, ...]
    views: tuple[ViewText, ...]
    sinks: tuple[Sink, ...] = ()
    stop_at_bad: bool = False
    bad_limit: int | None = None
    spark: Settings = ()
    functions: tuple[UserFunction, ...] = ()
    transactions: TableSource | None = None
    """The log of transactions, if tables change together by them."""

    copy: str | None = None
    """Where the state is copied to, for another machine to go on from."""

    staging: str | None = None
    """Where tasks write the rows of loads, for the driver to read: a store that both reach."""

    engine: Sharded | None = None
    """The shards that have its tables and views; without them the engine beside the driver has."""

    @property
    def shards(self) -> int:
        """How many shards there are; 1 without any."""
        return 1 if self.engine is None else self.engine.shards

    @property
    def checkpoint(self) -> str:
        """Where the steps of shards are."""
        named = None if self.engine is None else self.engine.checkpoint
        return str(self.state / "shards") if named is None else named

    @property
    def sources(self) -> tuple[TableSource, ...]:
        """The tables, and the log of transactions."""
        return self.tables if self.transactions is None else (*self.tables, self.transactions)

    @property
    def together(self) -> tuple[TableSource, ...]:
        """The tables whose changes wait for the end of their transaction."""
        found = tuple(each for each in self.tables if each.changes is not None and each.changes.transaction_by)
        return () if self.transactions is None else found

    def table(self, name: str) -> TableSource:
        return next(source for source in self.sources if source.table.name == name)

    def sinks_of(self, view: str) -> tuple[Sink, ...]:
        return tuple(sink for sink in self.sinks if sink.view == view)
