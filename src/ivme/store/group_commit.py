"""Which records are on the disk, and who sees to it.

Of all threads that wait for their records, one syncs the file for the others: a sync covers everything that was
written before it began, so that many writers share its cost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ivme.errors import StorageError


class GroupCommit:
    """Numbers of records: `written` to the file, `durable` on the disk. Only the writer sets `written`."""

    def __init__(self, sync: Callable[[], None], durable: int) -> None:
        self.written = durable
        self.durable = durable
        self.syncs = 0
        self._sync = sync
        self._changed = threading.Condition()
        self._syncing = False
        self._failure: StorageError | None = None

    def check(self) -> None:
        """Raises the error of a sync that failed."""
        if self._failure is not None:
            raise StorageError(str(self._failure))

    def fail(self, error: BaseException) -> StorageError:
        """From now on everything is refused: what the disk holds is not known."""
        self._failure = StorageError(
            f"the log cannot be synced: {error}; whether the last changes are on the disk is not known: "
            "close the database and open it again"
        )
        return self._failure

    def wait(self, number: int) -> None:
        """Returns when the record is durable."""
        while self._has_to_sync(number):
            self._sync_for_all(self.written)

    def take_back(self, number: int, undo: Callable[[], None]) -> None:
        """Forgets the records behind a number; `undo` takes them out of the file while nobody syncs it."""
        with self._changed:
            while self._syncing:
                self._changed.wait()
            undo()
            self.written, self.durable = number, min(self.durable, number)

    def _has_to_sync(self, number: int) -> bool:
        """Waits while somebody else syncs; whether the record is not durable then, and it is up to the caller."""
        with self._changed:
            while self._syncing and self.durable < number:
                self._changed.wait()
            if self.durable >= min(number, self.written):
                return False
            self.check()
            self._syncing = True
            return True

    def _sync_for_all(self, written: int) -> None:
        synced = False
        try:
            self._sync()
            synced = True
        except OSError as error:
            raise self.fail(error) from error
        finally:
            with self._changed:
                self._syncing = False
                if synced:
                    self.syncs += 1
                    self.durable = max(self.durable, written)
                self._changed.notify_all()
