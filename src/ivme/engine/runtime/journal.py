"""What a runtime tells the journal of its commits: each before it takes effect, so that an error can still undo it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.runtime.positions import Progress

if TYPE_CHECKING:
    from ivme._kernel import LogEnd

Mark = tuple[int, int]
"""An end of the journal."""

ArrowRecord = tuple[bytes, list[Any], int]
"""What a journal says of record batches: its text, the bytes behind it, and a sum of these."""


class Journal(Protocol):
    """The runtime's callers hold its lock, except for `wait`."""

    @property
    def end(self) -> LogEnd | None:
        """Where the kernel keeps batches of a few rows itself; None if it cannot."""

    def mark(self) -> Mark:
        """The journal's end, to which `roll_back` returns."""

    def batch(self, batch: Mapping[str, RowBatch], progress: Progress | None) -> None:
        """Keeps a batch, or raises and keeps nothing."""

    def record(self, parts: Sequence[tuple[str, pa.RecordBatch, int]]) -> ArrowRecord | None:
        """What it would keep of record batches, each of a table and with a weight for all of its rows.

        It is for the kernel, which keeps it at the end; None if `batch` has to.
        """

    def row(self, table: str, row: tuple[Any, ...], weight: int) -> None:
        """Keeps a batch of one row."""

    def roll_back(self, mark: Mark) -> None:
        """Forgets what came behind the mark: it did not take effect."""

    def wait(self) -> None:
        """Returns when what this thread gave is as durable as requested."""

    def wait_taken(self) -> None:
        """The same for what the kernel stored, in this thread or a later one."""


def taken_durably(take: Callable[[Any, Any, int], bool], journal: Journal) -> Callable[[Any, Any, int], bool]:
    """Takes rows as the kernel does, and returns when they are durable."""

    def take_durably(table: Any, rows: Any, weight: int) -> bool:
        taken = take(table, rows, weight)
        if taken:
            journal.wait_taken()
        return taken

    return take_durably
