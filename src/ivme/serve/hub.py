"""All feeds of a server: one for each followed view, flushed frame by frame."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field

from ivme.serve.feed import ChangeFeed
from ivme.serve.settings import Settings
from ivme.view import View

_logger = logging.getLogger("ivme.serve")


@dataclass(slots=True)
class Tally:
    """What the hub has done; the server's metrics have it."""

    frames: int = 0
    rows: int = 0
    dropped: int = 0


@dataclass(slots=True)
class _Entry:
    feed: ChangeFeed
    opened: asyncio.Task[None]
    left: float | None = None
    rows: int = 0


@dataclass(slots=True)
class Hub:
    """The feeds by view. Used by the event loop only."""

    settings: Settings
    tally: Tally = field(default_factory=Tally)
    _entries: dict[str, _Entry] = field(default_factory=dict)

    @property
    def subscribers(self) -> int:
        return sum(len(entry.feed.subscribers) for entry in self._entries.values())

    @property
    def followed(self) -> dict[str, dict[str, int]]:
        """The views that are followed, with their subscribers and how many changed rows these were sent so far."""
        return {
            name: {"subscribers": len(entry.feed.subscribers), "changed_rows": entry.rows}
            for name, entry in self._entries.items()
        }

    async def feed(self, view: View) -> ChangeFeed:
        """The feed of a view, which follows it from now on."""
        entry = self._entries.get(view.name)
        if entry is None or entry.feed.view is not view:
            feed = ChangeFeed(view, self.settings.backlog)
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
                    await self._tend_safely(name, entry)

    async def _tend_safely(self, name: str, entry: _Entry) -> None:
        """A feed that fails ends with a message, and the others go on."""
        try:
            await self._tend(name, entry)
        except Exception:
            _logger.exception("the feed of view %s failed", name)
            self._entries.pop(name, None)
            entry.feed.end("failed: the server's log says more")

    async def _tend(self, name: str, entry: _Entry) -> None:
        feed = entry.feed
        rows = feed.flush()
        self.tally.rows += rows
        entry.rows += rows
        self.tally.frames += bool(rows)
        self.tally.dropped += feed.dropped
        feed.dropped = 0
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

    def end(self) -> None:
        """Tells everybody that the server stops."""
        for entry in self._entries.values():
            entry.feed.end("stopped: the server is going down")
