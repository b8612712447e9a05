"""An access pattern as an endpoint: `GET /views/flights?origin=London&dest=Zurich`.

This is the way that has to be quick, so it is plain ASGI. A request with few rows is answered on the event loop, in
some microseconds; if a thread holds the database's lock, it waits for it in a thread. Whatever may take longer goes to
a thread anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from dataclasses import replace
from typing import Any

from ivme.database import Database
from ivme.errors import DataError, IvmeError
from ivme.serve.asking import JSON, Asked, chosen_form, find_view, pairs_of, read_asked, row_of
from ivme.serve.grants import GRANT
from ivme.serve.pages import Page, Results, encoded
from ivme.serve.problem import Problem, problem_of
from ivme.serve.settings import Settings
from ivme.serve.values import dumps
from ivme.view import View
from ivme.views.ordered_reading import PageRequest, listed, order_keys, page_table

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def header(scope: Scope, name: bytes) -> str | None:
    """A header of a request, the first of its name."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)


async def respond(send: Send, status: int, body: bytes, kind: str = JSON, *more: tuple[bytes, bytes]) -> None:
    """Sends a whole response."""
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode()), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Access:
    """Answers requests for rows of views."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._results = Results()

    async def __call__(self, scope: Scope, send: Send, name: str) -> None:
        scope[GRANT].require("read", name)
        view = find_view(self._database, name)
        asked = read_asked(view, pairs_of(scope["query_string"]))
        form = chosen_form(header(scope, b"accept") or "*/*")
        if (
            asked.parameters
            and asked.limit is None
            and asked.cursor is None
            and asked.order_by is None
            and form == JSON
        ):
            rows = await self._few(view, asked.parameters)
            if rows is not None:
                await respond(send, 200, dumps({"columns": view.columns, "rows": rows, "next": None}) + b"\n")
                return
        await self._stream(send, await self._page(view, asked, form), form)

    async def _few(self, view: View, parameters: dict[str, Any]) -> list[tuple[Any, ...]] | None:
        """The rows, if there are few; else None."""
        lock = view.read_lock
        try:
            if not lock.acquire(blocking=False):
                return await asyncio.to_thread(view.few_rows, parameters)
            try:
                return view.few_rows(parameters)
            finally:
                lock.release()
        except IvmeError as error:
            raise problem_of(error) from None

    async def _page(self, view: View, asked: Asked, form: str) -> Page:
        limit = min(asked.limit or self._settings.page, self._settings.rows)
        whole = form != JSON and asked.limit is None
        if asked.order_by is not None:
            return await asyncio.to_thread(self._ordered_page, view, asked, None if whole else limit)
        if asked.cursor is not None:
            return self._results.further(view.name, asked.cursor, limit)
        rows = await asyncio.to_thread(self._read, view, asked)
        return self._results.first(view.name, rows, None if whole else limit)

    def _ordered_page(self, view: View, asked: Asked, limit: int | None) -> Page:
        """A page behind a row: nothing is stored for it, and rows that come and go meanwhile move no other ones.

        Without a limit it has all rows, if an answer may have so many.
        """
        after, most = None if asked.after is None else row_of(view, asked.after), self._settings.rows
        try:
            order = order_keys(view.name, view.columns, asked.order_by) if asked.order_by else None
            wanted = PageRequest(order, most + 1 if limit is None else limit, asked.offset, after)
            rows = None if asked.parameters else view.mapped_page(wanted)
            if rows is None:
                wanted = replace(wanted, order=view.own_order if order is None else order)
                rows = page_table(view.name, self._read(view, asked), wanted)
        except IvmeError as error:
            raise problem_of(error) from None
        if limit is None and rows.num_rows > most:
            raise Problem(413, f"view {view.name} has more than {most} rows here; give _limit")
        is_last = limit is None or rows.num_rows < limit
        return Page(rows, None if is_last else dumps(listed(rows.slice(rows.num_rows - 1))[0]).decode())

    def _read(self, view: View, asked: Asked) -> Any:
        most = self._settings.rows
        try:
            return view.limited_table(asked.parameters, most)
        except DataError as error:
            if "more than" not in str(error):
                raise problem_of(error) from None
            raise Problem(413, f"{error}; follow its changes, or ask a view with parameters") from None
        except IvmeError as error:
            raise problem_of(error) from None

    async def _stream(self, send: Send, page: Page, form: str) -> None:
        headers = [(b"content-type", form.encode())]
        if page.next is not None:
            headers.append((b"x-next-cursor", page.next.encode()))
        pieces = encoded(page, form)
        piece = await asyncio.to_thread(_next, pieces)
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while piece:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            piece = await asyncio.to_thread(_next, pieces)
        await send({"type": "http.response.body", "body": b""})


def _next(pieces: Iterator[bytes]) -> bytes:
    return next(pieces, b"")
