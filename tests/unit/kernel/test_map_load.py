"""Whole maps out of a kernel and into another: the same entries, and indexes made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme._kernel import NULL, Kernel, limit_allocations
from tests.unit.kernel.programs import OneMap, column

CHANGES = st.lists(st.tuples(st.tuples(*[st.integers(0, 4)] * 3), st.integers(-2, 2)), max_size=60)


def indexed(one: OneMap) -> None:
    for key, values in [([0], [1, 2]), ([1, 2], [0]), ([0], [1]), ([], [2]), ([2], [])]:
        one.kernel.add_index(one.map, key, values)
    one.kernel.add_sorted(one.map, [0, 2], 1)


def added(one: OneMap, changes: list[Any]) -> None:
    one.add([[row[i] for row, _ in changes] for i in range(3)], [weight for _, weight in changes])


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(CHANGES, CHANGES)
def test_a_map_that_was_loaded_is_the_same_and_goes_on_as_the_other_would(before: Any, after: Any) -> None:
    one, other = OneMap(3), OneMap(3)
    for each in (one, other):
        indexed(each)
    added(one, before)
    other.kernel.load_map(other.map, one.kernel.dump_map(one.map))
    changes: Any
    for changes in ([], after):
        for each in (one, other):
            added(each, changes)
            each.kernel.verify()
        assert one.contents() == other.contents()
        assert one.kernel.digest() == other.kernel.digest()


def test_payloads_with_sums_are_loaded_bit_by_bit() -> None:
    one, other = (OneMap(1, ["i64", "f64"], ["int", "float"]) for _ in range(2))
    bits = np.array([0.1, 5e-324]).view(np.int64)
    one.add([column(1, NULL), column(7, -7), bits], column(1, 2))
    other.kernel.load_map(other.map, one.kernel.dump_map(one.map))
    assert one.contents() == other.contents()
    assert one.kernel.digest() == other.kernel.digest()
    assert 2 * 6 + 1 == len(other.kernel.dump_map(other.map))


def test_a_map_without_columns_has_at_most_one_entry() -> None:
    kernel = Kernel(1)
    number = kernel.add_map(0, [])
    kernel.load_map(number, column(7))
    assert (7,) == kernel.get(number, [])
    with pytest.raises(ValueError, match="there twice"):
        kernel.load_map(kernel.add_map(0, []), column(7, 8))


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (column(1, 2, 1, 1, 2, 5), "there twice"),
        (column(1, 2, 1, 3, 4, 0), "has no count"),
        (column(1, 2, 1, 3), "not those of a map of this shape"),
    ],
)
def test_what_is_no_map_is_refused_and_leaves_no_entry(records: Any, reason: str) -> None:
    one = OneMap(2)
    one.kernel.add_index(one.map, [0], [1])
    one.kernel.add_sorted(one.map, [0], 1)
    with pytest.raises(ValueError, match=reason):
        one.kernel.load_map(one.map, records)
    assert {} == one.contents()
    one.kernel.verify()
    one.add([column(1), column(2)], column(1))
    assert {(1, 2): (1,)} == one.contents()
    with pytest.raises(ValueError, match="without entries"):
        one.kernel.load_map(one.map, column(5, 6, 1))


def test_without_memory_a_map_stays_empty() -> None:
    one, other = OneMap(3), OneMap(3)
    one.add([np.arange(500), np.arange(500) % 7, np.arange(500) % 3], np.ones(500, np.int64))
    indexed(other)
    records = one.kernel.dump_map(one.map)
    for budget in range(1000):
        limit_allocations(budget)
        try:
            other.kernel.load_map(other.map, records)
            break
        except MemoryError:
            assert 0 == other.kernel.size(other.map)
        finally:
            limit_allocations(-1)
        other.kernel.verify()
    assert budget > 3
    other.kernel.verify()
    assert one.contents() == other.contents()


def test_a_map_with_gaps_is_loaded_without_them() -> None:
    one, other = OneMap(1), OneMap(1)
    numbers = np.arange(900)
    one.add([numbers], np.ones(900, np.int64))
    one.add([numbers[numbers % 3 > 0]], np.full(600, -1))
    other.kernel.load_map(other.map, one.kernel.dump_map(one.map))
    assert 300 == other.kernel.size(other.map)
    assert one.contents() == other.contents()
