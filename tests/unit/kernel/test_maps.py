"""Indexed maps: what they hold, what they cost, and that crafted keys do not hurt them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme._kernel import NULL, Dictionary, Kernel
from tests.example_counts import examples
from tests.unit.kernel.programs import OneMap, column

Changes = list[tuple[tuple[int, int, int], int]]
CHANGES = st.lists(st.tuples(st.tuples(*[st.integers(0, 4)] * 3), st.integers(-2, 2)), max_size=30)


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(st.lists(CHANGES, max_size=8), st.integers(0, 4))
def test_maps_and_all_kinds_of_indexes_follow_a_counter(batches: list[Changes], late: int) -> None:
    one, model = OneMap(3), Counter[Any]()
    for number, batch in enumerate(batches):
        if number == late:  # an index may come when there are entries already
            for key, values in [([0], [1, 2]), ([1, 2], [0]), ([0], [1]), ([], [2]), ([2], [])]:
                one.kernel.add_index(one.map, key, values)
            one.kernel.add_sorted(one.map, [0, 2], 1)
            one.kernel.add_sorted(one.map, [0, 1], 2, None, True)
        one.add([[row[i] for row, _ in batch] for i in range(3)], [weight for _, weight in batch])
        for row, weight in batch:
            model[row] += weight
        one.kernel.verify()
        assert {row: (n,) for row, n in model.items() if n} == one.contents()


def test_rows_that_cancel_within_a_batch_never_arrive() -> None:
    one = OneMap(1, ["i64"], ["int"])
    one.add([column(1), column(5)], column(1))
    one.add([column(1, 1), column(7, 7)], column(-1, 1))
    assert one.contents() == {(1,): (1, 5)}


def test_a_row_with_weight_zero_is_nothing() -> None:
    one = OneMap(2)
    one.add([column(1), column(1)], column(0))
    assert one.kernel.size(one.map) == 0


@pytest.mark.parametrize("stride", [1, 2**20, 2**32, 2**44, -(2**40)])
def test_keys_with_equal_low_or_high_bits_do_not_degrade(stride: int) -> None:
    """A hash table with long probe sequences would take minutes here and not milliseconds."""
    n = 200_000
    one = OneMap(1)
    one.insert(np.arange(n, dtype=np.int64) * stride)
    assert n == one.kernel.size(one.map)


def test_seeds_differ_in_where_they_put_keys() -> None:
    """Nothing but the digest, which does not depend on the seed, is the same."""
    kernels = [Kernel(seed) for seed in (1, 2)]
    for kernel in kernels:
        stored = kernel.add_map(1, [])
        trigger = kernel.add_trigger(1, [], [("load", 0, 0, [0], [], [], [], []), ("add", 0, stored, "")])
        kernel.run(trigger, [([np.arange(100)], np.ones(100, np.int64))])
    assert kernels[0].digest() == kernels[1].digest()


def test_a_map_gives_memory_back_after_deletes() -> None:
    n = 300_000
    one = OneMap(2)
    one.kernel.add_index(one.map, [0], [1])
    one.kernel.add_index(one.map, [], [0])
    rows = np.arange(n) % 1000, np.arange(n)
    one.insert(*rows)
    full = one.kernel.memory_bytes()
    for start in range(100, n, 10_000):
        one.delete(*(c[start : start + 10_000] for c in rows))
    one.kernel.verify()
    assert one.kernel.size(one.map) == 100
    assert one.kernel.memory_bytes() < full / 10


def test_one_group_that_grows_and_shrinks_keeps_its_memory_near_its_size() -> None:
    one = OneMap(2)
    one.kernel.add_index(one.map, [0], [1])
    for _ in range(3):
        one.insert(np.zeros(50_000), np.arange(50_000))
        one.delete(np.zeros(50_000), np.arange(50_000))
    one.kernel.verify()
    assert one.kernel.memory_bytes() < 50_000 * 120


@pytest.mark.parametrize("n", [10_000, 100_000, 419_431, 840_000, 1_000_000])
@pytest.mark.parametrize("groups", [1.0, 0.1])
def test_a_tuple_with_one_index_takes_at_most_120_bytes(n: int, groups: float) -> None:
    one = OneMap(2)
    one.kernel.add_index(one.map, [0], [1])
    for start in range(0, n, 10_000):
        rows = np.arange(start, min(n, start + 10_000))
        one.insert(rows % int(n * groups), rows)
    scratch = 1_200_000  # registers of a batch of 10,000 and the undo log, whatever the size of the map
    assert (one.kernel.memory_bytes() - scratch) / n <= 120


def test_a_map_of_no_columns_is_one_number() -> None:
    one = OneMap(0)
    one.kernel.run(one.trigger, [([], column(3, 4))])
    assert one.kernel.get(one.map, []) == (7,)
    one.kernel.run(one.trigger, [([], column(-7))])
    assert one.kernel.get(one.map, []) is None
    one.kernel.verify()


def test_a_map_that_a_trigger_uses_cannot_be_dropped() -> None:
    one = OneMap(1)
    with pytest.raises(ValueError, match="still uses"):
        one.kernel.drop_map(one.map)
    one.kernel.drop_trigger(one.trigger)
    one.kernel.drop_map(one.map)
    with pytest.raises(IndexError):
        one.kernel.size(one.map)


def test_steps_that_make_no_sense_are_refused_when_they_are_given() -> None:
    kernel = Kernel(1)
    stored = kernel.add_map(2, [])
    load: Any = ("load", 0, 0, [0, 1], [], [], [], [])
    wrong: list[Any] = [
        [("add", 0, stored, "")],
        [load, load],
        [("load", 0, 0, [0], [], [], [], []), ("add", 0, stored, "")],
        [load, ("join", 1, 0, 1, [(stored, [0, 2], True, -1)])],
        [load, ("project", 1, 0, [2])],
        [load, ("dance", 0)],
        [("load", 0, 0, [0], [], [], [], [("sideways", 0)])],
    ]
    for steps in wrong:
        with pytest.raises(ValueError, match=r"\w"):
            kernel.add_trigger(2, ["i64"], steps)
    with pytest.raises(ValueError, match="lacks columns"):
        kernel.run(kernel.add_trigger(1, [], [load]), [([column(1)], column(1))])


def test_ordered_indexes_find_extremes_by_number_and_by_string() -> None:
    kernel, strings = Kernel(5), Dictionary(5)
    stored = kernel.add_map(2, [])
    kernel.add_sorted(stored, [0], 1, strings)
    kernel.add_index(stored, [0], [1])
    trigger = kernel.add_trigger(1, [], [("load", 0, 0, [0, 1], [], [], [], []), ("add", 0, stored, "")])
    extremes = [(f, stored, [0, 0], 1, 0.0, False) for f in ("min", "max", "count_distinct")]
    reader = kernel.add_reader(1, 1, [], [], [], extremes)
    words = ["pear", "apple", "fig", "quince", "élan"]
    codes = strings.encode(words)
    rows: Any = [np.zeros(6, np.int64), np.append(codes, NULL)]
    kernel.run(trigger, [(rows, np.ones(6, np.int64))])
    least, greatest, distinct = (c.tolist()[0] for c in kernel.open(reader, [0]).next_block()[3])
    assert (strings.decode_one(least), strings.decode_one(greatest), distinct) == ("apple", "élan", 5)
    kernel.run_one(trigger, (0, int(codes[1])), -1)
    assert strings.decode_one(int(kernel.open(reader, [0]).next_block()[3][0][0])) == "fig"
    assert kernel.open(reader, [1]).next_block()[3][0][0] == NULL
