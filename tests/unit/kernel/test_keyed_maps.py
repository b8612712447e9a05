"""Maps that are hashed by a key do what others do, however many entries a key has, and need no index by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme._kernel import Kernel, limit_allocations
from tests.example_counts import examples
from tests.unit.kernel.programs import OneMap, Path, column

BATCHES = st.lists(
    st.tuples(
        st.booleans(),
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([1, 1, 2, -1])), max_size=12),
        st.booleans(),
    ),
    max_size=12,
)
"""For R or S: rows with weights, and whether the batch is rolled back."""


def rows_of(path: Path) -> list[Any]:
    """What Q has, what a reader of S by its key finds, and what a guard by the key lets pass."""
    columns, counts, _ = path.kernel.scan(path.q)
    found = [sorted(zip(*(c.tolist() for c in columns), counts.tolist(), strict=True))]
    for reader in (reader_by_key(path), guarded(path)):
        numbers, (outputs, weights, _, _) = split(path.kernel.request_many(reader, [np.arange(5)]))
        found.append(sorted(zip(numbers.tolist(), *(c.tolist() for c in outputs), weights.tolist(), strict=True)))
        path.kernel.drop_reader(reader)
    return found


def split(answer: Any) -> Any:
    return answer[0], answer[1:]


def reader_by_key(path: Path) -> int:
    return path.kernel.add_reader(1, 2, [1], [(path.s, [0, 1], [1])], [(path.s, [0, 1])], [])


def guarded(path: Path) -> int:
    return path.kernel.add_reader(1, 1, [], [], [], [], [(path.s, [0], [0])])


@settings(max_examples=examples(150), deadline=None)
@given(BATCHES)
def test_a_join_with_a_keyed_map_is_that_with_an_index(batches: Any) -> None:
    plain, keyed = Path(), Path(keyed=True)
    for of_s, rows, is_undone in batches:
        before = [path.kernel.digest() for path in (plain, keyed)]
        for path in (plain, keyed):
            path.kernel.begin()
            for b, c, weight in rows:
                path.apply(path.on_s if of_s else path.on_r, [b], [c], weight)
            path.kernel.verify()
            if is_undone:
                path.kernel.roll_back()
            else:
                path.kernel.commit()
            path.kernel.verify()
        if is_undone:
            assert before == [path.kernel.digest() for path in (plain, keyed)]
        assert rows_of(plain) == rows_of(keyed)
    assert plain.kernel.operations == keyed.kernel.operations


@pytest.mark.parametrize("order", [1, -1])
def test_rows_are_replaced_by_others_of_their_key_while_tables_grow(order: int) -> None:
    plain, keyed = Path(), Path(keyed=True)
    for path in (plain, keyed):
        n = 6000
        path.apply(path.on_r, np.arange(n) % 7, np.arange(n))
        path.apply(path.on_s, np.arange(n), np.zeros(n))
        for start in range(0, n, 700):
            keys = np.arange(start, min(n, start + 700))
            path.kernel.begin()
            for value, weight in ((1, 1), (0, -1))[::order]:
                path.apply(path.on_s, keys, np.full(len(keys), value), weight)
            path.kernel.verify()
            path.kernel.commit()
        path.apply(path.on_s, np.arange(100, n), np.ones(n - 100), -1)
        path.kernel.verify()
    assert rows_of(plain) == rows_of(keyed)


def test_many_rows_of_one_key_are_there_and_go_again() -> None:
    one = OneMap(2, key=[0])
    before = one.kernel.digest()
    one.insert(np.repeat(np.arange(3), 400), np.arange(1200))
    one.kernel.verify()
    one.delete(np.repeat(np.arange(3), 400)[::-1], np.arange(1200)[::-1])
    one.kernel.verify()
    assert before == one.kernel.digest()


def test_what_was_dumped_with_several_rows_of_a_key_is_loaded() -> None:
    one, other = OneMap(3, key=[0, 2]), OneMap(3, key=[0, 2])
    one.insert([1, 1, 2, 2], [1, 2, 3, 4], [5, 5, 5, 6])
    other.kernel.load_map(other.map, one.kernel.dump_map(one.map))
    other.kernel.verify()
    assert one.contents() == other.contents()


def test_a_batch_without_memory_leaves_nothing_behind() -> None:
    for budget in range(40):
        path = Path(keyed=True)
        path.apply(path.on_r, [5, 6], [1, 1])
        path.apply(path.on_s, [1], [0])
        before = path.kernel.digest()
        limit_allocations(budget)
        try:
            path.apply(path.on_s, [1, 1, 2, 2], [1, 2, 1, 2])
        except MemoryError:
            limit_allocations(-1)
            assert before == path.kernel.digest()
        finally:
            limit_allocations(-1)
        path.kernel.verify()


def test_a_cursor_goes_on_with_the_keys_that_were_there() -> None:
    path = Path(keyed=True)
    path.apply(path.on_s, [1, 1, 2], [0, 1, 0])
    cursors = [path.kernel.open(reader_by_key(path), [key]) for key in (1, 2)]
    path.apply(path.on_s, [1, 1, 2, 2], [0, 1, 0, 5], -1)
    found = [sorted(cursor.next_block()[0][0].tolist()) for cursor in cursors]
    assert found == [[0, 1], [0]]
    path.kernel.verify()


def test_a_keyed_map_has_no_index_by_its_key() -> None:
    """An index of 400,000 groups of one is more than two fifths of a map and its index."""
    taken = {}
    for key in ((), (0,)):
        one = OneMap(2, key=key)
        one.kernel.add_index(one.map, [0], [1])
        for start in range(0, 400_000, 10_000):
            rows = np.arange(start, start + 10_000)
            one.insert(rows, rows % 50)
        taken[key] = one.kernel.memory_bytes()
    assert taken[(0,)] < 0.6 * taken[()]


def test_a_key_has_columns_of_the_map_in_their_order() -> None:
    kernel = Kernel(1)
    for key in ([1, 0], [0, 0], [2]):
        with pytest.raises(ValueError, match="the key of a map"):
            kernel.add_map(2, [], key)
    whole = kernel.add_map(1, [], [0])
    trigger = kernel.add_trigger(1, [], [("load", 0, 0, [0], [], [], [], []), ("add", 0, whole, "")])
    kernel.run(trigger, [([column(1, 1)], column(1, 1))])
    assert kernel.get(whole, [1]) == (2,)
