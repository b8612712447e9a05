"""Rows for the engines of one shard, in a file: how changes, bulk loads and snapshots travel and rest.

A file is a sequence of parts, each a line of JSON and an Arrow stream. Its digest is kept apart from it, where it is
named; a file that does not fit its digest is refused.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa

from ivme.errors import SparkError


@dataclass(frozen=True, slots=True)
class EngineKey:
    """An engine of a shard: that of a table (`pattern` -1), or of one pattern of one generation of a view."""

    name: str
    generation: int = 0
    pattern: int = -1

    @property
    def is_table(self) -> bool:
        return self.pattern < 0

    def __str__(self) -> str:
        return f"table {self.name}" if self.is_table else f"view {self.name}, pattern {self.pattern}"


@dataclass(frozen=True, slots=True)
class Part:
    """Rows for a table of an engine; the last column has their weights."""

    engine: EngineKey
    table: str
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class PartFile:
    """A file of parts for one shard, by its path under the checkpoint; `rows` is how many rows it has."""

    shard: int
    path: str
    rows: int
    digest: str

    def to_json(self) -> list[Any]:
        return [self.shard, self.path, self.rows, self.digest]


class PartWriter:
    """Writes a file of parts, one after the other; the file is whole once it is closed."""

    def __init__(self, root: Path, path: str, shard: int) -> None:
        self._shard, self._path, self._rows = shard, path, 0
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        self._file = target.open("wb")
        self._hash = blake2b(digest_size=16)

    def write(self, part: Part) -> None:
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, part.rows.schema) as stream:
            stream.write_table(part.rows)
        body = sink.getbuffer()
        key = part.engine
        head = [key.name, key.generation, key.pattern, part.table, len(body)]
        for data in (json.dumps(head).encode() + b"\n", body):
            self._file.write(data)
            self._hash.update(data)
        self._rows += part.rows.num_rows

    def abandon(self) -> None:
        """Closes a file that no step will name."""
        self._file.close()

    def close(self) -> PartFile:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return PartFile(self._shard, self._path, self._rows, self._hash.hexdigest())


def write_parts(root: Path, path: str, shard: int, parts: Iterable[Part]) -> PartFile:
    """Writes one file of parts."""
    writer = PartWriter(root, path, shard)
    for part in parts:
        writer.write(part)
    return writer.close()


def read_parts(root: Path, file: PartFile) -> Iterator[Part]:
    """The parts of a file, after its digest was compared."""
    try:
        data = pa.memory_map(str(root / file.path)).read_buffer() if (root / file.path).stat().st_size else b""
    except OSError as error:
        raise SparkError(f"the checkpoint lacks {file.path}, which its log names: {error}") from error
    view = memoryview(data)
    if blake2b(view, digest_size=16).hexdigest() != file.digest:
        raise SparkError(f"the file {file.path} of the checkpoint is damaged: its digest is not the one that was kept")
    position = 0
    while position < len(view):
        end = position + bytes(view[position : position + 65536]).index(b"\n")
        name, generation, pattern, table, size = json.loads(bytes(view[position:end]))
        body = pa.py_buffer(view[end + 1 : end + 1 + size])
        yield Part(EngineKey(name, generation, pattern), table, pa.ipc.open_stream(body).read_all())
        position = end + 1 + size
