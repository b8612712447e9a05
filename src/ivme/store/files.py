"""Files that are there whole or not at all, and that show when they were damaged.

A *sealed* file has a first line with the format's version and the checksum of what follows, which is JSON. It is
replaced as a whole: written beside, synced, renamed, and the directory synced.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ivme.errors import DamagedError, StorageError
from ivme.store import system

VERSION = 1
"""The version of the format of a directory, segments of its log aside; one that a newer ivme wrote is refused."""

UNFINISHED = ".tmp"
"""The ending of files that are being written; those that a crash left behind are removed on opening."""

DIGEST_BYTES = 16

_BUFFER = 2**20


def digest(*parts: Any) -> bytes:
    """The checksum of bytes, 16 of them."""
    made = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        made.update(part)
    return made.digest()


def read(path: Path) -> bytes:
    """The bytes of a file that has to be there."""
    try:
        return system.read(path)
    except FileNotFoundError:
        raise DamagedError(f"{path} is missing") from None
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error


def write_fully(descriptor: int, parts: Iterable[Any], place: int) -> int:
    """Writes buffers at a place of a file; the place behind them."""
    for part in parts:
        view = memoryview(part)
        while len(view):
            written = system.write(descriptor, view, place)
            view, place = view[written:], place + written
    return place


class FileWriter:
    """A file that is being written from its beginning: what was written is gathered, counted and summed up."""

    closed = False

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pieces: list[bytes] = []
        self._gathered = 0
        self.sum = hashlib.blake2b(digest_size=DIGEST_BYTES)
        self.size = 0

    def write(self, data: bytes) -> int:
        self.sum.update(data)
        self._pieces.append(bytes(data))
        self._gathered += len(data)
        self.size += len(data)
        if self._gathered >= _BUFFER:
            self.flush()
        return len(data)

    def flush(self) -> None:
        write_fully(self._descriptor, [b"".join(self._pieces)], self.size - self._gathered)
        self._pieces, self._gathered = [], 0

    def close(self) -> None:
        """The file is closed by its opener."""


@contextmanager
def whole_file(path: Path) -> Iterator[FileWriter]:
    """A file to write: after a crash it is there whole or as it was before.

    After an error it is as it was before, unless the directory cannot be synced: then it may be either.
    """
    beside = path.with_name(path.name + UNFINISHED)
    try:
        descriptor = system.create(beside)
        try:
            file = FileWriter(descriptor)
            yield file
            file.flush()
            system.sync(descriptor)
        finally:
            system.close(descriptor)
        system.rename(beside, path)
        system.sync_directory(path.parent)
    except BaseException as error:
        with suppress(OSError):  # it is gone, or is removed when the directory is opened
            system.remove(beside)
        if isinstance(error, OSError):
            raise StorageError(f"{path} cannot be written: {error}") from error
        raise


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Writes a file of these parts, whole or not at all."""
    with whole_file(path) as file:
        for part in parts:
            file.write(part)


def free_name(directory: Path, stem: str, ending: str) -> str:
    """A name that no file of a directory has, so that a file that may be in use is never replaced."""
    names = (stem, *(f"{stem}-{number}" for number in range(2, 1000)))
    return next(name + ending for name in names if not (directory / (name + ending)).exists())


def write_sealed(path: Path, content: object) -> None:
    """Writes a sealed file."""
    text = json.dumps(content, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")
    first = f"ivme {VERSION} {digest(text).hex()}\n".encode()
    write_whole(path, (first, text))


def read_sealed(path: Path) -> Any:
    """What a sealed file holds; refused if another version wrote it, or if it was damaged."""
    first, _, text = read(path).partition(b"\n")
    words = first.split(b" ")
    if len(words) != 3 or words[0] != b"ivme" or not words[1].isdigit():
        raise DamagedError(f"{path} is damaged: its first line is not that of an ivme database")
    check_version(path, int(words[1]))
    if words[2] != digest(text).hex().encode():
        raise DamagedError(f"{path} is damaged: its checksum does not fit; restore it from a copy of the directory")
    return json.loads(text.decode("utf-8", "surrogatepass"))


def check_version(path: Path, version: int, newest: int = VERSION) -> None:
    """Refuses a file that a newer version of the format wrote."""
    if not 1 <= version <= newest:
        raise StorageError(
            f"{path} has the format version {version}, and this ivme reads version {newest}; "
            "open the directory with the ivme that wrote it"
        )
