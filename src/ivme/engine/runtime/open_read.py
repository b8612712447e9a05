"""Answers that are read block by block, all of them as of the moment when they began.

An answer that is being read is known to the runtime. A writer that is about to change what it reads first lets it
finish, into columns of codes, which are decoded when they are asked for, and are held until then; an answer that has
more rows than that may take is stale from then on, and says so. An answer of which all rows are wanted is read at once.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, repeat, starmap
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ivme.errors import DataError, StaleCursor

if TYPE_CHECKING:
    from ivme.engine.backend import Block, Codes, Cursor
    from ivme.engine.runtime.reader import Reader
    from ivme.engine.runtime.view_state import ViewState

Row = tuple[Any, ...]

FIRST_ROWS, BLOCK, MANY = 64, 8192, 65_536
"""How many rows are read at first, later, and by readers that want all."""

MOST_FINISHED = 2**18
"""Up to so many rows are read on for an iterator that is open while the data changes."""


class OpenRead:
    """An answer under way. Blocks grow, so that reading a few rows takes the time of a few."""

    def __init__(self, reader: Reader, state: ViewState, inputs: tuple[int, ...] | None) -> None:
        """With None as inputs it is an answer without rows."""
        self.state = state
        self._reader = reader
        self._inputs = inputs or ()
        self._cursor: Cursor | None = None
        self._size = FIRST_ROWS
        self._blocks: deque[Block] = deque()
        self._taken: Block | None = None
        self._ended = inputs is None
        self._begun = self._stale = False

    def __iter__(self) -> Iterator[Block]:
        return self

    def __next__(self) -> Block:
        if not self._blocks:
            with self._reader.catalog.lock:  # a writer may be reading it to its end just now
                if not self._blocks:
                    self._read(self._size, most=0)
        if self._blocks:
            self._size = min(2 * self._size, BLOCK)
            self._begun = True
            self._taken = block = self._blocks[0]
            self._blocks.popleft()
            return block
        self._taken = None
        if self._stale:
            raise StaleCursor(
                f"view {self.state.name} changed while it was being read, and had more rows left than are kept for an "
                "iterator; read it again, with list() or into Arrow, which read all of it at once"
            )
        raise StopIteration

    def read_all(self) -> None:
        """Reads what is left; an answer that went stale before any row of it was taken begins anew."""
        with self._reader.catalog.lock:
            if self._stale and not self._begun:
                self._blocks.clear()
                self._cursor, self._ended, self._stale = None, False, False
            self._read(MANY, most=None)

    def finish(self) -> None:
        """What it reads is about to change. A row that cannot be read does not concern the writer."""
        with suppress(DataError):
            self._read(MANY, most=MOST_FINISHED)

    def held_codes(self) -> list[Codes]:
        """Those of blocks that are not decoded yet. The last that was taken may just be on its way.

        Without the lock, a block is taken before it leaves the queue, and is decoded before the next is taken.
        """
        blocks = [*tuple(self._blocks), self._taken]
        codes = [column for block in blocks if block is not None for column in (*block[0], *block[3])]
        return [*codes, np.array(self._inputs, dtype=np.int64)]

    def rows(self) -> int:
        """How many rows have been read and not been taken."""
        return sum(len(block[1]) for block in self._blocks)

    def _read(self, size: int, most: int | None) -> None:
        """Reads one block, or with `most` None all, or up to so many rows; the caller holds the lock.

        An exception in the middle leaves it stale: some rows may have been read and not been kept.
        """
        if self._ended:
            return
        self._reader.catalog.holders.add(self)
        was_open, self._stale, self._ended = self._cursor is not None, True, True
        if self._cursor is None:
            self._cursor = self._reader.open_cursor(self.state, self._inputs, whole=most is None)
        blocks: list[Block] = []
        rows, left = 0, True
        while left and (not blocks or most is None or rows < most):
            block = self._reader.next_block(self.state, self._cursor, size)
            left = bool(len(block[1]))
            rows += len(block[1])
            blocks += [block] if left else []
        if not left:
            self._cursor = None
            self._reader.catalog.open_reads.pop(id(self), None)
        elif not was_open:
            self._reader.catalog.open_reads[id(self)] = self._known()
        self._blocks.extend(blocks)
        self._stale, self._ended = False, not left
        if left and most:
            self._stale = self._ended = True

    def _known(self) -> weakref.ref[OpenRead]:
        reads, key = self._reader.catalog.open_reads, id(self)
        return weakref.ref(self, lambda _: reads.pop(key, None))


class Rows(chain[Any]):
    """The rows of an answer under way; one that is listed is read at once, as the list wants all of it."""

    read: OpenRead

    def __length_hint__(self) -> int:
        self.read.read_all()
        return self.read.rows()


def rows_of(read: OpenRead, parts: Iterable[Iterable[Any]]) -> Rows:
    """The rows of all parts, which come from an answer under way."""
    rows = cast(Rows, Rows.from_iterable(parts))
    rows.read = read
    return rows


def repeated(items: Iterable[tuple[Row, int]]) -> Iterator[Row]:
    """Each row, repeated by its multiplicity."""
    return chain.from_iterable(starmap(repeat, items))
