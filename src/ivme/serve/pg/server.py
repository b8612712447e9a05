"""Listens for clients of PostgreSQL's protocol, beside HTTP and in the same event loop."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from typing import TYPE_CHECKING

from ivme.errors import ServeError
from ivme.serve.connections import origin_of
from ivme.serve.pg.catalog import PostgresCatalog
from ivme.serve.pg.connection import Connection, refuse
from ivme.serve.pg.login import CancelRequestError, Door, Login, LoginRefusedError
from ivme.serve.pg.messages import ProtocolError
from ivme.serve.pg.runner import Runner
from ivme.serve.pg.scram import Verifier
from ivme.serve.settings import Settings

if TYPE_CHECKING:
    from ivme.database import Database

_logger = logging.getLogger("ivme.serve")

_REFUSING = 2.0
"""How long a client that has no place may take to hear so, in seconds."""


class PostgresServer:
    """The clients that are connected. Used by the event loop only."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        grants = settings.grants
        self._catalogs = {grant.name: PostgresCatalog(database, grant) for grant in grants}
        self._doors = {grant.name: Door(grant, Verifier(grant.token) if grant.token else None) for grant in grants}
        self._tls = settings.tls_context()
        self._server: asyncio.Server | None = None
        self._clients: dict[asyncio.Task[None], Connection | None] = {}
        self._keys: dict[tuple[int, int], Connection] = {}
        self._waiting: dict[asyncio.Task[None], None] = {}
        self._origins: Counter[str] = Counter()

    async def start(self) -> int:
        """Listens; the port."""
        assert self._settings.pg_port is not None
        try:
            self._server = await asyncio.start_server(self._serve, self._settings.host, self._settings.pg_port)
        except OSError as error:
            where = f"{self._settings.host}:{self._settings.pg_port}"
            raise ServeError(f"{where} cannot be served: {error}; choose another port for --pg") from error
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Listens no more, and ends all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._clients:
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client, from its first byte to its last; whatever it does, it ends here."""
        task = asyncio.current_task()
        assert task is not None
        peer = writer.get_extra_info("peername")
        origin = origin_of(peer[0] if isinstance(peer, tuple) else "")
        self._clients[task] = None
        self._origins[origin] += 1
        try:
            login = Login(reader, writer, self._doors, self._tls)
            if self._is_full(origin):
                async with asyncio.timeout(_REFUSING):  # a refusal is understood after the first message only
                    await login.start()
                raise LoginRefusedError("53300", "too many connections; close some, or try again later")
            await self._admit_and_answer(task, login)
        except LoginRefusedError as error:
            await refuse(writer, error.code, str(error))
        except ProtocolError as error:
            await refuse(writer, "08P01", str(error))
        except (asyncio.IncompleteReadError, TimeoutError, OSError, ssl.SSLError) as error:
            _logger.debug("a client of the PostgreSQL protocol left: %r", error)
        except asyncio.CancelledError:
            await refuse(writer, "57P01", "the server is shutting down, or needs the connection for another client")
        except Exception:
            _logger.exception("a connection of the PostgreSQL protocol failed")
            await refuse(writer, "XX000", "the server failed; its log says more")
        finally:
            self._clients.pop(task, None)
            self._waiting.pop(task, None)
            self._origins[origin] -= 1
            if not self._origins[origin]:
                del self._origins[origin]
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    def _is_full(self, origin: str) -> bool:
        """Whether there is no place: the one that has waited longest to be let in gives up its own."""
        most = self._settings.connections_per_address
        if most and self._origins[origin] > most:
            return True
        if len(self._clients) > self._settings.connections:
            if not self._waiting:
                return True
            next(iter(self._waiting)).cancel()
        return False

    async def _admit_and_answer(self, task: asyncio.Task[None], login: Login) -> None:
        self._waiting[task] = None
        try:
            async with asyncio.timeout(self._settings.header_seconds):
                await login.admit()
        except CancelRequestError as asked:
            other = self._keys.get((asked.process, asked.secret))
            if other is not None:
                other.cancel()
            return
        finally:
            self._waiting.pop(task, None)
        grant, catalog = login.door.grant, self._catalogs[login.door.grant.name]
        runner = Runner(self._database, self._settings, catalog, grant)
        client = self._clients[task] = Connection(login, runner, catalog, self._settings)
        self._keys[login.process, login.secret] = client
        try:
            await client.serve()
        finally:
            del self._keys[login.process, login.secret]
