"""A segment of the log: a file with a first line that says whose it is, and records behind it.

A segment starts where a snapshot was begun; it is complete and durable before the next one is made.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ivme.errors import DamagedError, StorageError
from ivme.store.files import VERSION, check_version, digest, read, write_whole
from ivme.store.record import Record, read_record, was_durable

NAME = re.compile(r"log-(\d{12})\.ivme")


def segment_path(directory: Path, first: int) -> Path:
    """The file of the segment whose first record has this number."""
    return directory / f"log-{first:012}.ivme"


def segments_of(directory: Path) -> dict[int, Path]:
    """The segments of a directory by the number of their first record, in order."""
    found = ((NAME.fullmatch(path.name), path) for path in directory.iterdir())
    return dict(sorted((int(match.group(1)), path) for match, path in found if match))


def _first_line(identity: str, first: int) -> bytes:
    stated = f"ivme-log {VERSION} {identity} {first}"
    return f"{stated} {digest(stated.encode()).hex()}\n".encode()


def make_segment(directory: Path, identity: str, first: int) -> Path:
    """An empty segment, durable."""
    path = segment_path(directory, first)
    write_whole(path, [_first_line(identity, first)])
    return path


@dataclass(frozen=True, slots=True)
class Tail:
    """Where a segment ends: its first record's number and its last's (the one before the first, if it has none), the
    place behind it, and the bytes there that are no record."""

    path: Path
    first: int
    last: int
    place: int
    torn: int


class SegmentReader:
    """Reads a segment's records. `tail` is what it ended with, once all were read."""

    def __init__(self, path: Path, identity: str, first: int) -> None:
        self.path = path
        self.data = read(path)
        self._first = first
        self._last = first - 1
        self._place = _check_first_line(path, self.data, identity, first)

    def records(self) -> Iterator[Record]:
        view = memoryview(self.data)
        while (record := read_record(view, self._place)) is not None and record.number == self._last + 1:
            self._last, self._place = record.number, record.end
            yield record
        if was_durable(self.data, self._place, self._last + 1):
            raise DamagedError(
                f"{self.path} is damaged at byte {self._place}: record {self._last + 1} was committed and cannot be "
                "read; restore the file from a copy of the directory"
            )

    def tail(self) -> Tail:
        return Tail(self.path, self._first, self._last, self._place, len(self.data) - self._place)


def _check_first_line(path: Path, data: bytes, identity: str, first: int) -> int:
    """The place behind the first line, if it is what it has to be."""
    end = data.find(b"\n", 0, 256)
    words = data[: max(end, 0)].split(b" ")
    if len(words) != 5 or words[0] != b"ivme-log" or not words[1].isdigit():
        raise DamagedError(f"{path} is damaged: its first line is not that of a log")
    check_version(path, int(words[1]))
    if data[: end + 1] != _first_line(identity, first):
        raise DamagedError(f"{path} is damaged, or is the log of another database: its first line does not fit")
    return end + 1


def cut(tail: Tail) -> None:
    """Takes what a crash left behind the last whole record off a segment."""
    try:
        descriptor = os.open(tail.path, os.O_WRONLY)
        try:
            os.ftruncate(descriptor, tail.place)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(f"{tail.path} cannot be written: {error}") from error


def write_fully(descriptor: int, parts: list[Any], place: int) -> int:
    """Writes buffers at a place of a file; the place behind them."""
    for part in parts:
        view = memoryview(part)
        while len(view):
            written = os.pwrite(descriptor, view, place)
            view, place = view[written:], place + written
    return place
