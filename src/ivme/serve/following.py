"""`GET /views/{view}/changes`: a view's changes as server-sent events.

The first event is a `snapshot` of the rows (in parts, if they are many: all but the last say `"more": true`), and then
a `change` comes for each frame with changes: pairs of a row and the change of its multiplicity. The id of an event is
a position; a client that comes back with it (`Last-Event-ID`, or `_after`) gets what has changed since, or a new
snapshot if that is gone. `_rows=false` leaves the snapshot out, and `_limit` all but its first rows; `total` then says
how many there are, and `whole` whether these are all. The last event of a dropped client is `end`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from ivme.database import Database
from ivme.errors import IvmeError
from ivme.serve.access import Receive, Scope, Send, header
from ivme.serve.asking import FOLLOWING, Asked, find_view, pairs_of, read_asked
from ivme.serve.feed import ChangeFeed, Frame, Marker, Row, Snapshot, Subscriber
from ivme.serve.grants import GRANT
from ivme.serve.hub import Hub
from ivme.serve.problem import Problem, problem_of
from ivme.serve.settings import Settings
from ivme.serve.values import dumps
from ivme.view import View

_PART = 5000
_KEEP_ALIVE = 10.0


class Following:
    """Answers requests for changes."""

    def __init__(self, database: Database, hub: Hub, settings: Settings) -> None:
        self._database = database
        self._hub = hub
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send, name: str) -> None:
        scope[GRANT].require("read", name)
        view = find_view(self._database, name)
        asked = read_asked(view, pairs_of(scope["query_string"]), FOLLOWING)
        query = view.state.typed.query
        if query.input and query.aggregates:
            raise Problem(422, f"view {name} has parameters and aggregates, so its changes cannot be followed")
        try:
            feed = await self._hub.feed(view)
        except IvmeError as error:
            raise problem_of(error) from None
        subscriber = Subscriber(self._settings.backlog)
        leaving = asyncio.create_task(_until_gone(receive, subscriber))
        try:
            after = asked.after or header(scope, b"last-event-id")
            await self._send(send, self._events(feed, subscriber, asked, after))
        finally:
            leaving.cancel()
            feed.leave(subscriber)

    def end(self) -> None:
        self._hub.end()

    async def _send(self, send: Send, events: AsyncIterator[bytes]) -> None:
        """Sends events; one that is not taken in time ends the connection, and so does the last one."""
        first = await anext(events)
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": first, "more_body": True})
        async for event in events:
            async with asyncio.timeout(self._settings.seconds):
                await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _events(
        self, feed: ChangeFeed, subscriber: Subscriber, asked: Asked, after: str | None
    ) -> AsyncIterator[bytes]:
        if not self._resumes(feed, subscriber, after):
            async for event in self._start(feed, subscriber, asked):
                yield event
        else:
            yield b": resumed\n\n"
        while True:
            frame = await subscriber.take(_KEEP_ALIVE)
            if frame is not None:
                yield _change(feed, frame, asked.parameters)
            elif subscriber.over:
                yield b"event: end\ndata: " + dumps({"error": subscriber.over}) + b"\n\n"
                return
            else:
                yield b": nothing new\n\n"

    def _resumes(self, feed: ChangeFeed, subscriber: Subscriber, after: str | None) -> bool:
        name, _, position = (after or "").partition("-")
        if name != feed.name or not (position.isascii() and position.isdigit() and len(position) < 19):
            return False
        return feed.resume(subscriber, int(position))

    async def _start(self, feed: ChangeFeed, subscriber: Subscriber, asked: Asked) -> AsyncIterator[bytes]:
        """The snapshot; only the position, if rows were not requested or the view has none without parameters."""
        view = feed.view
        marker = Marker(subscriber, asyncio.get_running_loop().create_future())
        whole = asked.rows and (bool(asked.parameters) or not view.state.typed.query.input)
        found = Snapshot([], 0, whole=False)
        if whole:
            found = await self._read(feed, asked, marker)
        else:
            feed.queue.append(marker)
        position, rows = await marker.placed, found.rows
        parts = [rows[start : start + _PART] for start in range(0, len(rows), _PART)] or [[]]
        columns = _columns(view, asked)
        for part in parts[:-1]:
            yield b"event: snapshot\ndata: " + dumps({"columns": columns, "rows": part, "more": True}) + b"\n\n"
        content: dict[str, Any] = {"columns": columns, "rows": parts[-1] if whole else None, "more": False}
        if asked.limit is not None and whole:
            content |= {"total": found.total, "whole": found.whole}
        yield b"event: snapshot\n" + _id(feed, position) + b"data: " + dumps(content) + b"\n\n"

    async def _read(self, feed: ChangeFeed, asked: Asked, marker: Marker) -> Snapshot:
        most = self._settings.rows
        limit = most if asked.limit is None else min(most, asked.limit)
        try:
            found = await asyncio.to_thread(feed.read_and_mark, asked.parameters, limit, marker)
        except IvmeError as error:
            raise problem_of(error) from None
        if asked.limit is None and not found.whole:
            raise Problem(413, f"view {feed.view.name} has more than {most} rows; follow it with _rows=false or _limit")
        return found


def _columns(view: View, asked: Asked) -> tuple[str, ...]:
    front = () if asked.parameters else view.state.typed.query.parameters
    return (*front, *view.columns)


def _id(feed: ChangeFeed, position: int) -> bytes:
    return f"id: {feed.name}-{position}\n".encode()


def _change(feed: ChangeFeed, frame: Frame, parameters: dict[str, Any]) -> bytes:
    """A frame on the wire. For one who gave parameters it has the rows of that request only, without the parameters."""
    if not parameters:
        if not frame.text:
            frame.text = _event(feed, frame.position, list(frame.change.items()))
        return frame.text
    query = feed.view.state.typed.query
    lists = dict(query.lists)
    given = [parameters[name] if name in lists else [parameters[name]] for name in query.parameters]
    found = [
        (row[len(given) :], weight)
        for row, weight in frame.change.items()
        if all(value in members for value, members in zip(row, given, strict=False))
    ]
    return _event(feed, frame.position, found)


def _event(feed: ChangeFeed, position: int, changes: list[tuple[Row, int]]) -> bytes:
    return b"event: change\n" + _id(feed, position) + b"data: " + dumps({"changes": changes}) + b"\n\n"


async def _until_gone(receive: Receive, subscriber: Subscriber) -> None:
    with suppress(asyncio.CancelledError):
        while (await receive())["type"] != "http.disconnect":
            pass
        subscriber.end("left")
