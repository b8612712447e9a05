"""How far the log is known to reach: a small file beside it, by which a log that was cut later is told from a torn one.

Every record that was committed before the end that this file states has to be there when the directory is opened. The
end is moved after the records before it are durable, so that it never states too much, and no crash between the two
does harm. It is synced when the database is opened and closed and when a segment of the log begins. After a commit it
is written and not synced, which costs a few microseconds: it survives the end of the process at once, and a loss of
power once the operating system has written it, some seconds later.

The file has two slots, which are written in turns: a write that a loss of power tears leaves the other. The slot with
the higher number counts.
"""

from __future__ import annotations

import logging
import struct
import threading
import weakref
from pathlib import Path
from typing import NamedTuple

from ivme.errors import DamagedError, StorageError
from ivme.store import system
from ivme.store.files import DIGEST_BYTES, digest, read, write_fully, write_whole

END = "end.ivme"

_MAGIC = b"ivmE"
_SLOT = struct.Struct("<4sQ16sQQQ")
"""Magic, number of the write, identity of the database, first record of the segment, last record, place behind it."""

_SLOT_BYTES = 4096
"""The largest sector in use: a torn write touches one slot."""

_logger = logging.getLogger("ivme.store")


class End(NamedTuple):
    """An end of the log: the segment (by its first record), the last record in it, and the place behind that."""

    first: int
    last: int
    place: int


def make_end_file(directory: Path, identity: str, end: End) -> None:
    """Writes the file again, durable."""
    write_whole(directory / END, [_slot(number, identity, end) for number in (0, 1)])


def read_end(directory: Path, identity: str) -> tuple[int, End]:
    """The number of the last write, and the end that it states."""
    path = directory / END
    data = read(path)
    if len(data) != 2 * _SLOT_BYTES:
        raise DamagedError(f"{path} is damaged: it has {len(data)} bytes in place of {2 * _SLOT_BYTES}")
    slots = [_read_slot(data[place : place + _SLOT_BYTES], identity) for place in (0, _SLOT_BYTES)]
    found = [slot for slot in slots if slot is not None]
    if not found:
        raise DamagedError(f"{path} is damaged: how far the log reached cannot be read")
    return max(found)


def _slot(number: int, identity: str, end: End) -> bytes:
    stated = _SLOT.pack(_MAGIC, number, bytes.fromhex(identity), *end)
    return (stated + digest(stated)).ljust(_SLOT_BYTES, b"\0")


def _read_slot(data: bytes, identity: str) -> tuple[int, End] | None:
    stated, stored = data[: _SLOT.size], data[_SLOT.size : _SLOT.size + DIGEST_BYTES]
    if digest(stated) != stored:
        return None
    magic, number, owner, *end = _SLOT.unpack(stated)
    return (number, End(*end)) if magic == _MAGIC and owner.hex() == identity else None


class EndFile:
    """The file of the end, open for writing."""

    def __init__(self, directory: Path, identity: str) -> None:
        self.path = directory / END
        self._identity = identity
        self._number, self._end = read_end(directory, identity)
        try:
            self._descriptor = system.open_to_write(self.path)
        except OSError as error:
            raise StorageError(f"{self.path} cannot be written: {error}") from error
        self.release = weakref.finalize(self, system.close, self._descriptor)
        self._lock = threading.Lock()
        self._failed = False

    def note(self, end: End) -> None:
        """Records an end that is behind the one that is stated, without a sync.

        A failed write is not a reason to refuse a commit, which is on the disk: the end stays where it was.
        """
        if end.last <= self._end.last:
            return
        with self._lock:
            if end.last > self._end.last:
                try:
                    self._write(end)
                except OSError as error:
                    if not self._failed:
                        _logger.warning("%s cannot be written; it is tried again: %s", self.path, error)
                    self._failed = True

    def move(self, end: End) -> None:
        """Records an end, durably."""
        with self._lock:
            try:
                self._write(end)
                system.sync(self._descriptor)
            except OSError as error:
                raise StorageError(f"{self.path} cannot be written: {error}") from error

    def _write(self, end: End) -> None:
        number = self._number + 1
        slot = _slot(number, self._identity, end)[: _SLOT.size + DIGEST_BYTES]
        write_fully(self._descriptor, [slot], number % 2 * _SLOT_BYTES)
        self._number, self._end = number, end
