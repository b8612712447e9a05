"""A record of the log: a text in JSON, perhaps bytes behind it, and a checksum over everything.

The checksum is of the identity of the directory, the header, the text, and the CRC-32 of the bytes, which is found ten
times as fast as a checksum of them. With the identity, no bytes that a user stores can pass for a record. In records of
older versions it is of the bytes themselves, and without the identity.

Records are numbered without gaps. Each also says up to which number records were known to be durable when it was
written. So a record that cannot be read is either the end of a write that a crash cut short, or, if a later record
says that it had been durable, damage: the first is cut off, the second refused.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from ivme.store.files import digest

_MAGIC, _OLDER = b"ivmS", b"ivmR"
_ANY = b"ivm"
_HEADER = struct.Struct("<4sIQQQ")
"""Magic, length of the text, length of the bytes, number, number up to which records are durable."""

_SUM = struct.Struct("<I")
_DIGEST = 16
HEADER_BYTES = _HEADER.size + _DIGEST

_decode = json.JSONDecoder().raw_decode
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Record(NamedTuple):
    """A record as it was read; `end` is the place behind it. There may be millions: tuples are made quickest."""

    number: int
    durable: int
    content: Any
    body: memoryview
    end: int


def record_text(content: object) -> bytes:
    """The text of a record; it is ASCII, so that it needs no further encoding."""
    return _encode(content).encode()


def sum_of(bodies: Sequence[Any]) -> int:
    """What the checksum of a record says of its bytes."""
    total = 0
    for body in bodies:
        total = zlib.crc32(body, total)
    return total


def framed(identity: str, number: int, durable: int, content: object, bodies: Sequence[Any] = ()) -> list[Any]:
    """The buffers of a record, in order."""
    text = record_text(content)
    header = _HEADER.pack(_MAGIC, len(text), sum(map(len, bodies)), number, durable)
    return [b"".join((header, digest(identity.encode(), header, text, _SUM.pack(sum_of(bodies))), text)), *bodies]


def read_record(identity: str | None, data: memoryview, place: int) -> Record | None:
    """The record at a place, or None if none can be read there; without an identity it is one of an older version."""
    start = place + HEADER_BYTES
    if start > len(data):
        return None
    magic, text_length, body_length, number, durable = _HEADER.unpack_from(data, place)
    body = start + text_length
    end = body + body_length
    if magic != (_OLDER if identity is None else _MAGIC) or end > len(data):
        return None
    header, stored = data[place : place + _HEADER.size], data[place + _HEADER.size : start]
    text, rest = data[start:body], data[body:end]
    if identity is None:
        found = digest(header, text, rest)
    else:
        found = digest(identity.encode(), header, text, _SUM.pack(sum_of([rest])))
    if found != stored:
        return None
    content, _ = _decode(str(text, "ascii"))
    return Record(number, durable, content, rest, end)


def last_committed(identity: str | None, data: bytes, place: int, number: int) -> int:
    """The last record that is behind a place, if one of those there says that the record of this number was durable.

    0 if none does.
    """
    view = memoryview(data)
    last = 0
    found = data.find(_ANY, place + 1)
    while found >= 0:
        later = read_record(identity, view, found) if _may_state(view, found, number) else None
        last = last if later is None else max(last, later.number)
        found = data.find(_ANY, found + 1 if later is None else later.end)
    return last


def _may_state(data: memoryview, place: int, number: int) -> bool:
    """Whether the header at a place says so; only then it is worth to sum up what may be the rest of the file."""
    if place + HEADER_BYTES > len(data):
        return False
    _, _, _, later, durable = _HEADER.unpack_from(data, place)
    return bool(number <= durable < later)
