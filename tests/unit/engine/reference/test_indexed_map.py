"""Maps, their indexes and ordered groups, against plain dictionaries and sorted lists."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivme.engine.reference.indexed_map import IndexedMap, Tally
from ivme.errors import DataError
from ivme.plan.ir.program import Index, Map
from tests.invariants import check_indexes

FULL, PROJECTED, KEYLESS, GROUPS = Index((0,), (1, 2)), Index((0,), (1,)), Index((), (2,)), Index((0, 2), (1,))


def stored(indexes: tuple[Index, ...] = (), sorted_by: tuple[Index, ...] = ()) -> IndexedMap:
    return IndexedMap(Map("R", ("A", "X", "B"), "leaf", Fraction(1), indexes=indexes, sorted_by=sorted_by), Tally())


VALUES = st.integers(0, 2)
ROWS = st.tuples(VALUES, st.one_of(st.none(), st.integers(0, 4)), VALUES)
DELTAS = st.lists(st.dictionaries(ROWS, st.integers(-2, 2), max_size=4), max_size=12)


@pytest.mark.slow
@given(DELTAS)
def test_entries_are_the_sums_of_all_deltas_without_zeros(deltas: list[dict[Any, int]]) -> None:
    found, expected = stored(), Counter[Any]()
    for delta in deltas:
        found.add_all(delta)
        expected.update(delta)
    entries = {row: weight for row, weight in expected.items() if weight}
    assert entries == dict(found.items())
    assert len(entries) == len(found)
    assert all(weight == found.get(row) for row, weight in entries.items())
    assert found.get((9, 9, 9)) is None


@pytest.mark.slow
@given(DELTAS)
def test_indexes_count_the_projections_of_the_entries(deltas: list[dict[Any, int]]) -> None:
    found = stored((FULL, PROJECTED, KEYLESS))
    for delta in deltas:
        found.add_all(delta)
        check_indexes(found)
    for a in range(3):
        distinct = {(row[1],) for row, _ in found.items() if row[0] == a}
        assert distinct == set(found.matches(PROJECTED, (a,)))
        assert len(distinct) == found.size(PROJECTED, (a,))
        assert all(found.supports(PROJECTED, (a,), (x,)) == ((x,) in distinct) for x in [*range(5), None])
    assert {(row[2],) for row, _ in found.items()} == set(found.matches(KEYLESS, ()))


@pytest.mark.slow
@given(DELTAS)
def test_min_and_max_and_distinct_are_those_of_a_sorted_list(deltas: list[dict[Any, int]]) -> None:
    """Reading after each delta lets dead values surface at different times; NULLs do not count."""
    found = stored((GROUPS,), (GROUPS,))
    for delta in deltas:
        found.add_all(delta)
        groups: dict[Any, list[int]] = {}
        for a, x, b in dict(found.items()):
            groups.setdefault((a, b), []).extend([] if x is None else [x])
        for key in [(a, b) for a in range(3) for b in range(3)]:
            values = sorted(groups.get(key, []))
            assert (values[0] if values else None) == found.extreme(GROUPS, key, "min")
            assert (values[-1] if values else None) == found.extreme(GROUPS, key, "max")
            assert len(values) == found.extreme(GROUPS, key, "count_distinct")


@given(st.lists(st.integers(0, 6), max_size=30))
def test_min_and_max_follow_values_that_come_and_go(toggled: list[int]) -> None:
    """Each value of one group is inserted if it is not there, and else deleted, extremes among them."""
    found, present = stored((), (GROUPS,)), set[int]()
    for value in [0, 1, 2, 3, 4, 5, 6, 6, 0, *toggled]:
        found.add_all({(0, value, 0): -1 if value in present else 1})
        present ^= {value}
        assert min(present, default=None) == found.extreme(GROUPS, (0, 0), "min")
        assert max(present, default=None) == found.extreme(GROUPS, (0, 0), "max")


def test_min_and_max_are_right_after_the_heaps_were_made_anew() -> None:
    """Hundreds of dead values that never surface make most of both heaps dead; then the extremes themselves go."""
    found = stored((), (GROUPS,))
    found.add_all({(0, value, 0): 1 for value in (0, 1, 2, 7, 8, 9)})
    for _ in range(200):
        found.add_all({(0, 5, 0): 1})
        found.add_all({(0, 5, 0): -1})
    for least, greatest in ((0, 9), (1, 8), (2, 7)):
        assert found.extreme(GROUPS, (0, 0), "min") == least
        assert found.extreme(GROUPS, (0, 0), "max") == greatest
        found.add_all({(0, least, 0): -1, (0, greatest, 0): -1})


def test_a_value_that_cannot_be_compared_is_refused_by_name_and_not_stored() -> None:
    found = stored((FULL,), (GROUPS,))
    found.add_all({(1, 5, 1): 1})
    with pytest.raises(DataError, match="MIN and MAX cannot compare 'five' with 5"):
        found.add_all({(1, "five", 1): 1})
    assert dict(found.items()) == {(1, 5, 1): 1}
    check_indexes(found)


@given(st.lists(st.integers(0, 5), min_size=1))
def test_a_value_that_leaves_and_comes_back_is_found_again(values: list[int]) -> None:
    found = stored((), (GROUPS,))
    for value in values:
        found.add_all({(0, value, 0): 1})
        assert value == found.extreme(GROUPS, (0, 0), "min") == found.extreme(GROUPS, (0, 0), "max")
        found.add_all({(0, value, 0): -1})
        assert found.extreme(GROUPS, (0, 0), "max") is None


def test_only_the_count_of_a_payload_decides_whether_an_entry_is_there() -> None:
    found = stored((FULL,))
    found.add_all({(1, 2, 3): (2, 0, 5)})
    found.add_all({(1, 2, 3): (0, 0, -5)})
    assert found.get((1, 2, 3)) == (2, 0, 0)
    found.add_all({(1, 2, 3): (-2, 0, 7)})
    assert found.get((1, 2, 3)) is None
    check_indexes(found)


def test_the_matches_of_a_map_with_nothing_known_are_its_entries() -> None:
    found = stored()
    found.add_all({(1, 2, 3): 1, (1, 2, 4): 5})
    whole = Index((), (0, 1, 2))
    assert list(found.matches(whole, ())) == [(1, 2, 3), (1, 2, 4)]
    assert found.size(whole, ()) == 2


def test_a_key_without_entries_has_no_matches() -> None:
    found = stored((FULL,))
    assert (found.size(FULL, (7,)), list(found.matches(FULL, (7,)))) == (0, [])
    assert not found.supports(FULL, (7,), (1, 1))


def test_clearing_empties_indexes_and_groups() -> None:
    found = stored((FULL,), (GROUPS,))
    found.add_all({(1, 2, 3): 1})
    found.clear()
    assert len(found) == 0
    check_indexes(found)
    assert found.extreme(GROUPS, (1, 3), "min") is None
    found.add_all({(1, 9, 3): 1})
    assert found.extreme(GROUPS, (1, 3), "min") == 9


def test_each_look_up_and_each_change_is_one_operation() -> None:
    found = stored((FULL,), (GROUPS,))

    def counted(before: int) -> int:
        return found.tally.operations - before

    before = found.tally.operations
    found.add_all({(1, 2, 3): 1, (2, 2, 3): 1})
    assert counted(before) == 2
    for look_up in (
        lambda: found.get((1, 2, 3)),
        lambda: found.size(FULL, (1,)),
        lambda: found.supports(FULL, (1,), (2, 3)),
        lambda: found.extreme(GROUPS, (1, 3), "min"),
    ):
        before = found.tally.operations
        look_up()
        assert counted(before) == 1
    before = found.tally.operations
    found.items()
    assert counted(before) == 2


def test_an_index_that_was_not_declared_is_not_there() -> None:
    with pytest.raises(KeyError):
        stored().size(PROJECTED, (1,))


@pytest.mark.slow
@given(DELTAS)
def test_groups_are_the_keys_with_the_number_of_their_distinct_values(deltas: list[dict[Any, int]]) -> None:
    """By an index of all columns, by one of fewer, and by a key that is the whole tuple, in another order."""
    by_tuple = Index((2, 0, 1), ())
    found = stored((FULL, PROJECTED))
    for delta in deltas:
        found.add_all(delta)
    rows = [row for row, _ in found.items()]
    assert Counter(a for a, _, _ in rows) == {key: n for (key,), n in found.groups(FULL)}
    assert Counter(a for a, _ in {(a, x) for a, x, _ in rows}) == {key: n for (key,), n in found.groups(PROJECTED)}
    assert {(b, a, x): 1 for a, x, b in rows} == dict(found.groups(by_tuple))
    for a, x, b in [*rows, (9, 9, 9)]:
        assert ((a, x, b) in rows) == found.size(by_tuple, (b, a, x))
    assert [True, True, False] == [found.counts(index) for index in (FULL, by_tuple, KEYLESS)]


def test_an_ordered_index_that_comes_later_sorts_by_the_keys_that_come_with_it() -> None:
    """As another view asks for it, by its own names, of a map that is there already."""
    found = stored()
    found.add_all({(1, 5, 0): 1, (1, 7, 0): 1})
    asked = Map("R", ("K", "Y", "G"), "leaf", Fraction(1), sorted_by=(GROUPS,))
    found.extend(asked, {"Y": lambda code: -code})
    found.add_all({(1, 6, 0): 1})
    assert [7, 5] == [found.extreme(GROUPS, (1, 0), function) for function in ("min", "max")]


def test_all_values_of_a_group_come_with_their_counts() -> None:
    found = stored(indexes=(GROUPS,))
    found.add_all({(1, 5, 0): 2, (1, None, 0): 3, (2, 5, 0): 1, (1, 4, 1): 1})
    assert {5: 2, None: 3} == dict(found.extreme(GROUPS, (1, 0), "values"))
    assert [] == found.extreme(GROUPS, (3, 0), "values")
