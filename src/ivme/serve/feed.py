"""The changes of a view for its followers: summed up in frames, and stored for a while for clients that reconnect.

The database's writer only appends to a queue. Everything else happens on the event loop: each frame takes what the
queue holds, sums it up, and hands the same frame to every subscriber. A frame has whole batches only. One whose frames
are not taken is dropped, with a message, when too much waits for it.

A subscriber that needs the view's rows first reads them in a thread, under the database's lock, and leaves a *marker*
in the queue before it lets go of the lock: what is in front of the marker is in those rows, what comes behind is not.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ivme.view import View

Row = tuple[Any, ...]

RowChange = dict[Row, int]
"""By how much the multiplicity of each row changed."""

_KB = 1024


@dataclass(slots=True)
class Frame:
    """The change of a view's rows between two positions of its feed; `position` is the later one.

    `rows` is what it counts for where rows are limited, and `text` its form on the wire, made once for all subscribers.
    """

    position: int
    change: RowChange
    rows: int
    text: bytes = b""


def counted_rows(change: RowChange) -> int:
    """How many rows a change counts for: a long one counts once more for each KB of its texts, which take memory.

    >>> counted_rows({("a", 1): 1, ("b" * 5000, 2): -1})
    6
    """
    texts = (len(value) for row in change for value in row if isinstance(value, str | bytes))
    return len(change) + sum(texts) // _KB


class Subscriber:
    """A follower of a view. `over` says why there are no more frames."""

    def __init__(self, most: int) -> None:
        self.frames: deque[Frame] = deque()
        self.over = ""
        self._most = most
        self._waiting = 0
        self._news = asyncio.Event()

    def offer(self, frame: Frame) -> None:
        """Hands a frame over, or drops the subscriber if too much waits for it already."""
        if self._waiting + frame.rows > self._most:
            self.end(f"dropped: more than {self._most} changed rows were waiting to be read; start again")
            return
        self._waiting += frame.rows
        self.frames.append(frame)
        self._news.set()

    def end(self, reason: str) -> None:
        self.frames.clear()
        self.over = reason
        self._news.set()

    async def take(self, seconds: float) -> Frame | None:
        """The next frame; None if none came in time, or if it is over."""
        if not self.frames and not self.over:
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), seconds)
            except TimeoutError:
                return None
        if not self.frames:
            return None
        frame = self.frames.popleft()
        self._waiting -= frame.rows
        return frame


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The first rows of a view with their multiplicities: all of them, if it is `whole`.

    `total` is the sum of all multiplicities, also of rows that are not here.
    """

    rows: list[tuple[Row, int]]
    total: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Marker:
    """Stands in the queue where a subscriber has read the rows; `placed` gets the position."""

    subscriber: Subscriber
    placed: asyncio.Future[int]


class ChangeFeed:
    """The changes of one view."""

    def __init__(self, view: View, most: int) -> None:
        self.view = view
        self.name = secrets.token_hex(4)
        self.position = 0
        self.dropped = 0
        self.subscribers: set[Subscriber] = set()
        self.queue: deque[Any] = deque()
        self._most = most
        self._kept: deque[Frame] = deque()
        self._kept_rows = 0

    @property
    def is_gone(self) -> bool:
        """Whether the view was dropped."""
        return self.view.is_gone

    def open(self) -> None:
        """Follows the view; to be called in a thread, since the view may have to be built for it."""
        self.view.follow(self.queue)

    def close(self) -> None:
        """Stops following; to be called in a thread."""
        self.view.unfollow(self.queue)

    def end(self, reason: str) -> None:
        """Tells all subscribers that there is no more."""
        for subscriber in self.subscribers:
            subscriber.end(reason)
        self.subscribers.clear()

    def read_and_mark(self, parameters: Mapping[str, Any], most: int, marker: Marker) -> Snapshot:
        """The first rows of an access request, and a marker where they were read; in a thread."""
        with self.view.lock:
            rows = list(islice(self.view.items(**parameters), most + 1))
            total = self.view.count(**parameters) if len(rows) > most else sum(weight for _, weight in rows)
            self.queue.append(marker)
        return Snapshot(rows[:most], total, len(rows) <= most)

    def leave(self, subscriber: Subscriber) -> None:
        """Forgets a subscriber, also one whose marker is still in the queue."""
        subscriber.end("left")
        self.subscribers.discard(subscriber)

    def resume(self, subscriber: Subscriber, position: int) -> bool:
        """Goes on behind a position; False if what came behind it is no longer stored."""
        first = self._kept[0].position if self._kept else self.position + 1
        if not first - 1 <= position <= self.position:
            return False
        self.subscribers.add(subscriber)
        self._offer_all([subscriber], (frame for frame in self._kept if frame.position > position))
        return True

    def flush(self) -> int:
        """Makes a frame of what the queue holds; the number of its rows."""
        change: RowChange = {}
        made = 0
        for _ in range(len(self.queue)):
            entry = self.queue.popleft()
            if isinstance(entry, Marker):
                made += self._make_frame(change)
                change = {}
                if not entry.subscriber.over:
                    self.subscribers.add(entry.subscriber)
                if not entry.placed.done():
                    entry.placed.set_result(self.position)
            else:
                for row, weight in entry.items():
                    change[row] = change.get(row, 0) + weight
        return made + self._make_frame(change)

    def _make_frame(self, change: RowChange) -> int:
        net = {row: weight for row, weight in change.items() if weight}
        if not net:
            return 0
        self.position += 1
        frame = Frame(self.position, net, counted_rows(net))
        self._kept.append(frame)
        self._kept_rows += frame.rows
        while self._kept_rows > self._most:
            self._kept_rows -= self._kept.popleft().rows
        self._offer_all(tuple(self.subscribers), [frame])
        return len(net)

    def _offer_all(self, subscribers: Iterable[Subscriber], frames: Iterable[Frame]) -> None:
        listed = list(frames)
        for subscriber in subscribers:
            for frame in listed:
                if not subscriber.over:
                    subscriber.offer(frame)
            if subscriber.over:
                self.subscribers.discard(subscriber)
                self.dropped += 1
