"""Ordered indexes that count: the value at a position among the copies of a group, under changes and their undoing."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from ivme._kernel import NULL, Kernel
from tests.unit.kernel.programs import OneMap

FRACTIONS = (0.0, 0.1, 0.25, 0.5, 0.9, 1.0)


class Groups:
    """A map of values by group with a counted index, another of how many each group has, and readers of percentiles."""

    def __init__(self) -> None:
        self.kernel = kernel = Kernel(7)
        self.values, self.sizes = kernel.add_map(2, []), kernel.add_map(1, [])
        kernel.add_sorted(self.values, [0], 1, None, True)
        load: Any = ("load", 0, 0, [0, 1], [], [], [], [])
        project: Any = ("project", 1, 0, [0])
        steps: Any = [load, ("add", 0, self.values, ""), project, ("add", 1, self.sizes, "")]
        self.trigger = kernel.add_trigger(2, [], steps)
        self.readers = {
            (function, fraction, descending): kernel.add_reader(
                *(1, 1, [], [], [(self.sizes, [0])]), [(function, self.values, [0, 0], 1, fraction, descending)]
            )
            for function in ("percentile_cont", "percentile_disc")
            for fraction in FRACTIONS
            for descending in (False, True)
        }
        self.model: Counter[tuple[int, int]] = Counter()

    def run(self, batch: list[tuple[int, int, int]]) -> None:
        columns = [np.array([each[i] for each in batch], np.int64) for i in range(3)]
        self.kernel.run(self.trigger, [(columns[:2], columns[2])])

    def listed(self, reader: int, group: int) -> list[tuple[int, int]] | None:
        """What is read of a group, by pairs of a value and its count; None if there is no such group."""
        _, counts, _, extremes = self.kernel.open(reader, [group]).next_block()
        if not len(counts):
            return None
        start, words = int(extremes[0][0]), extremes[1].tolist()
        flat = words[start + 1 : start + 1 + 2 * words[start]]
        return list(zip(flat[::2], flat[1::2], strict=True))

    def check(self) -> None:
        self.kernel.verify()
        for group in {group for group, _ in self.model}:
            copies = sorted(value for (other, value), n in self.model.items() if other == group for _ in range(n))
            known = [value for value in copies if value != NULL]
            for (function, fraction, descending), reader in self.readers.items():
                found = self.listed(reader, group)
                if not copies:
                    assert found is None
                    continue
                assert found is not None
                stands_for = [value for value, n in found for _ in range(n)]
                assert sorted(copies, key=lambda value: value == NULL)[len(known) :] == [
                    value for value in stands_for if value == NULL
                ]
                shown = [value for value in stands_for if value != NULL]
                assert len(known) == len(shown)
                for place in places(function, fraction, len(known)):
                    place = len(known) - 1 - place if descending else place
                    assert known[place] == shown[place]


def places(function: str, fraction: float, count: int) -> list[int]:
    """The positions that a percentile reads, as Spark computes them."""
    if not count:
        return []
    if function == "percentile_disc":
        return [max(0, int(np.ceil(count * fraction)) - 1)]
    position = (count - 1) * fraction
    return [int(np.floor(position)), int(np.ceil(position))]


@pytest.mark.parametrize("seed", range(4))
def test_values_by_position_are_those_of_a_sorted_list(seed: int) -> None:
    source, groups = random.Random(seed), Groups()
    for _ in range(40):
        batch = []
        for _ in range(source.randrange(1, 12)):
            row = source.randrange(3), source.choice([NULL, *range(-8, 9)])
            weight = source.choice([1, 1, 2, -1]) if groups.model[row] else 1
            weight = max(weight, -groups.model[row])
            groups.model[row] += weight
            batch.append((*row, weight))
        groups.run(batch)
        groups.model = +groups.model
        groups.check()


def test_what_is_rolled_back_counts_no_more() -> None:
    groups, source = Groups(), random.Random(5)
    start = [(0, value, 1 + value % 3) for value in range(30)]
    groups.run(start)
    groups.model.update({(group, value): n for group, value, n in start})
    for _ in range(30):
        groups.kernel.begin()
        groups.run([(0, source.randrange(30), source.choice([1, -1, 5])) for _ in range(9)] + [(1, 4, 1)])
        groups.kernel.roll_back()
        groups.check()


def test_an_index_that_counts_may_come_late() -> None:
    one = OneMap(2)
    one.add([[1] * 5, [3, 1, 4, 1, 5]], [1, 2, 1, 1, 1])
    one.kernel.add_sorted(one.map, [0], 1)
    one.kernel.add_sorted(one.map, [0], 1, None, True)
    one.add([[1, 1], [1, 4]], [-2, 3])
    one.kernel.verify()


def test_a_percentile_needs_an_index_that_counts() -> None:
    one = OneMap(2)
    one.kernel.add_sorted(one.map, [0], 1)
    with pytest.raises(ValueError, match="needs an ordered index"):
        one.kernel.add_reader(1, 1, [], [], [], [("percentile_cont", one.map, [0, 0], 1, 0.5, False)])
    one.kernel.add_sorted(one.map, [0], 1, None, True)
    with pytest.raises(ValueError, match="from 0 to 1"):
        one.kernel.add_reader(1, 1, [], [], [], [("percentile_cont", one.map, [0, 0], 1, 1.5, False)])
