"""The calls to the operating system by which the store reads and writes files, and nothing else.

Every file of a directory is read, written, synced, renamed and removed by these functions, so that the tests can put a
file system in their place that fails, forgets what was not synced, and cuts writes short.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def read(path: Path) -> bytes:
    """The bytes of a file."""
    return path.read_bytes()


def create(path: Path) -> int:
    """A descriptor of an empty file, new or emptied."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)


def open_to_write(path: Path) -> int:
    """A descriptor of a file that is there."""
    return os.open(path, os.O_WRONLY)


def write(descriptor: int, data: Any, place: int) -> int:
    """Writes at a place of a file; how many bytes were written, which may be fewer than there are."""
    return os.pwrite(descriptor, data, place)


def truncate(descriptor: int, size: int) -> None:
    """Cuts a file to a size."""
    os.ftruncate(descriptor, size)


def sync(descriptor: int) -> None:
    """Makes the contents of a file durable."""
    os.fsync(descriptor)


def sync_data(descriptor: int) -> None:
    """Makes the contents and the size of a file durable."""
    os.fdatasync(descriptor)


def close(descriptor: int) -> None:
    """Gives a descriptor back."""
    os.close(descriptor)


def rename(old: Path, new: Path) -> None:
    """Gives a file another name, in place of the file that has that name."""
    os.rename(old, new)


def remove(path: Path) -> None:
    """Removes a file."""
    os.unlink(path)


def sync_directory(path: Path) -> None:
    """Makes the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
