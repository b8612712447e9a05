"""Rows for the engines of one shard: how changes, bulk loads, deltas and snapshots travel and rest.

A part is packed once, as a line of JSON and an Arrow stream, where it is made. In this form it goes to its shard, into
the file of its step, and back out of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

import pyarrow as pa

_ALIGNED = 64
"""Heads and bodies have multiples of so many bytes: Arrow reads columns where they lie, and wants them aligned."""

CHANGE = ""
"""In place of a table's name: the part is the change of a followed view, not rows for an engine."""


@dataclass(frozen=True, slots=True)
class EngineKey:
    """An engine of a shard: that of a table (`pattern` -1), or of one pattern of one generation of a view."""

    name: str
    generation: int = 0
    pattern: int = -1

    @property
    def is_table(self) -> bool:
        return self.pattern < 0

    def __str__(self) -> str:
        return f"table {self.name}" if self.is_table else f"view {self.name}/{self.generation}/{self.pattern}"


@dataclass(frozen=True, slots=True)
class Part:
    """Rows for a table of an engine; the last column has their weights."""

    engine: EngineKey
    table: str
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class PackedPart:
    """A part in its bytes."""

    head: bytes
    body: pa.Buffer
    rows: int

    @staticmethod
    def of(part: Part) -> PackedPart:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, part.rows.schema) as stream:
            stream.write_table(part.rows)
        sink.write(bytes(-sink.tell() % _ALIGNED))
        key, body = part.engine, sink.getvalue()
        head = json.dumps([key.name, key.generation, key.pattern, part.table, part.rows.num_rows, body.size]).encode()
        return PackedPart(head + b" " * (-(len(head) + 1) % _ALIGNED) + b"\n", body, part.rows.num_rows)

    @staticmethod
    def read(head: bytes, body: pa.Buffer) -> PackedPart:
        """The part of a head and a body that were received."""
        return PackedPart(head, body, json.loads(head)[4])

    @property
    def label(self) -> tuple[str, str]:
        """The name of its engine, and that of the engine's table."""
        name, _, _, table, _, _ = json.loads(self.head)
        return name, table

    def is_change_of(self, view: str) -> bool:
        """Whether it says how a view changed."""
        return self.label == (view, CHANGE)

    def unpacked(self) -> Part:
        name, generation, pattern, table, _, _ = json.loads(self.head)
        return Part(EngineKey(name, generation, pattern), table, pa.ipc.open_stream(self.body).read_all())


def changed_rows(changes: Iterable[PackedPart]) -> dict[str, int]:
    """By view, how many rows changed."""
    found: dict[str, int] = {}
    for part in changes:
        name = json.loads(part.head)[0]
        found[name] = found.get(name, 0) + part.rows
    return found


def pieces(parts: Iterable[PackedPart]) -> list[bytes | pa.Buffer]:
    """The bytes of a file of parts, piece by piece."""
    return [piece for part in parts for piece in (part.head, part.body)]


def digest_of(data: Iterable[bytes | pa.Buffer]) -> str:
    """What tells a file of these bytes from every other."""
    found = blake2b(digest_size=16)
    for piece in data:
        found.update(piece)
    return found.hexdigest()


def split_parts(data: pa.Buffer) -> Iterator[PackedPart]:
    """The parts of a file."""
    view, position = memoryview(data), 0
    while position < len(view):
        end = position + bytes(view[position : position + 65536]).index(b"\n") + 1
        head = bytes(view[position:end])
        *_, rows, size = json.loads(head)
        yield PackedPart(head, data.slice(end, size), rows)
        position = end + size
