"""Columns of tables are as wide as their codes need; what they hold never depends on it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ivme._kernel import BrokenCheck, Kernel

NULL = -(2**63)
RANGES = [(0, 3), (-3, 250), (0, 70_000), (-(2**31), 2**33), (2**40, 2**40 + 300), (-(2**63) + 1, 2**63 - 1)]


def code(rng: random.Random) -> int:
    least, most = rng.choice(RANGES)
    return NULL if rng.random() < 0.1 else rng.randint(least, most)


def heap(kernel: Kernel, columns: int) -> tuple[int, int]:
    number = kernel.add_heap(columns, [0])
    return number, kernel.add_trigger(0, (), [("store", 0, list(range(columns)), number, False)])


def change(kernel: Kernel, trigger: int, rows: list[tuple[int, ...]], weight: int) -> None:
    columns = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
    kernel.run(trigger, [(columns, np.full(len(rows), weight, dtype=np.int64))])


@pytest.mark.parametrize("seed", range(8))
def test_rows_come_and_go_whatever_their_width(seed: int) -> None:
    rng = random.Random(seed)
    kernel = Kernel(seed)
    number, trigger = heap(kernel, 3)
    there: dict[int, tuple[int, ...]] = {}
    ranges = rng.sample(RANGES, 3)
    for step in range(60):
        if there and rng.random() < 0.3:
            gone = rng.sample(sorted(there), min(len(there), 20))
            change(kernel, trigger, [there.pop(key) for key in gone], -1)
        elif there and rng.random() < 0.2:  # refused, and taken back, though it made columns wider
            twice: list[tuple[int, ...]] = [(10**6, code(rng), code(rng)), (next(iter(there)), NULL, NULL)]
            with pytest.raises(BrokenCheck):
                change(kernel, trigger, twice, 1)
        else:
            least, most = ranges[step * 3 // 60]
            keys = [step * 1000 + i for i in range(rng.choice([1, 7, 300]))]
            rows: list[tuple[int, ...]] = [(key, rng.randint(least, most), code(rng)) for key in keys]
            change(kernel, trigger, rows, 1)
            there.update({row[0]: row for row in rows})
        kernel.verify()
        columns, weights = kernel.heap_rows(number)
        assert set(there.values()) == set(zip(*(column.tolist() for column in columns), strict=True))
        assert weights.tolist() == [1] * len(there)


def test_small_codes_take_a_byte() -> None:
    kernel = Kernel(1)
    _, trigger = heap(kernel, 9)
    before = kernel.memory_bytes()
    change(kernel, trigger, [(key, *[key % 100] * 8) for key in range(50_000)], 1)
    taken = (kernel.memory_bytes() - before) / 50_000
    assert (
        taken < 8 * 1.3 + 8 * 1.3 + 4 + 8 * 2.7
    )  # eight bytes for columns, a weight, a key, and its place in the index
