"""Readers of several branches in the kernel's own form: what they refuse, what they own, and what failing leaves."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from ivme import _kernel
from ivme._kernel import Kernel
from tests.unit.kernel.programs import column


class TwoMaps:
    """The rows of two maps, which overlap: R(A) and S(A), each a branch of its own."""

    def __init__(self, slots: tuple[str, ...] = ()) -> None:
        self.kernel = Kernel(5)
        self.slots = list(slots)
        self.maps = [self.kernel.add_map(1, self.slots) for _ in range(2)]
        lifts = [("float", 1)] if slots else []
        self.fill = [
            self.kernel.add_trigger(1, self.slots, [("load", 0, 0, [0], [], [], [], lifts), ("add", 0, each, "")])
            for each in self.maps
        ]
        self.parts: list[Any] = [([self.loops(each)], [], self.probe(each)) for each in self.maps]
        self.reader = self.kernel.add_union(0, 1, [], self.parts, False, False)

    def loops(self, each: int) -> int:
        return self.kernel.add_reader(0, 1, [0], [(each, [0], [0])], [(each, [0])], [])

    def probe(self, each: int) -> int:
        steps: list[Any] = [
            ("load", 0, 0, [0], [], [], [], []),
            ("join", 1, 0, 0, [(each, [0], True, -1)]),
            ("emit", 1),
        ]
        return self.kernel.add_trigger(2, self.slots, steps)

    def insert(self, number: int, *columns: Any) -> None:
        ones = np.ones(len(columns[0]), np.int64)
        self.kernel.run(self.fill[number], [([np.asarray(c, np.int64) for c in columns], ones)])

    def read(self, size: int = 100, *, whole: bool = False) -> dict[int, int]:
        cursor = self.kernel.open(self.reader, [], whole)
        found: dict[int, int] = {}
        while len((block := cursor.next_block(size))[1]):
            found.update(zip(block[0][0].tolist(), block[1].tolist(), strict=True))
        return found


def test_counts_of_the_branches_are_added_up() -> None:
    two = TwoMaps()
    two.insert(0, [1, 2])
    two.insert(1, [2, 2, 3])
    for found in (two.read(1), two.read(), two.read(whole=True)):
        assert {1: 1, 2: 3, 3: 1} == found


def test_the_parts_are_its_own_from_then_on() -> None:
    two = TwoMaps()
    maps, _, triggers, readers, _ = two.kernel.alive()
    assert (sorted(two.maps), sorted(two.fill), [two.reader]) == (maps, triggers, readers)
    probes = {probe for _, _, probe in two.parts}
    for probe in probes:
        with pytest.raises(IndexError):
            two.kernel.run(probe, [([column(1)], column(1))])


def test_numbers_of_what_is_gone_are_given_again() -> None:
    kernel = Kernel(5)
    first, second, third = (kernel.add_map(1, []) for _ in range(3))
    kernel.drop_map(second)
    with pytest.raises(IndexError, match="no such map"):
        kernel.drop_map(second)
    assert [kernel.add_map(1, []) for _ in range(2)] == [second, third + 1]
    assert kernel.alive()[0] == [first, second, third, third + 1]


def test_a_map_stays_while_a_reader_or_one_of_its_cursors_needs_it() -> None:
    two = TwoMaps()
    two.insert(1, [4])
    cursor = two.kernel.open(two.reader, [])
    for each in two.fill:
        two.kernel.drop_trigger(each)
    two.kernel.drop_reader(two.reader)
    with pytest.raises(ValueError, match="still uses the map"):
        two.kernel.drop_map(two.maps[1])
    assert [4] == cursor.next_block()[0][0].tolist()
    del cursor
    for each in two.maps:
        two.kernel.drop_map(each)


@pytest.mark.parametrize(
    ("inputs", "outputs", "asked", "disjoint", "message"),
    [
        (1, 1, [], False, "a segment takes the inputs"),
        (0, 2, [], False, "the last segment keeps the outputs"),
        (0, 1, [0], False, "an input that is not there"),
    ],
)
def test_parts_that_do_not_fit_are_refused(
    inputs: int, outputs: int, asked: list[int], disjoint: bool, message: str
) -> None:
    two = TwoMaps()
    parts: list[Any] = [([two.loops(each)], [], two.probe(each)) for each in two.maps]
    with pytest.raises(ValueError, match=message):
        two.kernel.add_union(inputs, outputs, asked, parts, disjoint, False)


def test_branches_that_overlap_need_a_probe() -> None:
    two = TwoMaps()
    with pytest.raises(ValueError, match="are probed"):
        two.kernel.add_union(0, 1, [], [([two.loops(each)], [], None) for each in two.maps], False, False)


def test_a_sum_over_branches_that_does_not_fit_is_refused() -> None:
    two = TwoMaps()
    for trigger in two.fill:
        two.kernel.run(trigger, [([column(7)], column(2**62))])
    for whole in (False, True):
        with pytest.raises(_kernel.PayloadOverflow):
            two.read(whole=whole)


@pytest.mark.parametrize("most", [5, 4095, 4097, 30_000, 2**40])
def test_codes_of_every_size_are_added_up_in_any_order(most: int) -> None:
    """Small ones have a table of their places, which grows with the rows; others are hashed, and those below zero."""
    random = np.random.default_rng(most)
    for order in (np.sort, random.permutation):
        two = TwoMaps()
        for number in (0, 1):
            codes = np.concatenate([random.integers(0, most, 9000), [-1, 2**62, -(2**50), most + 1]])
            two.insert(number, order(codes))
        assert two.read(whole=True) == two.read(97)
        assert sum(two.read(whole=True).values()) == 2 * 9004


def test_counts_beyond_64_bits_may_come_back() -> None:
    """Two branches overflow together and a third brings them back: only the whole sum has to fit."""
    two = TwoMaps()
    third = two.kernel.add_map(1, [])
    fill = two.kernel.add_trigger(1, [], [("load", 0, 0, [0], [], [], [], []), ("add", 0, third, "")])
    for code in (7, 2**40):
        for trigger, weight in ((two.fill[0], 2**62), (two.fill[1], 2**62), (fill, -(2**62) - 5)):
            two.kernel.run(trigger, [([column(code)], column(weight))])
    parts: list[Any] = [([two.loops(each)], [], two.probe(each)) for each in (*two.maps, third)]
    two.reader = two.kernel.add_union(0, 1, [], parts, False, False)
    assert two.read(whole=True) == two.read() == {7: 2**62 - 5, 2**40: 2**62 - 5}


def test_sums_of_floats_are_exact_over_branches() -> None:
    """1e300 comes and goes in different branches: what is left is the small number, in each way of reading."""
    codes = np.array([1e300, 3.25, -1e300]).view(np.int64)
    large, small, minus = (int(code) if code >= 0 else int(code) ^ (2**63 - 1) for code in codes)
    two = TwoMaps(("f64",))
    two.insert(0, [1, 1], [large, small])
    two.insert(1, [1], [minus])
    for whole in (False, True):
        _, counts, slots, _ = two.kernel.open(two.reader, [], whole).next_block()
        assert ([3], [3.25]) == (counts.tolist(), slots[0].tolist())
    assert ([[1]], [3], [[3.25]], []) == two.kernel.request(two.reader, [], 5)


@pytest.mark.parametrize("whole", [False, True])
def test_a_read_that_runs_out_of_memory_can_be_repeated(whole: bool) -> None:
    two = TwoMaps()
    two.insert(0, range(3000))
    two.insert(1, range(1500, 4500))
    expected = {a: 1 + (1500 <= a < 3000) for a in range(4500)}
    for budget in [*range(30), 40, 60, 80]:
        _kernel.limit_allocations(budget)
        try:
            two.read(700, whole=whole)
        except MemoryError:
            pass
        finally:
            _kernel.limit_allocations(-1)
        assert expected == two.read(700, whole=whole)


def test_readers_in_several_threads_do_not_disturb_each_other() -> None:
    two = TwoMaps()
    two.insert(0, range(2000))
    two.insert(1, range(1000, 3000))
    expected = {a: 1 + (1000 <= a < 2000) for a in range(3000)}
    found: list[Any] = []

    def read(whole: bool) -> None:
        found.extend(two.read(97, whole=whole) for _ in range(5))

    threads = [threading.Thread(target=read, args=(i % 2 == 0,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [expected] * 30 == found
