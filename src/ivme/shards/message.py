"""Questions to shards and their answers: JSON, and Arrow for rows. Nothing that is received is ever executed.

A question is the bytes of a Flight ticket. An answer is a Flight stream, whose schema carries the JSON: rows go over
the wire as they are. Errors are answers, so that they arrive in the class that they had.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ivme import errors
from ivme.errors import IvmeError, SparkError

_LENGTH = struct.Struct(">Q")
_HEAD = b"ivme"

_ATTEMPTS = 8
"""How often a batch is tried whose hosts are lost on the way."""


class LostError(SparkError):
    """A host ended or cannot be reached, or what it had of a step is lost. Another one will serve: try again."""


def again_if_lost(attempt: Callable[[], None]) -> None:
    """Makes an attempt, and others where a host is lost on the way."""
    for number in range(_ATTEMPTS):
        try:
            attempt()
            return
        except LostError:
            if number == _ATTEMPTS - 1:
                raise


@dataclass(frozen=True, slots=True)
class Message:
    """A question or an answer."""

    head: Mapping[str, Any]
    tables: tuple[pa.Table, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A request to one shard."""

    shard: int
    head: Mapping[str, Any]
    tables: tuple[pa.Table, ...] = ()


def pack(message: Message) -> bytes:
    """A message as bytes."""
    bodies = [_ipc(table) for table in message.tables]
    head = json.dumps({**message.head, "tables": [body.size for body in bodies]}).encode()
    return b"".join([_LENGTH.pack(len(head)), head, *bodies])


def unpack(data: bytes | pa.Buffer) -> Message:
    """The message of some bytes; SparkError if they are not one."""
    buffer = pa.py_buffer(data)
    try:
        (length,) = _LENGTH.unpack(buffer.slice(0, _LENGTH.size))
        position = _LENGTH.size + length
        head = json.loads(bytes(buffer.slice(_LENGTH.size, length)))
        tables = []
        for size in head.pop("tables"):
            tables.append(pa.ipc.open_stream(buffer.slice(position, size)).read_all())
            position += size
    except (struct.error, ValueError, LookupError, OverflowError, AttributeError, TypeError) as error:
        raise SparkError("a request to a shard is not one of ours") from error
    return Message(head, tuple(tables))


def as_stream(message: Message) -> pa.Table:
    """A message as one table; several tables are packed into one."""
    if len(message.tables) == 1:
        table = message.tables[0]
    else:
        arrays = [pa.array([_ipc(table).to_pybytes()], pa.large_binary()) for table in message.tables]
        table = pa.table(arrays, names=[str(number) for number in range(len(arrays))])
    head = json.dumps({**message.head, "tables": len(message.tables)}).encode()
    return table.replace_schema_metadata({_HEAD: head})


def from_stream(table: pa.Table) -> Message:
    """The message that `as_stream` made a table of."""
    head = json.loads(table.schema.metadata[_HEAD])
    count = head.pop("tables")
    table = table.replace_schema_metadata(None)
    if count == 1:
        return Message(head, (table,))
    bodies = [table.column(number)[0].as_buffer() for number in range(count)]
    return Message(head, tuple(pa.ipc.open_stream(body).read_all() for body in bodies))


def _ipc(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


def error_head(error: BaseException) -> dict[str, Any]:
    """An error as the head of an answer, in its class of `ivme.errors` or the nearest one above it."""
    public = (kind.__name__ for kind in type(error).__mro__ if getattr(errors, kind.__name__, None) is kind)
    own = type(error).__name__
    return {"error": [own if isinstance(error, LostError) else next(public, own), str(error)]}


def raise_error(head: Mapping[str, Any]) -> None:
    """Raises the error that an answer reports, in the class that it had."""
    if "error" not in head:
        return
    name, message = head["error"]
    if name == LostError.__name__:
        raise LostError(message)
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, IvmeError):
        raise kind(message)
    raise SparkError(f"a shard failed: {name}: {message}")
