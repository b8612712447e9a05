"""Running a server."""

from __future__ import annotations

import socket

import uvicorn

from ivme.database import Database
from ivme.serve.app import create_app
from ivme.serve.gate import Gate
from ivme.serve.settings import Settings


class Server(uvicorn.Server):
    """A server that tells those who follow views before it waits for them to go."""

    def __init__(self, gate: Gate, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._gate = gate

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._gate.end()
        await super().shutdown(sockets)


def make_server(database: Database, settings: Settings) -> Server:
    """A server that is not running yet; refused if it would be open to others without a token."""
    settings.check()
    gate = create_app(database, settings)
    config = uvicorn.Config(
        gate,
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=5,
        limit_concurrency=2000,
    )
    return Server(gate, config)


def serve(database: Database, settings: Settings) -> None:
    """Serves a database until it is interrupted."""
    make_server(database, settings).run()
