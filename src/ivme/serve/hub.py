"""All feeds of a server: one for each view that somebody follows, flushed frame by frame."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from ivme.serve.feed import Feed, Subscriber
from ivme.serve.settings import Settings
from ivme.view import View


@dataclass(slots=True)
class Tally:
    """What the hub has done; the server's metrics have it."""

    frames: int = 0
    rows: int = 0
    dropped: int = 0


@dataclass(slots=True)
class _Entry:
    feed: Feed
    opened: asyncio.Task[None]
    left: float | None = None


@dataclass(slots=True)
class Hub:
    """The feeds by view. Used by the event loop only."""

    settings: Settings
    tally: Tally = field(default_factory=Tally)
    _entries: dict[str, _Entry] = field(default_factory=dict)
    _over: bool = False

    @property
    def subscribers(self) -> int:
        return sum(len(entry.feed.subscribers) for entry in self._entries.values())

    async def feed(self, view: View) -> Feed:
        """The feed of a view, which follows it from now on."""
        entry = self._entries.get(view.name)
        if entry is None or entry.feed.view is not view:
            feed = Feed(view, self.settings.backlog)
            entry = self._entries[view.name] = _Entry(feed, asyncio.create_task(asyncio.to_thread(feed.open)))
        entry.left = None
        try:
            await asyncio.shield(entry.opened)
        except BaseException:
            if self._entries.get(view.name) is entry and entry.opened.done() and entry.opened.exception():
                del self._entries[view.name]
            raise
        return entry.feed

    async def run(self) -> None:
        """Flushes all feeds until it is cancelled."""
        while True:
            await asyncio.sleep(self.settings.frame)
            for name, entry in list(self._entries.items()):
                if entry.opened.done():
                    await self._tend(name, entry)

    async def _tend(self, name: str, entry: _Entry) -> None:
        feed = entry.feed
        before = len(feed.subscribers)
        rows = feed.flush()
        self.tally.rows += rows
        self.tally.frames += bool(rows)
        self.tally.dropped += max(0, before - len(feed.subscribers))
        if feed.is_gone:
            feed.end(f"gone: view {name} was dropped")
            self._entries.pop(name, None)
            return
        if feed.subscribers or feed.queue:
            entry.left = None
        elif entry.left is None:
            entry.left = time.monotonic()
        elif time.monotonic() - entry.left > self.settings.linger:
            self._entries.pop(name, None)
            await asyncio.to_thread(feed.close)

    def leave(self, feed: Feed, subscriber: Subscriber) -> None:
        feed.subscribers.discard(subscriber)

    def end(self) -> None:
        """Tells everybody that the server stops."""
        for entry in self._entries.values():
            entry.feed.end("stopped: the server is going down")
