"""The calls to the operating system by which the store reads and writes files, and nothing else.

Every file of a directory is read, written, synced, renamed and removed by these functions, so that the tests can put a
file system in their place that fails, forgets what was not synced, and cuts writes short.

Linux, macOS and Windows differ here: macOS syncs to the disk itself only when F_FULLFSYNC asks for it, and has no
fdatasync; Windows has neither pwrite nor descriptors of directories, whose names NTFS logs by itself.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_BINARY = getattr(os, "O_BINARY", 0)
"""On Windows: bytes are written as they are, without line ends of its own."""

_LOCKED_PLACE = 1 << 20
"""The byte that is locked on Windows, behind all that a lock file has: locked bytes cannot be read there."""


def read(path: Path) -> bytes:
    """The bytes of a file."""
    return path.read_bytes()


def create(path: Path) -> int:
    """A descriptor of an empty file, new or emptied."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY, 0o644)


def open_to_write(path: Path) -> int:
    """A descriptor of a file that is there."""
    return os.open(path, os.O_WRONLY | _BINARY)


def write(descriptor: int, data: Any, place: int) -> int:
    """Writes at a place of a file; how many bytes were written, which may be fewer than there are."""
    if hasattr(os, "pwrite"):
        return os.pwrite(descriptor, data, place)
    os.lseek(descriptor, place, os.SEEK_SET)
    return os.write(descriptor, data)


def truncate(descriptor: int, size: int) -> None:
    """Cuts a file to a size."""
    os.ftruncate(descriptor, size)


def sync(descriptor: int) -> None:
    """Makes the contents of a file durable."""
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def sync_data(descriptor: int) -> None:
    """Makes the contents and the size of a file durable."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        sync(descriptor)


def close(descriptor: int) -> None:
    """Gives a descriptor back."""
    os.close(descriptor)


def rename(old: Path, new: Path) -> None:
    """Gives a file another name, in place of the file that has that name."""
    os.replace(old, new)


def remove(path: Path) -> None:
    """Removes a file."""
    os.unlink(path)


def sync_directory(path: Path) -> None:
    """Makes the names in a directory durable."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(descriptor: int) -> None:
    """Locks a file until its descriptor is closed; BlockingIOError if another process, or this one, has locked it."""
    if sys.platform == "win32":
        os.lseek(descriptor, _LOCKED_PLACE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from error
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
