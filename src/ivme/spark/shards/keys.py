"""Keys that Spark puts into different partitions: it hashes them, and 0 and 1 fall into the same of two."""

from __future__ import annotations

from itertools import count

_MASK = 0xFFFFFFFF


def shard_keys(shards: int) -> list[int]:
    """A key for each shard, so that each of as many partitions gets one.

    >>> shard_keys(2), shard_keys(4)
    ([2, 0], [12, 6, 2, 0])
    """
    found: dict[int, int] = {}
    for key in count():
        found.setdefault(spark_hash(key) % shards, key)
        if len(found) == shards:
            return [found[partition] for partition in range(shards)]
    raise AssertionError


def spark_hash(value: int) -> int:
    """Spark's hash of an integer column: Murmur3 with seed 42, as a signed number.

    >>> spark_hash(1)
    -559580957
    """
    mixed = _rotate(value * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    mixed = (_rotate(42 ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    mixed ^= 4
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _MASK
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _MASK
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed & 0x80000000 else mixed


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
