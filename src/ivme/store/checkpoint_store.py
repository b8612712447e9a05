"""Where checkpoints are stored: named objects in a folder or an object store, some of which only one writer can make.

`create` is what everything rests on: of two writers of one name, one makes the object and the other one learns that it
is there. An object appears whole or not at all.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeAlias
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from ivme.errors import StorageError
from ivme.store import system

_OBJECTS = ("s3", "gs", "az", "abfss")
"""Schemes of object stores that can create an object if it is absent."""

_HADOOP = ("hdfs", "viewfs")
"""Schemes of Hadoop's file systems."""

Piece: TypeAlias = "bytes | pa.Buffer"


class CheckpointStore(Protocol):
    """Objects by name; folders are what comes before a slash. Errors are `StorageError`."""

    address: str

    def create(self, name: str, data: bytes) -> bool:
        """Makes an object, durably, and returns True; returns False if there is one of that name.

        After an error it is not known whether the object was made.
        """

    def write(self, name: str, pieces: Iterable[Piece]) -> None:
        """Makes an object of these bytes, durably, in place of one that is there."""

    def read(self, name: str) -> pa.Buffer | None:
        """The bytes of an object; None if there is none."""

    def list(self, folder: str) -> list[str]:
        """The names of the objects and folders in a folder, sorted, without what is before them."""

    def delete(self, name: str) -> None:
        """Removes an object, or a folder with all that is in it; one that is not there is removed already."""


class FolderStore:
    """A folder, on a local disk or mounted: objects are files, which only their owner may read."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.address = str(root)

    def create(self, name: str, data: bytes) -> bool:
        path = self.root / name
        try:
            whole = self._written(path, [data])
            try:
                os.link(whole, path)
            except FileExistsError:
                return False
            finally:
                whole.unlink()
            system.sync_directory(path.parent)
        except OSError as error:
            raise StorageError(f"{path} cannot be made: {error}") from error
        return True

    def write(self, name: str, pieces: Iterable[Piece]) -> None:
        path = self.root / name
        try:
            self._written(path, pieces).replace(path)
            system.sync_directory(path.parent)
        except OSError as error:
            raise StorageError(f"{path} cannot be written: {error}") from error

    def _written(self, path: Path, pieces: Iterable[Piece]) -> Path:
        """A file beside its place, whole and on the disk; none if that fails."""
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{uuid.uuid4().hex}")
        try:
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        return beside

    def read(self, name: str) -> pa.Buffer | None:
        path = self.root / name
        try:
            return pa.memory_map(str(path)).read_buffer() if path.stat().st_size else pa.py_buffer(b"")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error}") from error

    def list(self, folder: str) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self.root / folder) if not name.startswith("."))
        except FileNotFoundError:
            return []

    def delete(self, name: str) -> None:
        path = self.root / name
        with suppress(FileNotFoundError):
            if path.is_dir():
                for each in os.listdir(path):
                    self.delete(f"{name}/{each}")
                path.rmdir()
            else:
                path.unlink()


def open_checkpoint_store(address: str | Path) -> CheckpointStore:
    """The store of an address: a folder, or one in an object store such as s3://bucket/folder."""
    text = str(address)
    parts = urlsplit(text)
    if parts.scheme == "file":
        return FolderStore(Path(unquote(parts.path)).absolute())
    if parts.scheme in _OBJECTS:
        from ivme.store.object_store import ObjectStore

        return ObjectStore(text)
    if parts.scheme in _HADOOP:
        from ivme.store.hadoop_store import HadoopStore

        return HadoopStore(text)
    if "://" in text:
        known = ", ".join(f"{scheme}://" for scheme in (*_OBJECTS, *_HADOOP))
        raise StorageError(
            f"the checkpoint {text} is on {parts.scheme}, which is not supported; use a folder or {known}"
        )
    return FolderStore(Path(text).absolute())
