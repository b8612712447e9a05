"""A checkpoint in Hadoop's file system (`hdfs://`): objects are read and written by Arrow, through libhdfs.

What only one writer can make needs a rename that fails if the name is taken, which libhdfs does not promise and
Hadoop's own client does. That client runs in Spark's JVM, beside the driver, and only the driver creates objects:
it brings what makes them (`ivme.spark.shards.hadoop_records`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress

import pyarrow as pa
from pyarrow import fs

from ivme.errors import StorageError
from ivme.store.checkpoint_store import Piece

Create = Callable[[str, bytes], bool]
"""Makes a file of these bytes at an address, whole and durable; False if there is one."""


class HadoopStore:
    """Objects in a folder of one of Hadoop's file systems."""

    def __init__(self, address: str, create: Create | None = None) -> None:
        self.address = address.rstrip("/")
        self._create = create
        try:
            self._files, root = fs.FileSystem.from_uri(self.address)
        except (OSError, ValueError) as error:
            raise StorageError(
                f"the checkpoint {address} cannot be reached: {error}; on every host, libhdfs and Hadoop's jars have "
                "to be found by ARROW_LIBHDFS_DIR, JAVA_HOME and CLASSPATH"
            ) from error
        self._root = root.rstrip("/")

    def created_by(self, create: Create) -> HadoopStore:
        """The same store for a driver."""
        return HadoopStore(self.address, create)

    def create(self, name: str, data: bytes) -> bool:
        if self._create is None:
            raise StorageError(f"{self.address}/{name} can be made by the driver alone, through Spark's JVM")
        return self._create(f"{self.address}/{name}", data)

    def write(self, name: str, pieces: Iterable[Piece]) -> None:
        path = f"{self._root}/{name}"
        folder = path.rpartition("/")[0]
        beside = f"{folder}/.{uuid.uuid4().hex}"
        try:
            self._files.create_dir(folder, recursive=True)
            with self._files.open_output_stream(beside) as file:
                for piece in pieces:
                    file.write(piece)
            with suppress(FileNotFoundError):
                self._files.delete_file(path)
            self._files.move(beside, path)
        except OSError as error:
            raise StorageError(f"{self.address}/{name} cannot be written: {error}") from error

    def read(self, name: str) -> pa.Buffer | None:
        try:
            with self._files.open_input_stream(f"{self._root}/{name}") as file:
                return file.read_buffer()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"{self.address}/{name} cannot be read: {error}") from error

    def list(self, folder: str) -> list[str]:
        try:
            found = self._files.get_file_info(fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True))
        except OSError as error:
            raise StorageError(f"{self.address}/{folder} cannot be listed: {error}") from error
        return sorted(info.base_name for info in found if not info.base_name.startswith("."))

    def delete(self, name: str) -> None:
        path = f"{self._root}/{name}"
        try:
            found = self._files.get_file_info(path).type
            if found == fs.FileType.Directory:
                self._files.delete_dir(path)
            elif found != fs.FileType.NotFound:
                self._files.delete_file(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(f"{self.address}/{name} cannot be removed: {error}") from error
