"""The changes of a followed view, step by step, from the files that its shards write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from ivme.engine.runtime.delta import ArrowRows, Delta
from ivme.shards.change_files import change_files, merged_up_to, read_change
from ivme.shards.merge import WEIGHT, consolidated

if TYPE_CHECKING:
    from ivme.shards.database import ShardedDatabase


class ShardedChanges:
    """The changes of a view's rows, batch by batch. Iterating yields what has come since the last time."""

    def __init__(self, database: ShardedDatabase, view: str) -> None:
        self._database = database
        self._view = view
        self._seen = database.step
        self._open = True

    def __iter__(self) -> Iterator[Delta]:
        if not self._open:
            return
        journal = self._database._journal
        upto = merged_up_to(journal.root, self._view, self._seen, self._database.step)
        files = change_files(journal, self._view, self._seen, upto)
        self._seen = upto
        for paths in files.values():
            rows = consolidated(pa.concat_tables(map(read_change, paths)))
            if rows.num_rows:
                yield Delta(ArrowRows(rows.drop_columns([WEIGHT]), rows.column(WEIGHT).to_numpy()))

    def close(self) -> None:
        """Stops reading; the shards go on keeping the changes for others."""
        self._open = False

    def __enter__(self) -> ShardedChanges:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
