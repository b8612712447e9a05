"""What goes over the socket between a shard's daemon and those who ask it: JSON, and Arrow for rows.

A message is the length of its head, the head, and for each table that the head announces its length and an Arrow
stream. Nothing that is received is ever executed.
"""

from __future__ import annotations

import io
import json
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ivme import errors
from ivme.errors import IvmeError, SparkError

_LENGTH = struct.Struct(">Q")
_MOST_HEAD = 1 << 28


@dataclass(frozen=True, slots=True)
class Message:
    """A request or an answer."""

    head: Mapping[str, Any]
    tables: tuple[pa.Table, ...] = ()


def send(connection: socket.socket, head: Mapping[str, Any], tables: Sequence[pa.Table] = ()) -> None:
    """Sends one message."""
    text = json.dumps({**head, "tables": len(tables)}).encode()
    connection.sendall(_LENGTH.pack(len(text)) + text)
    for table in tables:
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        body = sink.getbuffer()
        connection.sendall(_LENGTH.pack(len(body)))
        connection.sendall(body)


def receive(connection: socket.socket) -> Message | None:
    """The next message; None if the other side has ended. A message that breaks off raises ConnectionError."""
    start = _exactly(connection, _LENGTH.size, may_end=True)
    if start is None:
        return None
    (length,) = _LENGTH.unpack(start)
    if length > _MOST_HEAD:
        raise ConnectionError("the message is not one of ours")
    head = json.loads(_whole(connection, length))
    tables = []
    for _ in range(head.pop("tables")):
        (size,) = _LENGTH.unpack(_whole(connection, _LENGTH.size))
        tables.append(pa.ipc.open_stream(pa.py_buffer(_whole(connection, size))).read_all())
    return Message(head, tuple(tables))


def _whole(connection: socket.socket, length: int) -> bytearray:
    found = _exactly(connection, length)
    assert found is not None
    return found


def _exactly(connection: socket.socket, length: int, *, may_end: bool = False) -> bytearray | None:
    data = bytearray(length)
    view, position = memoryview(data), 0
    while position < length:
        received = connection.recv_into(view[position:])
        if received == 0:
            if may_end and position == 0:
                return None
            raise ConnectionError("the other side ended in the middle of a message")
        position += received
    return data


def error_head(error: BaseException) -> dict[str, Any]:
    """An error as the head of an answer."""
    return {"error": [type(error).__name__, str(error)]}


def raise_error(head: Mapping[str, Any]) -> None:
    """Raises the error that an answer reports, in the class that it had."""
    if "error" not in head:
        return
    name, message = head["error"]
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, IvmeError):
        raise kind(message)
    raise SparkError(f"a shard failed: {name}: {message}")
