"""Answers that are read block by block, all of them as of the moment when they began.

Most cursors of the kernel are *pinned*: they read their maps as they were, whatever is written meanwhile, and need no
lock of the database between blocks (decision 0220). Of other answers the runtime knows that they are being read: a
writer that is about to change what they read first lets them finish, into columns of codes, which are decoded when they
are requested, and are held until then. An answer for which there is not enough memory is stale from then on, and says
so. An answer of which all rows are wanted never is: if it cannot be read beside writers, they wait.
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
        """With None as inputs it is an answer without rows. The caller holds the lock of the view."""
        self.state = state
        self._reader = reader
        self._inputs = inputs or ()
        self._cursor: Cursor | None = None
        self._size = FIRST_ROWS
        self._blocks: deque[Block] = deque()
        self._taken: Block | None = None
        self._ended = inputs is None
        self._begun = self._stale = False
        if inputs is not None:
            reader.catalog.holders.add(self)

    def __iter__(self) -> Iterator[Block]:
        return self

    def __next__(self) -> Block:
        if not self._blocks:
            self._read_on(self._size)
        if self._blocks:
            self._size = min(2 * self._size, BLOCK)
            self._begun = True
            self._taken = block = self._blocks[0]
            self._blocks.popleft()
            return block
        self._taken = None
        if self._stale:
            raise StaleCursor(
                f"view {self.state.name} changed while it was being read, and its old rows are too large to be "
                "stored for an iterator; read it again, with list() or into Arrow, which read all of it at once"
            )
        raise StopIteration

    def begin(self) -> None:
        """Rows are those of now, however late they are taken."""
        with self._reader.lock_of(self.state):
            self._open()

    def read_all(self, most: int | None = None) -> None:
        """Reads what is left; with `most`, more rows than that are enough.

        An answer that went stale before any row of it was taken starts again, and writers wait for it.
        """
        lock = self._reader.lock_of(self.state)
        enough = None if most is None else most + 1
        with lock:
            self._open(whole=most is None)
            if not self._is_pinned():
                self._read(MANY, enough)
        if self._is_pinned():
            self._read(MANY, enough)
        if self._stale and not self._begun:
            with lock:
                self._blocks.clear()
                self._cursor, self._ended, self._stale = None, False, False
                self._open(whole=most is None)
                self._read(MANY, enough)

    def _read_on(self, size: int) -> None:
        """Reads the next block. One that is not pinned a writer may be reading to its end just now."""
        if self._is_pinned():
            self._read(size, most=1)
            return
        with self._reader.lock_of(self.state):
            if not self._blocks:
                self._open()
                self._read(size, most=1)

    def finish(self) -> None:
        """What it reads is about to change. A row that cannot be read does not concern the writer."""
        with suppress(DataError):
            self._read(MANY, most=MOST_FINISHED)
        if not self._ended:
            self._stale = self._ended = True

    def held_codes(self) -> list[Codes]:
        """Those of blocks that are not decoded yet. The last that was taken may just be on its way.

        A block is taken before it leaves the queue, and is decoded before the next is taken. Those of a block that is
        not in the queue yet are in the maps of its cursor, if it is pinned; others are read under the lock.
        """
        blocks = [*tuple(self._blocks), self._taken]
        codes = [column for block in blocks if block is not None for column in (*block[0], *block[3])]
        return [*codes, np.array(self._inputs, dtype=np.int64)]

    def rows(self) -> int:
        """How many rows have been read and not been taken."""
        return sum(len(block[1]) for block in self._blocks)

    def _is_pinned(self) -> bool:
        return self._cursor is not None and self._cursor.pinned

    def _open(self, *, whole: bool = False) -> None:
        """Begins, under the lock."""
        if self._ended or self._cursor is not None:
            return
        cursor = self._reader.open_cursor(self.state, self._inputs, whole=whole)
        self._reader.note_request(self.state, 0)
        if not cursor.pinned:
            self._reader.catalog.open_reads[id(self)] = self._known()
        self._cursor = cursor

    def _read(self, size: int, most: int | None) -> None:
        """Reads at least `most` rows, or with None all, by blocks of a size; under the lock, unless it is pinned.

        An exception in the middle leaves it stale: some rows may have been read and not stored.
        """
        if self._ended or self._cursor is None:
            return
        self._stale = self._ended = True
        blocks: list[Block] = []
        rows, left = 0, True
        try:
            while left and (most is None or rows < most):
                block = self._reader.next_block(self.state, self._cursor, size)
                left = bool(len(block[1]))
                rows += len(block[1])
                blocks += [block] if left else []
        except self._reader.catalog.backend.stale_cursor:
            self._cursor = None
            return
        self._blocks.extend(blocks)
        self.state.observed.read(rows, 0)
        if not left:
            self._cursor = None  # not before its blocks are held
            self._reader.catalog.open_reads.pop(id(self), None)
        self._stale, self._ended = False, not left

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
