"""Hash tables that grow while rows come and go: what they hold at every size, in the middle of growing too."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ivme._kernel import BrokenCheck
from tests.unit.kernel.programs import OneMap
from tests.unit.kernel.test_heap import Table

LEAST = 6_000
"""Up to 4,096 slots, tables grow at once."""


def columns(rows: list[tuple[int, int]]) -> list[np.ndarray]:
    return [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("seed", range(3))
def test_maps_that_grow_follow_a_set(seed: int) -> None:
    rng = random.Random(seed)
    one = OneMap(2)
    one.kernel.add_index(one.map, [1], [0])
    there: set[tuple[int, int]] = set()
    fresh = 0
    while len(there) < LEAST:
        size = rng.choice([1, 3, 40, 700])
        if there and rng.random() < 0.35:
            gone = rng.sample(sorted(there), min(size, len(there)))
            one.add(columns(gone), [-1] * len(gone))
            there.difference_update(gone)
            continue
        rows = [(fresh + i, rng.randrange(500)) for i in range(size)]
        fresh += size
        if rng.random() < 0.3:  # taken back, which needs no memory
            one.kernel.begin()
            one.add(columns(rows), [1] * size)
            one.kernel.roll_back()
            continue
        one.add(columns(rows), [1] * size)
        there.update(rows)
        if rng.random() < 0.1:
            one.kernel.verify()
    one.kernel.verify()
    assert dict.fromkeys(there, (1,)) == one.contents()


@pytest.mark.parametrize("seed", range(3))
def test_keys_of_a_table_that_grows_are_found(seed: int) -> None:
    rng = random.Random(seed)
    table = Table(2, [0])
    there: dict[int, int] = {}
    fresh = 0
    while len(there) < LEAST:
        size = rng.choice([1, 2, 64, 65, 900])
        if there and rng.random() < 0.3:
            gone = rng.sample(sorted(there), min(size, len(there)))
            table.change([((key, there.pop(key)), -1) for key in gone])
        else:
            rows = {fresh + i: rng.randrange(100) for i in range(size)}
            fresh += size
            table.change([(row, 1) for row in rows.items()])
            there.update(rows)
        key = rng.choice(sorted(there)) if there else None
        if key is not None:
            with pytest.raises(BrokenCheck):
                table.change([((key, 5), 1)])
            found = table.kernel.heap_rows_of_keys(table.heap, [np.array([key, -1], dtype=np.int64)])
            assert [[key], [there[key]]] == [column.tolist() for column in found]
    table.kernel.verify()
    assert set(there.items()) == set(table.rows())
