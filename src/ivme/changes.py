"""The changes of a view's rows, batch by batch: polled, waited for, awaited, or handed to a function.

A commit appends to the queue of each follower while it holds the database's lock, so that what it does there is short
and cannot fail: it appends and wakes the follower. The rest happens in the follower's own thread or event loop.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from itertools import repeat, takewhile
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, Self

from ivme.engine.runtime.transaction import taken

if TYPE_CHECKING:
    from ivme.views.base_view import BaseView

_logger = logging.getLogger("ivme")


class ChangeQueue(deque[Any]):
    """A queue that wakes its reader. An interrupted `extend` may be done again: it wakes once more, for nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.wake: Callable[[], object] = lambda: None

    def extend(self, items: Iterable[Any]) -> None:
        super().extend(items)
        self.wake()


class Changes:
    """A feed of the changes of a view's rows, for one reader.

    Iterating, also by `next`, yields the changes since the last time. With `wait` it then waits for more, until the
    feed is closed or the view is dropped; `async for` always waits. Unread changes take memory: close a feed that you
    do not read.
    """

    def __init__(self, view: BaseView, *, wait: bool = False) -> None:
        self._view = view
        self._wait = wait
        self._is_closed = False
        self._queue = ChangeQueue()
        view.follow(self._queue)
        with view.lock:
            view.feeds.add(self)

    @property
    def is_over(self) -> bool:
        """Whether the feed has ended: it was closed, the view was dropped, or the database was closed."""
        return self._is_closed or self._view.is_gone

    def __iter__(self) -> Iterator[Any]:
        if not self._wait:
            return taken(self._queue)
        return map(deque.popleft, takewhile(self._has_more, repeat(self._queue)))

    def __next__(self) -> Any:
        """The next change; without `wait`, the end of the iteration if none has come."""
        if not (self._has_more(self._queue) if self._wait else self._queue):
            raise StopIteration
        return self._queue.popleft()

    def get(self, timeout: float | None = None) -> Any:
        """Waits for the next change; None if there is none within so many seconds, or if the feed has ended."""
        return self._queue.popleft() if self._has_more(self._queue, timeout) else None

    def _has_more(self, queue: deque[Any], timeout: float | None = None) -> bool:
        """Whether there is a change, once it is known; the wake-up is set before the queue is looked at again."""
        if queue:
            return True
        news: SimpleQueue[None] = SimpleQueue()
        self._queue.wake = lambda: news.put(None)
        until = None if timeout is None else monotonic() + timeout
        while not queue and not self.is_over:
            try:
                news.get(timeout=None if until is None else max(until - monotonic(), 0))
            except Empty:
                break
        return bool(queue)

    async def __aiter__(self) -> AsyncIterator[Any]:
        import asyncio

        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed, and nothing reads
                loop.call_soon_threadsafe(news.set)

        while True:
            self._queue.wake = wake
            if self._queue:
                yield self._queue.popleft()
            elif self.is_over:
                return
            else:
                await news.wait()
                news.clear()

    def wake(self) -> None:
        """Lets the reader look whether the feed is over."""
        self._queue.wake()

    def close(self) -> None:
        """Stops following the view. Earlier changes can still be read; a reader that waits for more returns."""
        self._is_closed = True
        with self._view.lock:
            self._view.feeds.discard(self)
        self._view.unfollow(self._queue)
        self.wake()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Feed(Protocol):
    """Changes that are waited for, until they are closed."""

    def __iter__(self) -> Iterator[Any]: ...

    def close(self) -> None: ...


class Subscription:
    """A function that is called with each change of a view's rows, in order, in its own thread.

    It is called after the batch was applied, and may use the database. If it raises an exception, that is logged, ends
    the subscription, and is its `error`.
    """

    def __init__(self, view: str, feed: Feed, function: Callable[[Any], object]) -> None:
        self.error: Exception | None = None
        self._name = view
        self._feed = feed
        self._function = function
        self._thread = threading.Thread(target=self._run, name=f"ivme-subscription-{view}", daemon=True)
        self._thread.start()

    @property
    def is_active(self) -> bool:
        """Whether the function is called for further changes."""
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            for change in self._feed:
                self._function(change)
        except Exception as error:
            self.error = error
            _logger.exception("a subscriber of view %s failed, and gets no more changes", self._name)
        finally:
            self._feed.close()

    def close(self) -> None:
        """Ends the subscription after all changes so far, and waits for the function to return."""
        self._feed.close()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
