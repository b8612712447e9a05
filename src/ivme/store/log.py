"""The log: every commit is a record at its end, written before the commit takes effect in memory.

The caller of `append` holds the database's lock, and gives it back before it waits for the disk.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from ivme.errors import StorageError
from ivme.store import system
from ivme.store.end_file import End, EndFile
from ivme.store.files import write_fully
from ivme.store.group_commit import GroupCommit
from ivme.store.log_state import log_state
from ivme.store.record import framed
from ivme.store.segment import Tail, make_segment, segment_path

Durability = Literal["sync", "async"]

Mark = tuple[int, int]
"""An end of the log: the number of its last record, and the place behind it."""

_NOTHING = End(0, 0, 0)

_MUCH = 128 * 2**20

_PAUSE = 0.05
"""With durability="async" the log is synced this often, in seconds, while something is written."""


class Log:
    """The end of the log, open for writing.

    Records whose committer was told that they are durable are noted in the file of the end; `told` is the last that a
    committer was told about while they may not be durable, which are noted when they are. Records that may still be
    taken back are never noted.
    """

    def __init__(
        self, tail: Tail, identity: str, durability: Durability, older: int, end: EndFile, changed: set[str]
    ) -> None:
        self._identity = identity
        self._end = end
        self._path = tail.path
        self.state = state = log_state(identity, changed)
        state.descriptor, state.place, state.first, state.older = _open(tail.path), tail.place, tail.first, older
        self._owner = os.getpid()
        self._mine = threading.local()
        self._waits = state.waits = durability == "sync"
        self._open = True
        self._begun: Path | None = None
        self._release = weakref.finalize(self, system.close, state.descriptor)
        self._synced = self.size
        self.commits = GroupCommit(self._sync, tail.last, state)
        self._syncer = None if self._waits else _Syncer(self.sync)
        state.wake = None if self._syncer is None else self._syncer.wake
        state.usable = True

    @property
    def last(self) -> int:
        """The number of the last record."""
        return self.commits.written

    @property
    def size(self) -> int:
        """The bytes that would be read on opening, snapshots aside."""
        return self.state.older + self.state.place

    @property
    def lags(self) -> bool:
        """Whether so much waits for the disk that records should be smaller, at the price of time."""
        return self.size - self._synced > _MUCH

    def mark(self) -> Mark:
        """The end of the log as it is now."""
        return self.state.written, self.state.place

    def append(self, content: object, bodies: Sequence[Any] = ()) -> None:
        """Writes a record; if that fails, the log ends where it ended before."""
        self._check()
        mark = self.mark()
        number = mark[0] + 1
        try:
            parts = framed(self._identity, number, self.commits.durable, content, bodies)
            self.state.unfinished = True
            self.state.place = write_fully(self.state.descriptor, parts, self.state.place)
            self.state.written, self._mine.end = number, End(self.state.first, number, self.state.place)
            self.state.unfinished = False
        except BaseException as error:
            self._cut(mark)
            if isinstance(error, OSError):
                raise StorageError(f"{self._path} cannot be written: {error.strerror}; nothing was changed") from error
            raise
        if self._syncer is not None:
            self._syncer.wake()

    def roll_back(self, mark: Mark) -> None:
        """Ends the log where it ended at a mark, durably: what was appended since did not take effect."""
        if self.state.unfinished or self.state.place != mark[1]:
            self._cut(mark)
            self._make_durable()

    def wait(self) -> None:
        """Returns when what this thread appended is durable; with durability="async" at once."""
        self._wait(getattr(self._mine, "end", _NOTHING))

    def wait_taken(self) -> None:
        """The same for what the kernel appended, in this thread or a later one, and committed."""
        self._wait(End(*self.state.taken))

    def _wait(self, end: End) -> None:
        if self._waits:
            self.commits.wait(end.last)
            self._end.note(end)
        else:
            self.commits.check()
            self.state.told = max(self.state.told, (end.first, end.last, end.place))

    def sync(self) -> None:
        """Makes everything that was appended durable."""
        self.state.awake = False  # what comes from now on may be too late for this one
        told = End(*self.state.told)
        self.commits.wait(self.commits.written)
        self._end.note(told)

    def flush(self) -> None:
        """Makes what is there durable without the database's lock, so that `rotate` has little to wait for."""
        if self._open:
            self.commits.wait(self.last)

    def rotate(self) -> int:
        """Begins a new segment, all before it being durable; the number of the last record before it.

        A segment without records is as good as a new one.
        """
        self._check()
        last = self.last
        self.commits.wait(last)
        state = self.state
        if state.first == last + 1:
            return last
        state.usable = False  # until the new one is the last
        self._begun = segment_path(self._path.parent, last + 1)
        tail = make_segment(self._path.parent, self._identity, last + 1)
        descriptor = _open(tail.path)
        close_old, close = self._release, weakref.finalize(self, system.close, descriptor)
        new = (tail.path, descriptor, tail.place, tail.first, state.older + state.place, close, None)
        # One statement, which no exception comes into.
        self._path, state.descriptor, state.place, state.first, state.older, self._release, self._begun = new
        state.usable = True
        close_old()
        self._end.move(tail.end)
        return last

    def forget_older(self) -> None:
        """The segments before the last are not needed any more."""
        self.state.older = 0

    def close(self) -> None:
        """Syncs the log, ends it with a record that says so, and states where that is."""
        if not self._open:
            return
        try:
            if self._syncer is not None:
                self._syncer.stop()
            self.commits.wait(self.last)
            self.append({"closed": True})
            self.commits.wait(self.last)
            self._end.move(End(self.state.first, self.last, self.state.place))
        finally:
            self.release()

    def release(self) -> None:
        """Gives the files back as they are."""
        self._open = self.state.usable = False
        self.state.wake = None
        self._release()
        self._end.release()

    def _sync(self) -> None:
        size = self.size
        with self._named():
            system.sync_data(self.state.descriptor)
        self._synced = size

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Errors of the operating system with the name of the file."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error

    def _make_durable(self) -> None:
        try:
            self._sync()
        except OSError as error:
            raise self.commits.fail(error) from error

    def _check(self) -> None:
        if not self._open:
            raise StorageError("the database is closed")
        if os.getpid() != self._owner:
            raise StorageError("the database was opened by another process, of which this one is a copy")
        if self._begun is not None:  # a segment that an exception kept from being the last
            self._remove(self._begun)
            self._begun = None
        self.commits.check()
        if self.state.unfinished:  # the kernel could not write a record
            self._cut(self.mark())
        self.state.usable = True

    def _remove(self, path: Path) -> None:
        try:
            with suppress(FileNotFoundError):
                system.remove(path)
        except OSError as error:
            raise StorageError(f"{path} cannot be removed: {error.strerror}; nothing was changed") from error

    def _cut(self, mark: Mark) -> None:
        def undo() -> None:
            try:
                with self._named():
                    system.truncate(self.state.descriptor, mark[1])
            except OSError as error:
                raise self.commits.fail(error) from error
            self.state.place = mark[1]
            if getattr(self._mine, "end", _NOTHING).last > mark[0]:
                self._mine.end = End(self.state.first, *mark)
            self.state.unfinished = False

        self.commits.roll_back(mark[0], undo)


class _Syncer:
    """Syncs the log soon after something was written."""

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._work = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ivme-log", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Called after something was written; if the flag is still up, the sync that follows its fall covers it."""
        if not self._work.is_set():
            self._work.set()

    def stop(self) -> None:
        self._over.set()
        self._work.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            self._work.wait()
            self._over.wait(_PAUSE)
            self._work.clear()
            try:
                self._sync()
            except StorageError:
                return  # kept by the commits: the next writer is told


def _open(path: Path) -> int:
    try:
        return system.open_to_write(path)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error}") from error
