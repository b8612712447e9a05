"""Checkpoints in an object store: S3, Google Cloud Storage and Azure, by the package obstore.

`create` is a conditional put, which these stores decide themselves. Keys and endpoints come from the environment, as
for other tools of each store (AWS_REGION, AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, GOOGLE_SERVICE_ACCOUNT, AZURE_...).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pyarrow as pa

from ivme.errors import StorageError
from ivme.extras import require
from ivme.store.checkpoint_store import Piece

Found = TypeVar("Found")


class ObjectStore:
    """The objects below an address such as s3://bucket/folder."""

    def __init__(self, address: str) -> None:
        require("obstore", f"the checkpoint {address}")
        import obstore
        from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
        from obstore.store import from_url

        self.address = address.rstrip("/")
        self._calls = obstore
        self._exists, self._error, self._missing = AlreadyExistsError, BaseError, (NotFoundError, FileNotFoundError)
        self._store: Any = self._tried("opened", lambda: from_url(self.address))

    def create(self, name: str, data: bytes) -> bool:
        def made() -> bool:
            try:
                self._calls.put(self._store, name, data, mode="create")
            except (self._exists, FileExistsError):
                return False
            return True

        return self._tried(f"written: {name}", made)

    def write(self, name: str, pieces: Iterable[Piece]) -> None:
        data = b"".join(pieces)
        self._tried(f"written: {name}", lambda: self._calls.put(self._store, name, data))

    def read(self, name: str) -> pa.Buffer | None:
        def found() -> pa.Buffer | None:
            try:
                return pa.py_buffer(bytes(self._calls.get(self._store, name).bytes()))
            except self._missing:
                return None

        return self._tried(f"read: {name}", found)

    def list(self, folder: str) -> list[str]:
        found = self._tried(f"listed: {folder}", lambda: self._calls.list_with_delimiter(self._store, f"{folder}/"))
        paths = [*(each["path"] for each in found["objects"]), *found["common_prefixes"]]
        return sorted(path.rstrip("/").rsplit("/", 1)[-1] for path in paths)

    def delete(self, name: str) -> None:
        def gone() -> None:
            below = [each["path"] for batch in self._calls.list(self._store, f"{name}/") for each in batch]
            for path in [*below, name]:
                try:
                    self._calls.delete(self._store, path)
                except self._missing:
                    continue

        self._tried(f"deleted: {name}", gone)

    def _tried(self, what: str, call: Callable[[], Found]) -> Found:
        try:
            return call()
        except (self._error, OSError, ValueError) as error:
            raise StorageError(f"{self.address} cannot be {what}: {error}") from error
