"""The durable side of a database: the journal of its commits, and snapshots from time to time.

A commit is one record of the log, written before it takes effect in memory and waited for after. When the log has
grown twice as large as the snapshot, which is compressed, and is not small, a snapshot is made in the background: under
the lock a new segment of the log begins and the tables' codes and the views' maps are copied; without it they are
written. Until the manifest is replaced, the old snapshot and both segments are the database; afterwards they are
removed. So opening reads at most about twice as many rows as the tables have, and each is written about twice. The
views' maps come on top: where they are much larger than the tables, only a snapshot that was requested has them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivme.engine.codes.arrow_types import arrow_schema
from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.runtime.image import Image, image_of
from ivme.engine.runtime.journal import ArrowRecord, Mark
from ivme.engine.runtime.positions import Progress
from ivme.engine.runtime.reclaim import reclaim
from ivme.engine.runtime.runtime import Runtime
from ivme.errors import StorageError
from ivme.query.model import Table
from ivme.store.contents import Contents, StoredView, arrow_record, batch_record
from ivme.store.directory import DirectoryLock, remove_unneeded
from ivme.store.log import Log
from ivme.store.log_state import PlainLogEnd
from ivme.store.plain import Convert, convert, plain_option, plain_table, writers
from ivme.store.snapshot import Manifest, TableFile, ViewFile, write_manifest, write_table
from ivme.store.view_file import write_image

if TYPE_CHECKING:
    from ivme._kernel import LogEnd

LEAST_LOG = 64 * 2**20
"""The log grows to this many bytes at least before a snapshot is made."""

LOG_TO_TABLES = 2
"""Bytes of the log for each byte of the tables' files, which are compressed, when a snapshot is due."""

MOST_WORDS = 64
"""A snapshot that was not requested has the views' maps if they have at most this many words for each row."""

_logger = logging.getLogger("ivme.store")


class Store:
    """An open directory. It is the journal of the runtime whose tables it keeps.

    `found` says how its log ended when it was opened.
    """

    def __init__(
        self,
        path: Path,
        lock: DirectoryLock,
        manifest: Manifest,
        log: Log,
        runtime: Runtime,
        contents: Contents,
        broken: Mapping[str, str],
        found: str,
    ) -> None:
        self.path = path
        self.log = log
        self._lock = lock
        self._manifest = manifest
        self._runtime = runtime
        self.views = contents.views
        self._broken = broken
        self.found = found
        self._changed = contents.changed
        self._unwritten: set[str] = set()
        self._writers: dict[str, tuple[Table, list[tuple[int, Convert]]]] = {}
        self._schemas: dict[str, tuple[Table, pa.Schema]] = {}
        self._snapshot: threading.Thread | None = None
        self._one_at_a_time = threading.Lock()
        self._uncertain = False
        self.log.state.limit = _limit(manifest)

    # The journal

    @property
    def end(self) -> LogEnd | None:
        """Where the kernel appends records of its own."""
        return None if isinstance(self.log.state, PlainLogEnd) else self.log.state

    def wait_taken(self) -> None:
        self.log.wait_taken()

    def mark(self) -> Mark:
        return self.log.mark()

    def roll_back(self, mark: Mark) -> None:
        self.log.roll_back(mark)

    def wait(self) -> None:
        self.log.wait()

    def batch(self, batch: Mapping[str, RowBatch], progress: Progress | None) -> None:
        tables = {name: self._runtime.catalog.tables[name].table for name in batch}
        self.log.append(*batch_record(tables, batch, progress, compressed=self.log.lags))
        self._changed.update(batch)
        self._snapshot_if_due()

    def record(self, parts: Sequence[tuple[str, pa.RecordBatch, int]]) -> ArrowRecord | None:
        if any(name not in self._runtime.catalog.tables for name, _, _ in parts):
            return None
        stated = [(name, self._schema(name), data, weight) for name, data, weight in parts]
        return arrow_record(stated, compressed=self.log.lags)

    def _schema(self, name: str) -> pa.Schema:
        """A table's columns in Arrow, remembered by its name: tables are long to compare."""
        table = self._runtime.catalog.tables[name].table
        known = self._schemas.get(name)
        if known is None or known[0] is not table:
            known = self._schemas[name] = (table, arrow_schema(table))
        return known[1]

    def row(self, table: str, row: tuple[Any, ...], weight: int) -> None:
        declared = self._runtime.catalog.tables[table].table
        known = self._writers.get(table)
        if known is None or known[0] is not declared:
            known = self._writers[table] = (declared, writers(declared))
        rows = convert([list(row)], known[1])
        self.log.append({"batch": [{"table": table, "rows": rows, "weights": [weight]}]})
        self._changed.add(table)
        self._snapshot_if_due()

    # The catalog

    def create_table(self, table: Table, *, replaced: str | None = None) -> None:
        """Keeps that there is a table, perhaps in the place of another."""
        gone = {} if replaced is None else {"drop_table": replaced}
        self.log.append({**gone, "create_table": plain_table(table)})
        self._changed.add(table.name)

    def change_columns(self, table: Table, places: Sequence[int | None], default: object) -> None:
        """Keeps that a table has other columns; see `altered_tables.change_columns`."""
        new = [list(places).index(None)] if None in places else []
        row = [[default if place is None else None for place in places]]
        (plain,) = convert(row, writers(table))
        change = {"table": plain_table(table), "places": list(places), "default": plain[new[0]] if new else None}
        self.log.append({"change_columns": change})
        self._changed.add(table.name)

    def rename_table(self, name: str, to: str) -> None:
        """Keeps that a table, and what references it, has another name for it."""
        self.log.append({"rename_table": [name, to]})
        tables = [state.table for state in self._runtime.catalog.tables.values()]
        self._changed.update(each.name for each in tables if any(key.table == name for key in each.references))
        self._changed.add(to)

    def create_view(
        self,
        name: str,
        query: str,
        options: Mapping[str, object],
        plan: str | None = None,
        functions: Sequence[Mapping[str, Any]] = (),
        *,
        replaced: str | None = None,
    ) -> None:
        """Keeps that there is a view, perhaps in the place of another."""
        kept = {option: plain_option(option, value) for option, value in options.items()}
        view = StoredView(name, query, kept, plan, functions)
        gone = {} if replaced is None else {"drop_view": replaced}
        self.log.append({**gone, "create_view": view.plain()})
        self.views.pop(name, None)  # views are built again in the order in which they were made
        self.views[name] = view

    def change_plan(self, name: str, plan: str | None) -> None:
        """Keeps that a view is maintained by another plan; None if opening the directory plans it."""
        self.log.append({"change_plan": [name, plan]})
        self.views[name] = replace(self.views[name], plan=plan)

    def drop(self, kind: str, name: str) -> None:
        """Keeps that a table or view is gone."""
        self.log.append({f"drop_{kind}": name})

    def forget_view(self, name: str) -> None:
        """The view is gone."""
        self.views.pop(name, None)

    # Snapshots

    def _snapshot_if_due(self) -> None:
        if self.log.size < self.log.state.limit or (self._snapshot is not None and self._snapshot.is_alive()):
            return
        self.log.state.limit = self.log.size + LEAST_LOG
        self._snapshot = threading.Thread(target=self._snapshot_in_background, name="ivme-snapshot")
        self._snapshot.start()

    def _snapshot_in_background(self) -> None:
        try:
            self.snapshot(MOST_WORDS)
        except StorageError as error:
            _logger.warning("no snapshot of %s was written; its log continues: %s", self.path, error)

    def snapshot(self, most: int | None = None) -> None:
        """Writes what changed since the last snapshot and the views' maps, and removes what is then not needed.

        If the manifest could not be written, the directory may have either: then the files of both stay.
        With `most`, the maps are left out if they have more words than this for each of the tables' rows.
        """
        with self._one_at_a_time:
            publishing = False
            try:
                self.log.flush()
                with self._runtime.lock:
                    reclaim(self._runtime.catalog, now=True)  # an image has all values of dictionaries
                    last = self.log.rotate()
                    self._unwritten |= self._changed
                    self._changed.clear()
                    changed = set(self._unwritten)
                    tables = {name: state.table for name, state in self._runtime.catalog.tables.items()}
                    reader = self._runtime.reader
                    rows = {name: reader.all_rows(name, only_decodes=True) for name in tables if name in changed}
                    self._runtime.catalog.holders.update(rows.values())
                    there = {*self._runtime.catalog.views, *self._broken}
                    views = tuple(view for view in self.views.values() if view.name in there)
                    positions = tuple(self._runtime.catalog.positions.all().items())
                    image = image_of(self._runtime.catalog, most)
                files = self._write_tables(last, tables, rows)
                stored = None if image is None else self._write_image(last, image)
                manifest = replace(self._manifest, last=last, tables=files, views=views, positions=positions)
                manifest = replace(manifest, image=stored)
                publishing = True
                write_manifest(self.path, manifest)
                self._manifest, self._uncertain = manifest, False
            except BaseException:
                self._uncertain |= publishing
                if not self._uncertain:
                    remove_unneeded(self.path, self._manifest)
                raise
            with self._runtime.lock:
                self._unwritten = set()
                self.log.forget_older()
                self.log.state.limit = _limit(manifest)
            remove_unneeded(self.path, manifest)

    def _write_tables(
        self, last: int, tables: Mapping[str, Table], rows: Mapping[str, RowBatch]
    ) -> tuple[TableFile, ...]:
        kept = {stored.table.name: stored for stored in self._manifest.tables}
        return tuple(
            write_table(self.path, number, last, table, rows[name]) if name in rows else kept[name]
            for number, (name, table) in enumerate(tables.items())
        )

    def _write_image(self, last: int, image: Image) -> ViewFile | None:
        """Writes the views' maps; without room for them, the snapshot is one of the tables."""
        try:
            return write_image(self.path, self._manifest.identity, last, image)
        except StorageError as error:
            _logger.warning("the views of %s are not in its snapshot, and will be built: %s", self.path, error)
            return None

    def close(self) -> None:
        """Ends the log and lets go of the directory."""
        with self._one_at_a_time, self._runtime.lock:
            try:
                self.log.close()
            finally:
                self._lock.release()
        if self._snapshot is not None and self._snapshot.is_alive():
            self._snapshot.join()


def _limit(manifest: Manifest) -> int:
    """The size of the log from which on a snapshot is due."""
    return max(LEAST_LOG, LOG_TO_TABLES * manifest.size)
