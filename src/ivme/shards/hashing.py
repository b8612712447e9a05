"""One 64-bit hash of values that is the same in every process, on every host, at any time.

Shards are found by it, so that it must never change: Python's own hash is salted, and Arrow's and NumPy's are not
promised. Numbers are mixed as they are (SplitMix64); other values are hashed once for each distinct one (BLAKE2b).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ivme.engine.codes.nested_values import comparable

Hashes = npt.NDArray[np.uint64]

_NULL = np.uint64(0x6E756C6C)


def hash_column(values: pa.Array | pa.ChunkedArray) -> Hashes:
    """The hash of each value; equal values of one type have equal hashes. Linear.

    >>> first, second, third = hash_column(pa.array([7, None, 7])).tolist()
    >>> first == third, first == second
    (True, False)
    """
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    array = comparable(array)
    numbers = _numbers(array)
    if numbers is None:
        numbers = _digests(array)
    mixed = mix(numbers)
    if array.null_count:
        mixed[array.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return mixed


def _numbers(array: pa.Array) -> Hashes | None:
    """Values that fit 64 bits, as they are; None for others."""
    types = pa.types
    kind = array.type
    if types.is_null(kind):
        return np.zeros(len(array), np.uint64)
    if types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif types.is_date32(kind):
        array = array.cast(pa.int32())
    elif types.is_timestamp(kind):
        array = array.cast(pa.int64())
    elif not (types.is_integer(kind) or types.is_float64(kind)):
        return None
    filled = array.fill_null(0) if array.null_count else array
    plain = filled.to_numpy(zero_copy_only=False)
    bits: Hashes = plain.view(np.uint64) if plain.dtype == np.float64 else plain.astype(np.int64).view(np.uint64)
    return bits


def _digests(array: pa.Array) -> Hashes:
    """A digest for each distinct value of a string, a decimal or bytes."""
    encoded = array.dictionary_encode()
    distinct = [_digest(value) for value in encoded.dictionary.to_pylist()]
    indices = encoded.indices.fill_null(len(distinct)) if array.null_count else encoded.indices
    found: Hashes = np.array([*distinct, 0], dtype=np.uint64)[indices.to_numpy(zero_copy_only=False)]
    return found


def _digest(value: Any) -> int:
    data = value if isinstance(value, bytes) else str(value).encode()
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def mix(numbers: Hashes, salt: int = 0) -> Hashes:
    """SplitMix64 of each number; different salts give independent hashes."""
    with np.errstate(over="ignore"):
        x = numbers + np.uint64((salt * 2 + 1) * 0x9E3779B97F4A7C15 % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: Hashes = x ^ (x >> np.uint64(31))
    return mixed


def coordinates(hashes: Hashes, variable: str, share: int) -> npt.NDArray[np.int64]:
    """The coordinate of each value in the dimension of a variable; dimensions are independent of each other."""
    salt = int.from_bytes(blake2b(variable.encode(), digest_size=4).digest(), "little")
    return (mix(hashes, salt) % np.uint64(share)).astype(np.int64)


def hash_rows(columns: Sequence[pa.Array | pa.ChunkedArray], rows: int) -> Hashes:
    """The hash of each row of these columns."""
    total = np.zeros(rows, np.uint64)
    for column in columns:
        total = mix(total ^ hash_column(column))
    return total
