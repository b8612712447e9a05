"""Objects that only one driver can make, in Hadoop's file systems: written beside their place, and renamed to it.

`FileContext.rename` without OVERWRITE fails if the name is taken; the name node of HDFS does it in one step. So an
object is whole when it has its name, which a `create(overwrite=false)` and writing afterwards would not give.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from ivme.errors import StorageError
from ivme.store.hadoop_store import Create

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TAKEN = "org.apache.hadoop.fs.FileAlreadyExistsException"


def hadoop_create(spark: SparkSession) -> Create:
    """What makes files by the JVM of a classic session."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise StorageError(
            "a checkpoint in Hadoop's file system needs a driver with a JVM of its own, not Spark Connect"
        )
    context: Any = spark.sparkContext
    return lambda address, data: _created(context, address, data)


def _created(context: Any, address: str, data: bytes) -> bool:
    from py4j.protocol import Py4JError, Py4JJavaError

    folder, _, _ = address.rpartition("/")
    try:
        files = _Files(context, address)
        beside = files.path(f"{folder}/.{uuid.uuid4().hex}")
        files.write(beside, data)
        try:
            files.rename(beside, files.path(address))
        except Py4JJavaError as error:
            if error.java_exception.getClass().getName() == _TAKEN:
                return False
            raise
        finally:
            files.delete(beside)
    except Py4JError as error:
        raise StorageError(f"{address} cannot be made: {error}") from error
    return True


class _Files:
    """Hadoop's client for the file system of an address."""

    def __init__(self, context: Any, address: str) -> None:
        self._gateway, self._hadoop = context._gateway, context._jvm.org.apache.hadoop.fs
        where, settings = context._jvm.java.net.URI(address), context._jsc.hadoopConfiguration()
        self._files = self._hadoop.FileSystem.get(where, settings)
        self._context = self._hadoop.FileContext.getFileContext(where, settings)

    def path(self, address: str) -> Any:
        return self._hadoop.Path(address)

    def write(self, path: Any, data: bytes) -> None:
        """Writes a new file, with its folders, and waits until it is on the disks."""
        file = self._files.create(path, False)
        try:
            file.write(bytearray(data))
            file.hsync()
        finally:
            file.close()

    def rename(self, old: Any, new: Any) -> None:
        kind = getattr(self._hadoop, "Options$Rename")
        options = self._gateway.new_array(kind, 1)
        options[0] = kind.NONE
        self._context.rename(old, new, options)

    def delete(self, path: Any) -> None:
        self._files.delete(path, False)
