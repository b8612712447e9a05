"""Messages of PostgreSQL's protocol 3.0 as bytes: how they are written and read. Nothing here knows a database.

A message is a letter, its length in four bytes (which count themselves), and its body. Texts end with a zero byte.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_INT16, _INT32 = struct.Struct("!h"), struct.Struct("!i")

SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST, PROTOCOL = 80877103, 80877104, 80877102, 196608


class ProtocolError(Exception):
    """Bytes that are not what the protocol says; the connection is closed."""


def message(kind: bytes, *parts: bytes) -> bytes:
    """A message of a kind.

    >>> message(b"Z", b"I")
    b'Z\\x00\\x00\\x00\\x05I'
    """
    body = b"".join(parts)
    return kind + _INT32.pack(len(body) + 4) + body


def text(value: str) -> bytes:
    """A text with its end; a zero byte within it, which the protocol cannot have, is left out."""
    return value.encode("utf-8", "replace").replace(b"\0", b"") + b"\0"


def int16(value: int) -> bytes:
    return _INT16.pack(value)


def int32(value: int) -> bytes:
    return _INT32.pack(value)


# From the server

AUTHENTICATED = message(b"R", int32(0))
PARSE_COMPLETE = message(b"1")
BIND_COMPLETE = message(b"2")
CLOSE_COMPLETE = message(b"3")
NO_DATA = message(b"n")
EMPTY_QUERY = message(b"I")
PORTAL_SUSPENDED = message(b"s")


def authentication(code: int, data: bytes) -> bytes:
    """A step of an authentication: 10 names the mechanisms, 11 goes on, 12 is the last."""
    return message(b"R", int32(code), data)


def parameter_status(name: str, value: str) -> bytes:
    return message(b"S", text(name), text(value))


def backend_key(process: int, secret: int) -> bytes:
    """What a client sends to cancel a statement of this connection."""
    return message(b"K", int32(process), struct.pack("!I", secret))


def ready(status: bytes) -> bytes:
    """The server waits for the next message: I outside of a transaction, T within one, E within a failed one."""
    return message(b"Z", status)


def command_complete(tag: str) -> bytes:
    return message(b"C", text(tag))


def trouble(kind: bytes, severity: str, code: str, what: str, hint: str = "") -> bytes:
    """An error (kind E) or a notice (kind N): its class in five characters, and what is wrong in words."""
    fields = [("S", severity), ("V", severity), ("C", code), ("M", what), *([("H", hint)] if hint else [])]
    return message(kind, *(name.encode() + text(value) for name, value in fields), b"\0")


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result: the number of its type in PostgreSQL, the bytes of its values (-1 if they differ)."""

    name: str
    type: int
    size: int
    modifier: int = -1


def row_description(columns: Iterable[ResultColumn], formats: Sequence[int]) -> bytes:
    parts = [
        text(column.name)
        + struct.pack("!ihihih", 0, 0, column.type, column.size, column.modifier, formats[place] if formats else 0)
        for place, column in enumerate(columns)
    ]
    return message(b"T", int16(len(parts)), *parts)


def parameter_description(types: Sequence[int]) -> bytes:
    return message(b"t", int16(len(types)), *map(int32, types))


def data_row(values: Iterable[bytes | None]) -> bytes:
    """A row; None is NULL."""
    parts = [int32(-1) if value is None else int32(len(value)) + value for value in values]
    return message(b"D", int16(len(parts)), *parts)


# From the client


class Body:
    """The body of a message, read from its beginning; what is missing is a `ProtocolError`."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def take(self, size: int) -> bytes:
        end = self._place + size
        if size < 0 or end > len(self._data):
            raise ProtocolError("a message is shorter than it says")
        found, self._place = self._data[self._place : end], end
        return found

    def int16(self) -> int:
        return int(_INT16.unpack(self.take(2))[0])

    def int32(self) -> int:
        return int(_INT32.unpack(self.take(4))[0])

    def text(self) -> str:
        end = self._data.find(b"\0", self._place)
        if end < 0:
            raise ProtocolError("a text of a message has no end")
        found, self._place = self._data[self._place : end], end + 1
        try:
            return found.decode()
        except UnicodeDecodeError as error:
            raise ProtocolError(f"a text of a message is not UTF-8: {error}") from None

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._place)

    def value(self) -> bytes | None:
        """A value with its length in front; None for NULL."""
        size = self.int32()
        return None if size == -1 else self.take(size)

    def int16s(self) -> list[int]:
        return [self.int16() for _ in range(self._count())]

    def int32s(self) -> list[int]:
        return [self.int32() for _ in range(self._count())]

    def values(self) -> list[bytes | None]:
        return [self.value() for _ in range(self._count())]

    def _count(self) -> int:
        number = self.int16()
        if number < 0:
            raise ProtocolError("a message has a negative number of entries")
        return number


def startup_options(body: Body) -> dict[str, str]:
    """What a client says of itself when it connects: names and values up to an empty name."""
    found = {}
    while name := body.text():
        found[name] = body.text()
    return found
