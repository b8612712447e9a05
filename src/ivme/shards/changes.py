"""The changes of a followed view, step by step, from the files of the steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from ivme.engine.runtime.delta import ArrowRows, Delta
from ivme.errors import SparkError
from ivme.shards.checkpoint import Checkpoint
from ivme.shards.merge import WEIGHT, consolidated

if TYPE_CHECKING:
    from ivme.shards.database import ShardedDatabase


def view_change(checkpoint: Checkpoint, view: str, step: int) -> list[pa.Table]:
    """How a view changed in a step, with the weights as last column: a table for each shard and pattern."""
    record = checkpoint.record(step)
    if record is None:
        where = checkpoint.store.address
        raise SparkError(f"the checkpoint {where} no longer has step {step}; open a new feed of view {view}")
    if record.is_layout:
        return []
    packed = (part for name in record.files.values() for part in checkpoint.read_file(name))
    return [part.unpacked().rows for part in packed if part.is_change_of(view)]


class ShardedChanges:
    """The changes of a view's rows, batch by batch. Iterating yields what has come since the last time."""

    def __init__(self, database: ShardedDatabase, view: str) -> None:
        self._database = database
        self.view = view
        self.seen = database.step
        """The last step whose changes were read; later ones are not removed from the checkpoint."""
        self._open = True

    @property
    def is_open(self) -> bool:
        return self._open

    def __iter__(self) -> Iterator[Delta]:
        while self._open and self.seen < self._database.step:
            found = view_change(self._database.checkpoint, self.view, self.seen + 1)
            self.seen += 1
            rows = consolidated(pa.concat_tables(found)) if found else None
            if rows is not None and rows.num_rows:
                yield Delta(ArrowRows(rows.drop_columns([WEIGHT]), rows.column(WEIGHT).to_numpy()))

    def skip(self) -> None:
        """Forgets what has come since the last time, for a reader that got it elsewhere."""
        self.seen = self._database.step

    def close(self) -> None:
        """Stops reading; the shards go on storing the changes for others."""
        self._open = False

    def __enter__(self) -> ShardedChanges:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
