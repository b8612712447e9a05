"""A segment of the log: a file with a first line that says whose it is, and records behind it.

A segment starts where a snapshot was begun; it is complete and durable before the next one is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ivme.errors import DamagedError, StorageError
from ivme.store import system
from ivme.store.end_file import End
from ivme.store.files import check_version, digest, read, write_fully, write_whole
from ivme.store.record import Record, last_committed, read_record

LOG_VERSION = 2
"""The version of the format of a segment. In version 1, records had checksums of their bytes (`record.py`)."""

NAME = re.compile(r"log-(\d{12})\.ivme")


def segment_path(directory: Path, first: int) -> Path:
    """The file of the segment whose first record has this number."""
    return directory / f"log-{first:012}.ivme"


def segments_of(directory: Path) -> dict[int, Path]:
    """The segments of a directory by the number of their first record, in order."""
    found = ((NAME.fullmatch(path.name), path) for path in directory.iterdir())
    return dict(sorted((int(match.group(1)), path) for match, path in found if match))


def _first_line(identity: str, first: int, version: int = LOG_VERSION) -> bytes:
    stated = f"ivme-log {version} {identity} {first}"
    return f"{stated} {digest(stated.encode()).hex()}\n".encode()


@dataclass(frozen=True, slots=True)
class Tail:
    """Where a segment ends: its first record's number and its last's (the one before the first, if it has none), the
    place behind it, how many bytes there are not a record, and the bytes before it that may not have been synced; the
    version of its format."""

    path: Path
    first: int
    last: int
    place: int
    torn: int = 0
    unsynced: bytes = b""
    version: int = LOG_VERSION

    @property
    def end(self) -> End:
        return End(self.first, self.last, self.place)


def make_segment(directory: Path, identity: str, first: int) -> Tail:
    """An empty segment, durable."""
    path, line = segment_path(directory, first), _first_line(identity, first)
    write_whole(path, [line])
    return Tail(path, first, first - 1, len(line))


class SegmentReader:
    """Reads a segment's records. `tail` is what it ended with, once all were read.

    `end`, if it is in this segment, is a place up to which everything has to be there.
    """

    def __init__(self, path: Path, identity: str, first: int, end: End | None = None) -> None:
        self.path = path
        self.data = read(path)
        self._end = end if end is not None and end.first == first else End(first, first - 1, 0)
        self._has_end = end is not None
        self._first = first
        self._last = first - 1
        self._version, self._place = _check_first_line(path, self.data, identity, first)
        self._identity = identity if self._version > 1 else None
        self._start = self._place

    def records(self) -> Iterator[Record]:
        view = memoryview(self.data)
        while (
            record := read_record(self._identity, view, self._place)
        ) is not None and record.number == self._last + 1:
            yield record
            self._last, self._place = record.number, record.end
        reached = max(self._end.last, last_committed(self._identity, self.data, self._place, self._last + 1))
        if reached > self._last:
            size = max(len(self.data), self._end.place) - self._place
            raise DamagedError(
                f"{self.path} is damaged at byte {self._place}: {were_committed(self._last + 1, reached)} "
                f"and cannot be read ({size} bytes)"
            )

    def tail(self) -> Tail:
        synced = max(self._end.place, self._start) if self._has_end else self._place
        unsynced = self.data[min(synced, self._place) : self._place]
        torn = len(self.data) - self._place
        return Tail(self.path, self._first, self._last, self._place, torn, unsynced, self._version)


def were_committed(first: int, last: int) -> str:
    """Says that records were committed.

    >>> were_committed(3, 3), were_committed(3, 9)
    ('record 3 was committed', 'records 3 to 9 were committed')
    """
    return f"record {first} was committed" if first == last else f"records {first} to {last} were committed"


def _check_first_line(path: Path, data: bytes, identity: str, first: int) -> tuple[int, int]:
    """The version of a segment, and the place behind the first line, if that is what it has to be."""
    end = data.find(b"\n", 0, 256)
    words = data[: max(end, 0)].split(b" ")
    if len(words) != 5 or words[0] != b"ivme-log" or not words[1].isdigit():
        raise DamagedError(f"{path} is damaged: its first line is not that of a log")
    version = int(words[1])
    check_version(path, version, LOG_VERSION)
    if data[: end + 1] != _first_line(identity, first, version):
        raise DamagedError(f"{path} is damaged, or is the log of another database: its first line does not fit")
    return version, end + 1


def settle(tail: Tail) -> None:
    """Takes what a crash left behind the last whole record off a segment, and makes the rest durable.

    A process that was killed may have left records that are written and not synced; from here on they count as durable.
    They are written once more: after a sync that failed, the operating system may believe that they are on the disk.
    """
    try:
        descriptor = system.open_to_write(tail.path)
        try:
            system.truncate(descriptor, tail.place)
            write_fully(descriptor, [tail.unsynced], tail.place - len(tail.unsynced))
            system.sync(descriptor)
        finally:
            system.close(descriptor)
    except OSError as error:
        raise StorageError(f"{tail.path} cannot be written: {error}") from error
