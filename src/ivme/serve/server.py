"""Running a server."""

from __future__ import annotations

import ivme.serve.packages  # noqa: F401

# isort: split
import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING

import uvicorn

from ivme.database import Database
from ivme.errors import ServeError
from ivme.serve.app import create_app
from ivme.serve.connections import Connections, connection_class
from ivme.serve.gate import Gate
from ivme.serve.pg.server import PostgresServer
from ivme.serve.settings import Settings

if TYPE_CHECKING:
    from ivme.shards.state import ShardedState

_UNREAD = (1.0, 2.0, 3.0, 4.0)
"""When a server that stops cuts the clients that do not read the end of their answers, in seconds."""


class Server(uvicorn.Server):
    """A server that tells the followers of views before it waits for them to go."""

    def __init__(
        self, gate: Gate, config: uvicorn.Config, connections: Connections, postgres: PostgresServer | None
    ) -> None:
        super().__init__(config)
        self._gate = gate
        self._connections = connections
        self._postgres = postgres
        self.pg_port: int | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._postgres is not None:
            self.pg_port = await self._postgres.start()
        await super().startup(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second."""
        self._connections.sweep()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._gate.end()
        for seconds in _UNREAD:
            asyncio.get_running_loop().call_later(seconds, self._connections.cut_unread)
        if self._postgres is not None:
            await self._postgres.stop()
        await super().shutdown(sockets)
        self._connections.cut_all()


def make_server(database: Database | ShardedState, settings: Settings) -> Server:
    """A server that is not running yet; refused if it would be open to others without a token."""
    settings.check()
    gate = _app(database, settings)
    connections = Connections(settings)
    gate.metrics.connections = connections.__len__
    config = uvicorn.Config(
        gate,
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=5,
        timeout_keep_alive=ceil(settings.idle_seconds),
        http=connection_class(connections),
        ws="none",
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )
    postgres = None
    if settings.pg_port is not None:
        if not isinstance(database, Database):
            raise ServeError("PostgreSQL's protocol runs statements, which shards do not; leave --pg-port out")
        postgres = PostgresServer(database, settings)
    return Server(gate, config, connections, postgres)


def _app(database: Database | ShardedState, settings: Settings) -> Gate:
    if isinstance(database, Database):
        return create_app(database, settings)
    from ivme.serve.sharded import create_sharded_app

    return create_sharded_app(database, settings)


def serve(database: Database, settings: Settings) -> None:
    """Serves a database until it is interrupted."""
    server = make_server(database, settings)
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        for port in (settings.port, *([settings.pg_port] if settings.pg_port else [])):
            socket.create_server((settings.host, port), family=family).close()
    except OSError as error:
        raise ServeError(f"{settings.host}:{port} cannot be served: {error}; choose another port") from error
    server.run()


@contextmanager
def running(database: Database | ShardedState, settings: Settings) -> Iterator[Server]:
    """Serves a database from a thread of its own until the block ends. Port 0 stands for any free one."""
    server = make_server(database, settings)
    thread = threading.Thread(target=server.run, name="ivme-serve")
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise ServeError("the server did not start; is the port in use?")
            time.sleep(0.005)
        yield server
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def serving(database: Database | ShardedState, settings: Settings | None = None) -> Iterator[str]:
    """Serves a database from a thread of its own until the block ends; the address."""
    chosen = settings or Settings(port=0)
    with running(database, chosen) as server:
        host, port = server.servers[0].sockets[0].getsockname()[:2]
        scheme = "http" if chosen.tls_certificate is None else "https"
        yield f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
