"""Tables as columns: rows come, go, and come back when a transaction is rolled back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme._kernel import BrokenCheck, Kernel
from tests.example_counts import examples

Row = tuple[int, ...]


class Table:
    """A heap behind its trigger."""

    def __init__(self, columns: int, key: Sequence[int] = (), *, ring: bool = False) -> None:
        self.columns = columns
        self.kernel = Kernel(7)
        self.heap = self.kernel.add_heap(columns, list(key))
        self.trigger = self.kernel.add_trigger(0, [], [("store", 0, list(range(columns)), self.heap, ring)])

    def change(self, changes: Iterable[tuple[Row, int]]) -> None:
        listed = list(changes)
        columns = [np.array([row[i] for row, _ in listed], dtype=np.int64) for i in range(self.columns)]
        weights = np.array([weight for _, weight in listed], dtype=np.int64)
        self.kernel.run(self.trigger, [(columns, weights)])

    def rows(self) -> Counter[Row]:
        columns, weights = self.kernel.heap_rows(self.heap, list(range(self.columns)))
        total: Counter[Row] = Counter()
        for row, weight in zip(zip(*(c.tolist() for c in columns), strict=True), weights.tolist(), strict=True):
            total[row] += weight
        return Counter({row: weight for row, weight in total.items() if weight})


def test_rows_that_only_come_are_appended_and_found_later() -> None:
    table = Table(2)
    table.change([((1, 2), 1), ((1, 2), 2), ((3, 4), 1)])
    assert not table.kernel.heap_is_distinct(table.heap)
    assert 3 == table.kernel.heap_size(table.heap)
    assert 3 == table.kernel.heap_weight(table.heap, [1, 2])
    assert table.kernel.heap_is_distinct(table.heap)
    assert 2 == table.kernel.heap_size(table.heap)
    assert Counter({(1, 2): 3, (3, 4): 1}) == table.rows()


def test_only_the_wanted_columns_are_read() -> None:
    table = Table(3)
    table.change([((1, 2, 3), 1), ((4, 5, 6), 1)])
    columns, weights = table.kernel.heap_rows(table.heap, [2, 0])
    assert [[3, 6], [1, 4]] == [column.tolist() for column in columns]
    assert [1, 1] == weights.tolist()


def test_what_is_not_there_cannot_go() -> None:
    table = Table(2)
    table.change([((1, 2), 1)])
    with pytest.raises(BrokenCheck) as caught:
        table.change([((5, 6), 1), ((1, 2), -2)])
    assert ("present", (1, 2)) == (caught.value.args[0], tuple(caught.value.args[1]))
    assert Counter({(1, 2): 1}) == table.rows()


def test_a_row_may_be_replaced_by_one_of_its_key_in_any_order() -> None:
    table = Table(2, [0])
    table.change([((1, 2), 1)])
    table.change([((1, 3), 1), ((1, 2), -1)])
    assert Counter({(1, 3): 1}) == table.rows()
    table.change([((1, 4), 1), ((1, 4), -1), ((1, 3), -1), ((1, 5), 1)])
    assert Counter({(1, 5): 1}) == table.rows()


@pytest.mark.parametrize("changes", [[((1, 9), 1)], [((2, 1), 2)], [((2, 1), 1), ((2, 2), 1)]])
def test_a_key_has_one_row(changes: list[tuple[Row, int]]) -> None:
    table = Table(2, [0])
    table.change([((1, 2), 1)])
    with pytest.raises(BrokenCheck) as caught:
        table.change(changes)
    assert ("unique", (changes[0][0][0],)) == (caught.value.args[0], tuple(caught.value.args[1]))
    assert Counter({(1, 2): 1}) == table.rows()


def test_a_delete_of_a_key_with_other_values_is_refused() -> None:
    table = Table(2, [0])
    table.change([((1, 2), 1)])
    with pytest.raises(BrokenCheck, match="present"):
        table.change([((1, 3), -1)])


def test_tables_may_have_more_than_64_columns() -> None:
    table = Table(200)
    wide = tuple(range(200))
    table.change([(wide, 2)])
    table.change([(wide, -1), ((*wide[:-1], 7), 1)])
    assert Counter({wide: 1, (*wide[:-1], 7): 1}) == table.rows()


def test_memory_is_given_back_when_most_rows_are_gone() -> None:
    table = Table(2)
    table.change([((i, i), 1) for i in range(100_000)])
    table.change([((i, i), -1) for i in range(99_990)])
    assert 10 == table.kernel.heap_size(table.heap)
    assert table.kernel.memory_bytes() < 1_000_000
    table.change([((i, i), -1) for i in range(99_990, 100_000)])
    assert Counter() == table.rows()


def test_a_table_that_a_trigger_changes_is_not_dropped() -> None:
    table = Table(1)
    with pytest.raises(ValueError, match="trigger"):
        table.kernel.drop_heap(table.heap)
    table.kernel.drop_trigger(table.trigger)
    table.kernel.drop_heap(table.heap)
    assert [] == table.kernel.alive()[4]


VALUES = st.integers(0, 3)
ROWS = st.tuples(VALUES, VALUES)
BATCHES = st.lists(
    st.tuples(st.lists(st.tuples(ROWS, st.sampled_from([1, 1, 2, -1, -1, -2])), max_size=6), st.booleans()), max_size=12
)


@settings(max_examples=examples(300), deadline=None)
@given(key=st.sampled_from([(), (0,), (0, 1)]), ring=st.booleans(), batches=BATCHES, looks=st.lists(ROWS, max_size=3))
def test_tables_follow_a_counter(
    key: tuple[int, ...], ring: bool, batches: list[tuple[list[tuple[Row, int]], bool]], looks: list[Row]
) -> None:
    """Batches of one or several changes within a transaction, which is committed or rolled back."""
    table, known = Table(2, key, ring=ring), Counter[Row]()
    for changes, commits in batches:
        after = Counter(known)
        half = len(changes) // 2
        table.kernel.begin()
        ended = False
        for part in (changes[:half], changes[half:]):
            for row, weight in part:
                after[row] += weight
            try:
                table.change(part)
                assert _is_right(after, key, ring)
            except BrokenCheck:
                assert not _is_right(after, key, ring)
                ended = True
                break
            if looks and not key:
                assert after[looks[0]] == table.kernel.heap_weight(table.heap, list(looks[0]))
        if not ended and commits:
            table.kernel.commit()
            known = Counter({row: weight for row, weight in after.items() if weight})
        elif not ended:
            table.kernel.roll_back()
        assert known == table.rows()
        table.kernel.verify()


def _is_right(rows: Counter[Row], key: tuple[int, ...], ring: bool) -> bool:
    if key:
        keys = Counter[Row]()
        for row, weight in rows.items():
            keys[tuple(row[i] for i in key)] += weight
        return all(weight in (0, 1) for weight in rows.values()) and all(count in (0, 1) for count in keys.values())
    return ring or all(weight >= 0 for weight in rows.values())


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from([1, 1, 1, -1])), max_size=400), st.booleans())
def test_rows_survive_compaction(changes: list[tuple[int, int]], keyed: bool) -> None:
    """Deletes of many rows around the others."""
    table, known = Table(2, [0] if keyed else []), Counter[Row]()
    table.change([((1000 + i, i), 1) for i in range(3000)])
    for value, weight in changes:
        row = (value, value * 2)
        if known[row] + weight not in (0, 1):
            continue
        table.change([(row, weight)])
        known[row] += weight
    table.change([((1000 + i, i), -1) for i in range(3000)])
    table.kernel.verify()
    assert +known == table.rows()


def test_a_key_that_comes_twice_in_a_batch_leaves_nothing_of_it() -> None:
    table = Table(2, key=[0])
    table.change([((number, 0), 1) for number in range(10)])
    with pytest.raises(BrokenCheck, match="unique"):
        table.change([((number % 40 + 10, 1), 1) for number in range(50)])
    assert Counter({(number, 0): 1 for number in range(10)}) == table.rows()
    table.change([((number, 2), 1) for number in range(10, 60)])
    table.change([((number, 0), -1) for number in range(10)])
    assert Counter({(number, 2): 1 for number in range(10, 60)}) == table.rows()


def test_rows_are_found_by_their_keys_also_after_they_moved() -> None:
    table = Table(3, key=[0, 2])
    table.change([((number, 7, number % 5), 1) for number in range(5000)])
    _, moves = table.kernel.heap_places(table.heap)
    table.change([((number, 7, number % 5), -1) for number in range(4000)])
    assert (1000, moves + 1) == table.kernel.heap_places(table.heap)
    keys = [np.array([4000, 17, 4999, 4001]), np.array([0, 2, 4, 3])]
    found = table.kernel.heap_rows_of_keys(table.heap, keys)
    assert [[4000, 4999], [7, 7], [0, 4]] == [column.tolist() for column in found]
    with pytest.raises(ValueError, match="a column for each"):
        table.kernel.heap_rows_of_keys(table.heap, keys[:1])


def test_weights_are_taken_down_in_a_byte_each() -> None:
    table = Table(1, ring=True)
    table.change([((1,), 1), ((2,), 254), ((3,), 255), ((4,), 2**40)])
    table.change([((1,), -1), ((5,), -3)])
    small, places, large = table.kernel.heap_small_weights(table.heap)
    assert [0, 254, 255, 255, 255] == small.tolist()
    assert [2, 3, 4] == places.tolist()
    assert [255, 2**40, -3] == large.tolist()
    assert [254, 255] == table.kernel.heap_weights(table.heap, 1, 3).tolist()
    assert [2, 3] == table.kernel.heap_column(table.heap, 0, 1, 3).tolist()


@pytest.mark.parametrize("there", [0, 1, 500])
@pytest.mark.parametrize("again", [0, 20, 39])
def test_a_key_that_comes_twice_behind_rows_in_order_is_refused(there: int, again: int) -> None:
    table = Table(2, [0])
    table.change([((-there + i, 0), 1) for i in range(there)])
    with pytest.raises(BrokenCheck) as caught:
        table.change([((i, 1), 1) for i in [*range(40), again, 50]])
    assert ("unique", (again,)) == (caught.value.args[0], tuple(caught.value.args[1]))
    assert there == len(table.rows())
    table.kernel.verify()
