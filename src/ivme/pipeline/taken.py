"""Changes that were made of a batch's events, stored until the next batch: what a sink lacks after a crash.

What events by key change depends on what the table held before them, so that they cannot be made of the source again
once the database has the batch. They are written, and synced, before the database takes them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from ivme.pipeline.journal import digits
from ivme.pipeline.model import WEIGHT
from ivme.pipeline.table_changes import TableChanges, delta_of


class TakenBatches:
    """A folder with a file for each table of the last batch."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, batch: int, changes: Mapping[str, TableChanges]) -> None:
        """Keeps the changes of a batch in place of all others; two synced writes for each table."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for old in self._folder.iterdir():
            old.unlink()
        for table, found in changes.items():
            path = self._folder / f"{digits(batch)}-{table}.arrow"
            whole = found.rows.append_column(WEIGHT, pa.array(found.weights))
            with path.open("wb") as file, pa.ipc.new_file(file, whole.schema) as writer:
                writer.write_table(whole)
            with path.open("rb") as written:
                os.fsync(written.fileno())

    def load(self, batch: int) -> dict[str, TableChanges] | None:
        """The changes of a batch, None if it is not the one that is stored."""
        prefix = f"{digits(batch)}-"
        found = sorted(self._folder.glob(f"{prefix}*.arrow")) if self._folder.is_dir() else []
        return {path.stem.removeprefix(prefix): _read(path) for path in found} or None


def _read(path: Path) -> TableChanges:
    with pa.memory_map(str(path)) as file:
        whole = pa.ipc.open_file(file).read_all()
    return delta_of(whole.drop_columns([WEIGHT]), whole.column(WEIGHT).combine_chunks())
