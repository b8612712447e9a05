"""A change of the state that an asynchronous exception either precedes or follows.

Ctrl-C, or another thread, may raise an exception between any two instructions of Python code, also in a handler of
another. So nothing here depends on a handler that runs to its end. What is under way is noted at the lock before
anything changes, and is *settled* by the next thread there: undone if it was not committed, finished if it was. The
commit is one assignment; what comes after it has been computed before, and may be done twice.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat, takewhile
from types import TracebackType
from typing import Any, Protocol, Self

from ivme.errors import IvmeError

Act = Callable[[], object]
"""Something that may be done again after it was done, or half done."""


class Pending(Protocol):
    """What is under way at a lock."""

    def settle(self) -> None: ...


class PlainLock:
    """The lock where the compiled kernel cannot be imported; only there, an exception may come between its lines."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self.pending: Pending | None = None

    @property
    def shared(self) -> Self:
        """Here a reader has the lock alone, too."""
        return self

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if not self._lock.acquire(blocking, timeout):
            return False
        self._depth += 1
        if self._depth == 1:
            self._settle()
        return True

    def release(self) -> None:
        if self._depth == 1:
            self._settle()
        self._depth -= 1
        self._lock.release()

    def _settle(self) -> None:
        try:
            if self.pending is not None:
                self.pending.settle()
        except BaseException:
            self._depth -= 1
            self._lock.release()
            raise

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


try:
    from ivme._kernel import SharedSide as SharedSide
    from ivme._kernel import StateLock as StateLock
except ImportError:
    SharedSide = StateLock = PlainLock  # type: ignore[assignment,misc]


class Part(Protocol):
    """A part of a transaction. Both of its ends may be called again after they were done, or half done."""

    def commit(self) -> object: ...
    def roll_back(self) -> object: ...


class Undo:
    """A part with nothing to commit: acts that put back what was there, in this order."""

    __slots__ = ("_acts",)

    def __init__(self, acts: Sequence[Act]) -> None:
        self._acts = acts

    def commit(self) -> None:
        pass

    def roll_back(self) -> None:
        for act in self._acts:
            act()


class Transaction:
    """A change under way: its parts, which commit or roll back together, and `then` what follows the commit.

    As a context manager it begins at the lock, which its caller holds, and commits at the end of the block; `then` may
    be given until then. One that ends within an `outer` change, which is under way already, leaves that under way.
    """

    __slots__ = ("_lock", "_outer", "_parts", "committed", "then")

    def __init__(
        self, lock: StateLock, parts: Sequence[Part], then: Sequence[Act] = (), outer: Pending | None = None
    ) -> None:
        self._lock = lock
        self._parts = parts
        self._outer = outer
        self.then = then
        self.committed = False

    def __enter__(self) -> Self:
        pending = self._lock.pending
        if pending is not None and pending is not self._outer:  # left by an exception, by a thread that kept the lock
            pending.settle()
        self.committed = False  # it may be one that was used before
        self._lock.pending = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.committed = True
        inner = self._lock.pending
        if isinstance(inner, Transaction) and inner is not self:  # an exception kept it from its end
            inner._end()
        self._end()

    def settle(self) -> None:
        self._end()
        if self._outer is not None:
            self._outer.settle()

    def _end(self) -> None:
        try:
            if self.committed:
                for part in self._parts:
                    part.commit()
                for act in self.then:
                    act()
            else:
                for part in self._parts:
                    part.roll_back()
        except IvmeError:  # the disk failed, and the log has taken note of it
            self._lock.pending = self._outer
            raise
        self._lock.pending = self._outer


def delivery(queue: deque[Any], item: object) -> Act:
    """Appends the item to the queue once, however often it is done: an iterator gives it once."""
    once = iter((item,))
    return lambda: queue.extend(once)


def taken(queue: deque[Any]) -> Iterator[Any]:
    """Takes what is in a queue, item by item; no exception comes between the taking and the `for` that gets it."""
    return map(deque.popleft, takewhile(len, repeat(queue)))
