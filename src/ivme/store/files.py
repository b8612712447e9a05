"""Files that are there whole or not at all, and that show when they were damaged.

A *sealed* file has a first line with the format's version and the checksum of what follows, which is JSON. It is
replaced as a whole: written beside, synced, renamed, and the directory synced.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ivme.errors import DamagedError, StorageError

VERSION = 1
"""The version of the format of a directory; one that another version wrote is refused."""

UNFINISHED = ".tmp"
"""The ending of files that are being written; whoever opens the directory takes those away that were left behind."""

_DIGEST_BYTES = 16


def digest(*parts: Any) -> bytes:
    """The checksum of bytes, 16 of them."""
    made = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        made.update(part)
    return made.digest()


def read(path: Path) -> bytes:
    """The bytes of a file that has to be there."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DamagedError(f"{path} is missing; restore it from a copy of the directory") from None
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error


class Summed:
    """A file that sums up what is written to it."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.sum = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        self.size = 0

    def write(self, data: Any) -> int:
        self.sum.update(data)
        self.size += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """The file is closed by who opened it."""


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write: after a crash it is there whole or as it was before, and after an error as it was before."""
    beside = path.with_name(path.name + UNFINISHED)
    try:
        with open(beside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, path)
        sync_directory(path.parent)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise StorageError(f"{path} cannot be written: {error}") from error
        raise


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Writes a file of these parts, whole or not at all."""
    with whole_file(path) as file:
        file.writelines(parts)


def sync_directory(path: Path) -> None:
    """Makes the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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


def check_version(path: Path, version: int) -> None:
    """Refuses a file that another version of the format wrote."""
    if version != VERSION:
        raise StorageError(
            f"{path} has the format version {version}, and this ivme reads version {VERSION}; "
            "open the directory with the ivme that wrote it"
        )
