"""How a client is let in: TLS if it asks for it, its settings, and the proof that it has the token."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from ivme.serve.grants import OWNER, Grant
from ivme.serve.pg import messages as m
from ivme.serve.pg.scram import MECHANISM, Exchange, ScramError, Verifier

_MOST_BYTES = 10_000
"""The longest message of a client that is not let in yet."""


@dataclass(frozen=True, slots=True)
class Door:
    """What a token allows, and the proof of it that is required; None where there is no token."""

    grant: Grant
    verifier: Verifier | None


class LoginRefusedError(Exception):
    """A client that is not let in; `code` is the class of the error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class CancelRequestError(Exception):
    """The client wants nothing but to cancel what another connection does."""

    def __init__(self, process: int, secret: int) -> None:
        super().__init__()
        self.process = process
        self.secret = secret


class Login:
    """The beginning of a connection, and its messages.

    `doors` are the tokens by the names of the users who have them; any other user has that for everything.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        doors: Mapping[str, Door],
        tls: ssl.SSLContext | None,
    ) -> None:
        self.reader, self.writer = reader, writer
        self.process, self.secret = secrets.randbits(31), secrets.randbits(32)
        self._doors = doors
        self.door = doors[OWNER]
        self._tls = tls
        self._is_secure = False

    async def admit(self) -> None:
        """Lets the client in, or raises why not."""
        options = await self.start()
        encoding = options.get("client_encoding", "UTF8").strip("'").lower()
        if encoding not in ("utf8", "utf-8", "unicode", "sql_ascii", "auto"):
            raise LoginRefusedError("22023", f"the encoding {encoding} is not spoken here; set client_encoding to UTF8")
        if self._tls is not None and not self._is_secure:
            raise LoginRefusedError("28000", "this server speaks TLS only; connect with sslmode=require")
        self.door = self._doors.get(options.get("user", ""), self.door)
        if self.door.verifier is not None:
            await self._authenticate(self.door.verifier)

    async def start(self) -> dict[str, str]:
        """Reads the first messages, up to what the client says of itself."""
        while True:
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            if not 8 <= size <= _MOST_BYTES:
                raise m.ProtocolError("this is not PostgreSQL's protocol")
            body = m.Body(await self.reader.readexactly(size - 4))
            code = body.int32()
            if code == m.CANCEL_REQUEST:
                raise CancelRequestError(body.int32(), int.from_bytes(body.take(4), "big"))
            if code == m.SSL_REQUEST:
                await self._start_tls()
            elif code == m.GSS_REQUEST:
                self.writer.write(b"N")
            elif code >> 16 == m.PROTOCOL >> 16:
                return m.startup_options(body)
            else:
                raise LoginRefusedError(
                    "08P01", f"version {code >> 16} of the protocol is not spoken here; use version 3"
                )

    async def _start_tls(self) -> None:
        if self._tls is None or self._is_secure:
            self.writer.write(b"N")
            return
        self.writer.write(b"S")
        await self.writer.drain()
        await self.writer.start_tls(self._tls)
        self._is_secure = True

    async def _authenticate(self, verifier: Verifier) -> None:
        exchange = Exchange(verifier)
        self.writer.write(m.authentication(10, m.text(MECHANISM) + b"\0"))
        try:
            first = await self._password()
            if first.text() != MECHANISM:
                raise ScramError(f"this server has {MECHANISM} only")
            self.writer.write(m.authentication(11, exchange.challenge(first.value() or b"")))
            self.writer.write(m.authentication(12, exchange.finish((await self._password()).rest())))
        except ScramError as error:
            raise LoginRefusedError("28P01", str(error)) from None

    async def _password(self) -> m.Body:
        await self.writer.drain()
        kind, body = await self.read(_MOST_BYTES)
        if kind != b"p":
            raise ScramError("a password is required")
        return body

    async def read(self, most: int) -> tuple[bytes, m.Body]:
        """The next message."""
        head = await self.reader.readexactly(5)
        size = int.from_bytes(head[1:], "big")
        if not 4 <= size <= most:
            raise m.ProtocolError(f"a message of {size} bytes is malformed or too long: at most {most} bytes are read")
        return head[:1], m.Body(await self.reader.readexactly(size - 4))
