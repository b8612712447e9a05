"""The changes of a followed view, step by step, from the files that its shards write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivme.spark.journal import Journal
from ivme.spark.merge import WEIGHT, consolidated

if TYPE_CHECKING:
    from ivme.spark.sharded import ShardedDatabase

RowChange = dict[tuple[Any, ...], int]


def change_files(journal: Journal, view: str, after: int, upto: int) -> dict[int, list[Path]]:
    """The files with a view's changes in the steps after one and up to another, by step."""
    found: dict[int, list[Path]] = {}
    for path in (journal.root / "changes" / view).glob("*-*-*"):
        number = path.name.split("-")[0]
        if number.isdecimal() and path.name.count("-") == 2 and "." not in path.name and after < int(number) <= upto:
            found.setdefault(int(number), []).append(path)
    return dict(sorted(found.items()))


def read_change(path: Path) -> pa.Table:
    """The change of a view's rows in one step and shard, with the weights as last column."""
    data = path.read_bytes()
    return pa.ipc.open_stream(pa.py_buffer(data[data.index(b"\n") + 1 :])).read_all()


class ShardedChanges:
    """The changes of a view's rows, batch by batch. Iterating yields what has come since the last time."""

    def __init__(self, database: ShardedDatabase, view: str) -> None:
        self._database = database
        self._view = view
        self._seen = database._step
        self._open = True

    def __iter__(self) -> Iterator[RowChange]:
        if not self._open:
            return
        upto = self._database._step
        files = change_files(self._database._journal, self._view, self._seen, upto)
        self._seen = upto
        for paths in files.values():
            rows = consolidated(pa.concat_tables(map(read_change, paths)))
            weights = rows.column(WEIGHT).to_pylist()
            columns = [column.to_pylist() for column in rows.columns[:-1]]
            change = dict(zip(zip(*columns, strict=True) if columns else [()] * len(weights), weights, strict=True))
            if change:
                yield change

    def close(self) -> None:
        """Stops reading; the shards go on keeping the changes for others."""
        self._open = False

    def __enter__(self) -> ShardedChanges:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
