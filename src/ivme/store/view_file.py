"""The file of the views' maps: an image of them beside a snapshot of the tables, to be loaded in place of being built.

It is a sequence of Arrow streams. The metadata of each stream's schema says what it holds: first what the file is, then
the values of each dictionary, then the records of each map, by the checksum of its definition. It holds codes, and
words as the kernel has them, so that another version of ivme, or one without the compiled kernel, cannot use it; the
tables' files have everything that it says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ivme import __version__
from ivme.engine.backend import Backend
from ivme.engine.native_backend import NativeBackend
from ivme.engine.runtime.image import Image
from ivme.errors import DamagedError, StorageError
from ivme.query.types import parse_type
from ivme.store.files import digest, free_name, read, whole_file
from ivme.store.snapshot import Manifest, ViewFile

FORMAT = 3
"""To be raised whenever codes, payloads or the definitions of maps come to mean something else."""

MADE_BY = f"ivme {__version__}, maps {FORMAT}"

_CHUNK = 2**17
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


def write_image(directory: Path, identity: str, last: int, image: Image) -> ViewFile:
    """Writes the image of the views when record `last` was the last."""
    name = free_name(directory, f"views-{last:012}", ".arrow")
    with whole_file(directory / name) as sink:
        for described, values in _parts(identity, last, image):
            schema = pa.schema([pa.field("values", values.type)], {"ivme": json.dumps(described)})
            with pa.ipc.new_stream(pa.PythonFile(sink, "w"), schema, options=_COMPRESSED) as writer:
                writer.write_table(pa.Table.from_arrays([values], schema=schema), _CHUNK)
    return ViewFile(name, sink.sum.hexdigest(), sink.size, MADE_BY)


def _parts(identity: str, last: int, image: Image) -> Iterator[tuple[dict[str, Any], pa.Array]]:
    yield {"database": identity, "last": last, "balances": image.balances}, pa.array([], pa.int64())
    for type_, values in image.values.items():
        yield {"dictionary": str(type_)}, values
    for key in tuple(image.maps):
        yield {"map": key}, pa.array(image.maps.pop(key))


def read_image(directory: Path, manifest: Manifest, backend: Backend) -> Image | None:
    """The image of a snapshot; None if there is none. `StorageError` says why one that is there cannot be used."""
    stored = manifest.image
    if stored is None:
        return None
    path = directory / stored.file
    if stored.made_by != MADE_BY:
        raise StorageError(f"{path} is of {stored.made_by}, and this is {MADE_BY}")
    if not isinstance(backend, NativeBackend):
        raise StorageError(f"{path} is for the compiled kernel, which is missing")
    if not path.exists():
        raise StorageError(f"{path} is missing")
    data = read(path)
    if digest(data).hex() != stored.checksum:
        raise DamagedError(f"{path} is damaged: its checksum does not fit; remove it, as the tables have what it holds")
    try:
        return _read(data, manifest)
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise DamagedError(
            f"{path} is damaged: it is not in the format of this version of ivme: {error!r}; remove it"
        ) from error


def _read(data: bytes, manifest: Manifest) -> Image:
    image = Image({}, {}, {})
    source = pa.BufferReader(data)
    while source.tell() < len(data):
        with pa.ipc.open_stream(source) as stream:
            described = json.loads(stream.schema.metadata[b"ivme"])
            values = stream.read_all().column(0)
        if "database" in described:
            if (described["database"], described["last"]) != (manifest.identity, manifest.last):
                raise ValueError("it belongs to another snapshot")
            image.balances = described["balances"]
        elif "dictionary" in described:
            image.values[parse_type(described["dictionary"])] = values.combine_chunks()
        else:
            image.maps[described["map"]] = np.ascontiguousarray(values.to_numpy())
    return image
