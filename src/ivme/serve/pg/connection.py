"""One client of PostgreSQL's protocol: it is let in, its statements are run, and its answers sent.

Nothing is read of a client that has not proved that it has the token but a few short messages, within a few seconds.
A client that does not read its answer in time is cut, and a statement that takes too long is refused.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ivme.engine.codes.nested_values import python_values
from ivme.errors import CancelledError, IvmeError, PlanError, UnknownNameError
from ivme.serve.interrupting import run_interruptible
from ivme.serve.pg import messages as m
from ivme.serve.pg.catalog import PostgresCatalog
from ivme.serve.pg.login import Login
from ivme.serve.pg.runner import READS, SETTINGS, Outcome, Runner, code_of
from ivme.serve.pg.text import Piece, parameter_count, split_statements
from ivme.serve.pg.values import TEXT, encoder, parameter_value, result_column
from ivme.serve.settings import Settings

_logger = logging.getLogger("ivme.serve")

_CHUNK = 1000
"""So many rows are made into bytes at once, in a thread."""

_MOST_PREPARED = 1000


@dataclass(slots=True)
class Prepared:
    """A statement that was parsed, None if its text is empty, with the types of its parameters."""

    piece: Piece | None
    types: list[int]


@dataclass(slots=True)
class Portal:
    """A statement with values, which is run when it is described or executed; `rows` are those not sent yet."""

    statement: Prepared
    parameters: list[Any]
    formats: list[int]
    outcome: Outcome | None = None
    rows: Iterator[tuple[Any, ...]] | None = None
    sent: int = field(default=0)


class Connection:
    """A client. `process` and `secret` are what it cancels its statements by."""

    def __init__(self, login: Login, runner: Runner, catalog: PostgresCatalog, settings: Settings) -> None:
        self._login = login
        self._reader, self._writer = login.reader, login.writer
        self._runner = runner
        self._catalog = catalog
        self._settings = settings
        self._prepared: dict[str, Prepared] = {}
        self._portals: dict[str, Portal] = {}
        self._running: asyncio.Task[Outcome] | None = None
        self._skips = False

    def cancel(self) -> None:
        """Ends the statement that runs, if it only reads."""
        if self._running is not None:
            self._running.cancel()

    async def serve(self) -> None:
        """Answers messages until the client leaves."""
        started = [m.parameter_status(name, value) for name, value in SETTINGS.items()]
        key = m.backend_key(self._login.process, self._login.secret)
        await self._send(m.AUTHENTICATED, *started, key, m.ready(b"I"))
        try:
            while True:
                kind, body = await self._login.read(self._settings.body_bytes)
                if kind == b"X":
                    return
                await self._answer(kind, body)
        finally:
            self._runner.close()

    async def _answer(self, kind: bytes, body: m.Body) -> None:
        """Answers a message. After an error in the extended protocol, all is skipped up to Sync."""
        if kind == b"S":
            self._skips = False
            self._portals.pop("", None)
            await self._send(m.ready(self._runner.status))
        elif kind == b"Q":
            await self._query(body.text())
        elif kind == b"H":
            await self._flush()
        elif kind not in _EXTENDED:
            raise m.ProtocolError(f"a message of the kind {kind!r} has no meaning here")
        elif not self._skips:
            try:
                await _EXTENDED[kind](self, body)
            except IvmeError as error:
                self._skips = True
                await self._refuse(error)

    async def _query(self, text: str) -> None:
        """The simple protocol: statements of a text, one after the other; an error ends it."""
        try:
            pieces = split_statements(text)
            if not pieces:
                await self._send(m.EMPTY_QUERY)
            for piece in pieces:
                outcome = await self._run(piece, [])
                if outcome.data is not None:
                    await self._send(m.row_description(map(result_column, outcome.data.schema), []))
                    await self._send_rows(_listed(outcome), Portal(Prepared(piece, []), [], []), outcome)
                await self._send(m.command_complete(outcome.tag))
        except IvmeError as error:
            await self._refuse(error)
        await self._send(m.ready(self._runner.status))

    async def _run(self, piece: Piece, parameters: list[Any]) -> Outcome:
        """Runs a statement; one that reads has a limit of time, and may be cancelled."""
        if piece.words[0] in READS:
            work = run_interruptible(lambda: self._runner.run(piece, parameters), self._catalog.interrupt)
        else:
            work = asyncio.to_thread(self._runner.run, piece, parameters)
        self._running = asyncio.create_task(work) if piece.words[0] in READS else None
        try:
            async with asyncio.timeout(self._settings.seconds if self._running is not None else None):
                outcome = await (self._running or work)
        except TimeoutError:
            raise CancelledError(f"the statement took longer than {self._settings.seconds:g} seconds") from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise CancelledError("the statement was cancelled") from None
        finally:
            self._running = None
        if outcome.notice:
            await self._send(m.trouble(b"N", "WARNING", "01000", outcome.notice))
        return outcome

    async def _send_rows(
        self, rows: Iterator[tuple[Any, ...]], portal: Portal, outcome: Outcome, most: int = 0
    ) -> bool:
        """Sends rows, at most so many if that is said; whether all are sent."""
        assert outcome.data is not None
        columns = [result_column(field) for field in outcome.data.schema]
        formats = _formats(portal.formats, len(columns))
        write = [encoder(column, binary == 1) for column, binary in zip(columns, formats, strict=True)]
        left = most or outcome.data.num_rows + 1

        def chunk() -> tuple[int, bytes]:
            some = list(islice(rows, min(_CHUNK, left)))
            data = [m.data_row(each(value) for each, value in zip(write, row, strict=True)) for row in some]
            return len(some), b"".join(data)

        while left:
            number, data = await asyncio.to_thread(chunk) if outcome.data.num_rows > 100 else chunk()
            if not number:
                return True
            left -= number
            portal.sent += number
            await self._send(data)
        return portal.sent >= int(outcome.data.num_rows)

    # The extended protocol

    async def _parse(self, body: m.Body) -> None:
        name, text, types = body.text(), body.text(), body.int32s()
        pieces = split_statements(text)
        if len(pieces) > 1:
            raise PlanError("a prepared statement is one statement; send several in a simple query")
        if len(self._prepared) >= _MOST_PREPARED:
            raise PlanError(f"there are {_MOST_PREPARED} prepared statements already; close some")
        piece = pieces[0] if pieces else None
        count = 0 if piece is None else parameter_count(piece)
        self._prepared[name] = Prepared(piece, [*types, *[0] * count][: max(count, len(types))])
        await self._send(m.PARSE_COMPLETE)

    async def _bind(self, body: m.Body) -> None:
        portal, name = body.text(), body.text()
        statement = _found(self._prepared, name, "prepared statement")
        formats, values, wanted = body.int16s(), body.values(), body.int16s()
        if len(values) != len(statement.types):
            raise PlanError(f"the statement has {len(statement.types)} parameters, and {len(values)} values came")
        given = [
            parameter_value(number, type_, data, binary == 1)
            for number, (type_, data, binary) in enumerate(
                zip(statement.types, values, _formats(formats, len(values)), strict=True), 1
            )
        ]
        if len(self._portals) >= _MOST_PREPARED:
            raise PlanError(f"there are {_MOST_PREPARED} portals already; close some")
        self._portals[portal] = Portal(statement, given, wanted)
        await self._send(m.BIND_COMPLETE)

    async def _describe(self, body: m.Body) -> None:
        kind, name = body.take(1), body.text()
        if kind == b"P":
            portal = _found(self._portals, name, "portal")
            await self._send(await self._description(portal))
            return
        statement = _found(self._prepared, name, "prepared statement")
        known = m.parameter_description([type_ or TEXT for type_ in statement.types])
        nothing = Portal(statement, [None] * len(statement.types), [])
        await self._send(known, await self._description(nothing))

    async def _description(self, portal: Portal) -> bytes:
        """The columns of a result; a query is run for it, and its rows are stored for Execute."""
        piece = portal.statement.piece
        if piece is None:
            return m.NO_DATA
        if piece.words[0] in READS:
            await self._open(portal, piece)
            data = None if portal.outcome is None else portal.outcome.data
            schema = None if data is None else data.schema
        else:
            schema = await asyncio.to_thread(self._runner.returned_schema, piece)
        if schema is None:
            return m.NO_DATA
        columns = [result_column(field) for field in schema]
        return m.row_description(columns, _formats(portal.formats, len(columns)))

    async def _open(self, portal: Portal, piece: Piece) -> None:
        if portal.outcome is None:
            portal.outcome = await self._run(piece, portal.parameters)
            portal.rows = _listed(portal.outcome)

    async def _execute(self, body: m.Body) -> None:
        portal, most = _found(self._portals, body.text(), "portal"), body.int32()
        if portal.statement.piece is None:
            await self._send(m.EMPTY_QUERY)
            return
        await self._open(portal, portal.statement.piece)
        outcome = portal.outcome
        assert outcome is not None
        if outcome.data is not None:
            assert portal.rows is not None
            if not await self._send_rows(portal.rows, portal, outcome, max(most, 0)):
                await self._send(m.PORTAL_SUSPENDED)
                return
        await self._send(m.command_complete(outcome.tag))

    async def _close(self, body: m.Body) -> None:
        kind, name = body.take(1), body.text()
        held: dict[str, Any] = self._prepared if kind == b"S" else self._portals
        held.pop(name, None)
        await self._send(m.CLOSE_COMPLETE)

    # Sending

    async def _refuse(self, error: IvmeError) -> None:
        self._runner.failed()
        await self._send(m.trouble(b"E", "ERROR", code_of(error), str(error)))

    async def _send(self, *parts: bytes) -> None:
        self._writer.write(b"".join(parts))
        await self._flush()

    async def _flush(self) -> None:
        async with asyncio.timeout(self._settings.seconds):
            await self._writer.drain()


_EXTENDED = {
    b"P": Connection._parse,
    b"B": Connection._bind,
    b"D": Connection._describe,
    b"E": Connection._execute,
    b"C": Connection._close,
}


def _found(held: dict[str, Any], name: str, kind: str) -> Any:
    if name not in held:
        raise UnknownNameError(f"there is no {kind} {name!r}")
    return held[name]


def _formats(given: list[int], number: int) -> list[int]:
    """A format for each column: none given means text for all, one is for all."""
    if len(given) not in (0, 1, number) or any(each not in (0, 1) for each in given):
        raise m.ProtocolError("the formats of values are not those of the columns")
    return given if len(given) == number else (given or [0]) * number


def _listed(outcome: Outcome) -> Iterator[tuple[Any, ...]]:
    """The rows of a result, made of its columns in pieces."""
    return iter(()) if outcome.data is None else _rows(outcome.data)


def _rows(data: Any) -> Iterator[tuple[Any, ...]]:
    for start in range(0, data.num_rows, _CHUNK):
        part = data.slice(start, _CHUNK)
        columns: Iterable[Any] = [python_values(column) for column in part.columns]
        yield from zip(*columns, strict=True) if data.num_columns else [()] * part.num_rows


async def refuse(writer: asyncio.StreamWriter, code: str, message: str) -> None:
    """Tells a client why it is not served; it may have left."""
    try:
        writer.write(m.trouble(b"E", "FATAL", code, message))
        async with asyncio.timeout(2):
            await writer.drain()
    except (OSError, TimeoutError, ssl.SSLError) as error:
        _logger.debug("a client left before it was refused: %s", error)
