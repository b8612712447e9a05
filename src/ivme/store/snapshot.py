"""Snapshots: the rows of each table in an Arrow file, and one sealed file that says which of them make the database.

The sealed file, `database.json`, is the only one that is ever replaced. It names the last record of the log that the
snapshot contains, and for each table its file and the file's checksum. A table that did not change since the last
snapshot keeps its file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.codes.dictionary import Codes
from ivme.engine.ingest.row_batch import RowBatch
from ivme.errors import DamagedError
from ivme.query.model import Table
from ivme.store.contents import Contents, StoredTable, StoredView, read_arrow, weighted_schema
from ivme.store.files import digest, free_name, read, read_sealed, whole_file, write_sealed
from ivme.store.losses import Losses
from ivme.store.plain import plain_table, read_table

MANIFEST = "database.json"
TABLE_FILE = re.compile(r"table-\d+-\d{12}(-\d+)?\.arrow")
VIEW_FILE = re.compile(r"views-\d{12}(-\d+)?\.arrow")

_CHUNK = 65_536
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table in a snapshot: its file (None if it is empty), the file's checksum, and how many distinct rows it has."""

    table: Table
    file: str | None
    checksum: str
    rows: int
    size: int

    def plain(self) -> dict[str, Any]:
        stored = {"file": self.file, "checksum": self.checksum, "rows": self.rows, "size": self.size}
        return {**plain_table(self.table), **stored}


@dataclass(frozen=True, slots=True)
class ViewFile:
    """The file with the views' maps of a snapshot, its checksum, and which version of ivme can read it."""

    file: str
    checksum: str
    size: int
    made_by: str

    def plain(self) -> dict[str, Any]:
        return {"file": self.file, "checksum": self.checksum, "size": self.size, "made_by": self.made_by}


@dataclass(frozen=True, slots=True)
class Manifest:
    """Which files make the database: the snapshot contains the log up to the record `last`.

    `image` is the file of the views' maps. Nothing depends on it: what it holds follows from the tables. `has_end` is
    whether there has to be a file that says how far the log reaches; older versions of ivme had none.
    """

    identity: str
    last: int
    tables: tuple[TableFile, ...] = ()
    views: tuple[StoredView, ...] = ()
    positions: tuple[tuple[str, int], ...] = ()
    image: ViewFile | None = None
    has_end: bool = False

    @property
    def size(self) -> int:
        """The bytes of the tables' files."""
        return sum(stored.size for stored in self.tables)


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """From now on the directory's contents are what the manifest says."""
    content = {
        "identity": manifest.identity,
        "last": manifest.last,
        "tables": [stored.plain() for stored in manifest.tables],
        "views": [view.plain() for view in manifest.views],
        "positions": dict(manifest.positions),
        "image": None if manifest.image is None else manifest.image.plain(),
        "has_end": manifest.has_end,
    }
    write_sealed(directory / MANIFEST, content)


def read_manifest(directory: Path) -> Manifest:
    found = read_sealed(directory / MANIFEST)
    try:
        tables = (TableFile(read_table(t), t["file"], t["checksum"], t["rows"], t["size"]) for t in found["tables"])
        views = (StoredView(**view) for view in found["views"])
        positions = tuple(found["positions"].items())
        image = None if found.get("image") is None else ViewFile(**found["image"])
        has_end = found.get("has_end", False)
        return Manifest(found["identity"], found["last"], tuple(tables), tuple(views), positions, image, has_end)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError(f"{directory / MANIFEST} is not in the format of this version of ivme: {error!r}") from error


def write_table(directory: Path, number: int, last: int, table: Table, rows: RowBatch) -> TableFile:
    """Writes the rows of the table that is the `number`-th of the snapshot that contains the record `last`."""
    if not len(rows.weights):
        return TableFile(table, None, "", 0, 0)
    name = free_name(directory, f"table-{number}-{last:012}", ".arrow")
    schema = weighted_schema(table)
    with (
        whole_file(directory / name) as sink,
        pa.ipc.new_stream(pa.PythonFile(sink, "w"), schema, options=_COMPRESSED) as writer,
    ):
        for chunk in _chunks(rows, schema):
            writer.write_table(chunk)
    return TableFile(table, name, sink.sum.hexdigest(), len(rows.weights), sink.size)


def _chunks(rows: RowBatch, schema: pa.Schema) -> Iterable[pa.Table]:
    for start in range(0, len(rows.weights), _CHUNK):
        weights = rows.weights[start : start + _CHUNK]
        chunk = rows.kept(np.arange(start, start + len(weights)), weights)
        yield pa.Table.from_arrays([*chunk.data.columns, pa.array(chunk.weights)], schema=schema)


def read_snapshot(directory: Path, manifest: Manifest, report: Callable[[int], None], losses: Losses) -> Contents:
    """The contents of a snapshot; `report` is told the bytes that were read, file by file."""
    tables = {}
    for stored in manifest.tables:
        try:
            tables[stored.table.name] = StoredTable(stored.table, _read_rows(directory, stored))
        except DamagedError as error:
            losses.add(DamagedError(f"{error}: the rows of table {stored.table.name} ({stored.rows:,} distinct)"))
            losses.tables.add(stored.table.name)
        report(stored.size)
    views: Mapping[str, StoredView] = {view.name: view for view in manifest.views}
    return Contents(tables, dict(views), dict(manifest.positions), lost=set(losses.tables))


def _read_rows(directory: Path, stored: TableFile) -> tuple[pa.Table, Codes] | None:
    if stored.file is None:
        return None
    path = directory / stored.file
    data = read(path)
    if digest(data).hex() != stored.checksum:
        raise DamagedError(f"{path} is damaged: its checksum does not fit")
    return read_arrow(data, stored.table, path)
