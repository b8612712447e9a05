"""Which records are on the disk, and who sees to it.

Of all threads that wait for their records, one syncs the file for the others: a sync covers everything that was
written before it began, so that many writers share its cost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ivme.errors import StorageError
from ivme.store.log_state import PlainLogEnd

if TYPE_CHECKING:
    from ivme._kernel import LogEnd


_PATIENCE = 0.05
"""How many seconds a thread waits for the end of a sync before it looks again: an exception may have hidden it."""


class GroupCommit:
    """Numbers of records: `written` to the file, `durable` on the disk. Only the writer sets `written`.

    They are in a state that the kernel writes, too, if one is given.
    """

    def __init__(self, sync: Callable[[], None], durable: int, state: LogEnd | PlainLogEnd | None = None) -> None:
        self._state = PlainLogEnd() if state is None else state
        self.written = durable
        self.durable = durable
        self.syncs = 0
        self._sync = sync
        self._syncing = threading.Lock()
        self._ended = threading.Event()
        self._failure: StorageError | None = None

    @property
    def written(self) -> int:
        """The last record in the file."""
        return self._state.written

    @written.setter
    def written(self, number: int) -> None:
        self._state.written = number

    @property
    def durable(self) -> int:
        """The last record on the disk."""
        return self._state.durable

    @durable.setter
    def durable(self, number: int) -> None:
        self._state.durable = number

    def check(self) -> None:
        """Raises the error of a sync that failed."""
        if self._failure is not None:
            raise StorageError(str(self._failure))

    def fail(self, error: BaseException) -> StorageError:
        """From now on everything is refused: what the disk holds is not known."""
        self._state.usable = False
        self._failure = StorageError(
            f"the log cannot be synced: {error}; whether the last changes are on the disk is not known: "
            "close the database and open it again"
        )
        return self._failure

    def wait(self, number: int) -> None:
        """Returns when the record is durable.

        A thread that finds no other thread syncing syncs for all. Those that come meanwhile wait for its end, and not
        for the lock: behind it, a thread whose record is durable would wait for the sync of the next one.
        """
        while self.durable < min(number, self.written):
            ended = self._ended  # before the look at the lock: then its end is not missed
            if self._syncing.locked():
                ended.wait(_PATIENCE)
                continue
            try:
                with self._syncing:
                    if self.durable < min(number, self.written):
                        self._sync_for_all(self.written)
            finally:
                self._wake_all()

    def _wake_all(self) -> None:
        """A sync has ended: threads that waited for it look again."""
        ended, self._ended = self._ended, threading.Event()
        ended.set()

    def roll_back(self, number: int, undo: Callable[[], None]) -> None:
        """Forgets the records behind a number; `undo` takes them out of the file while no thread syncs it."""
        with self._syncing:
            undo()
            self.written, self.durable = number, min(self.durable, number)
        self._wake_all()

    def _sync_for_all(self, written: int) -> None:
        self.check()
        try:
            self._sync()
        except OSError as error:
            raise self.fail(error) from error
        self.syncs += 1
        self.durable = max(self.durable, written)
