"""Enumeration over hand-filled maps: loops, checks, factors, extremes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ivme.engine.reference.enumerate import enumerate_items
from ivme.engine.reference.indexed_map import IndexedMap, Tally
from ivme.plan.ir.program import Enumeration, Extreme, Index, Loop, Map, Read

Maps = dict[str, IndexedMap]


def maps() -> Maps:
    """R(A, B) and S(B, C) with a dangling row each, V(A, B) over both, W(A, X) ordered."""
    tally = Tally()
    declared = [
        Map("R", ("A", "B"), "leaf", Fraction(1)),
        Map("S", ("B", "C"), "leaf", Fraction(1), indexes=(Index((0,), (1,)),)),
        Map("V", ("A", "B"), "view", Fraction(1), indexes=(Index((0,), (1,)),)),
        Map("W", ("A", "X"), "view", Fraction(1), indexes=(Index((0,), (1,)),), sorted_by=(Index((0,), (1,)),)),
    ]
    found = {each.name: IndexedMap(each, tally) for each in declared}
    found["R"].add_all({(1, 1): 2, (1, 2): 3, (2, 2): 1, (9, 9): 1})
    found["S"].add_all({(1, 5): 1, (2, 5): 4, (2, 6): 1, (8, 8): 1})
    found["V"].add_all({(1, 1): 2, (1, 2): 15, (2, 2): 5})
    found["W"].add_all({(1, 4): 1, (1, 7): 1, (1, None): 1, (2, None): 1, (None, 3): 1})
    return found


LOOPS = (Loop(Read("V", ("A", "B")), ("B",)), Loop(Read("S", ("B", "C")), ("C",)))
FACTORS = (Read("R", ("A", "B")), Read("S", ("B", "C")))


def items(reading: Enumeration, **inputs: Any) -> list[Any]:
    return list(enumerate_items(reading, maps(), inputs))


def test_loops_are_nested_and_the_payload_is_the_product_of_the_factors() -> None:
    reading = Enumeration((("A", "A"),), ("B", "C"), (), LOOPS, FACTORS)
    assert items(reading, A=1) == [((1, 5), 2, ()), ((2, 5), 12, ()), ((2, 6), 3, ())]
    assert items(reading, A=9) == []


def test_outputs_come_in_the_order_asked_for() -> None:
    reading = Enumeration((("A", "A"),), ("C", "B"), (), LOOPS, FACTORS)
    assert [row for row, _, _ in items(reading, A=2)] == [(5, 2), (6, 2)]


def test_copies_of_an_input_take_its_value() -> None:
    reading = Enumeration((("A_1", "A"), ("A_2", "A")), (), (), (), (Read("V", ("A_1", "A_2")),))
    assert items(reading, A=1) == [((), 2, ())]
    assert items(reading, A=2) == [((), 5, ())]
    assert items(reading, A=3) == []


def test_an_input_that_is_null_matches_nothing() -> None:
    reading = Enumeration((("A", "A"),), ("X",), (), (Loop(Read("W", ("A", "X")), ("X",)),), ())
    assert len(items(reading, A=1)) == 3
    assert items(reading, A=None) == []


def test_a_loop_without_new_variables_checks_the_known_ones() -> None:
    check = Loop(Read("R", ("A", "B")), ())
    reading = Enumeration((("A", "A"), ("B", "B")), (), (), (check,), ())
    assert items(reading, A=1, B=2) == [((), 1, ())]
    assert items(reading, A=1, B=7) == []


def test_a_loop_with_nothing_known_goes_over_the_whole_map() -> None:
    reading = Enumeration((), ("A", "B"), (), (Loop(Read("V", ("A", "B")), ("A", "B")),), (Read("V", ("A", "B")),))
    assert {((1, 1), 2, ()), ((1, 2), 15, ()), ((2, 2), 5, ())} == set(items(reading))


def test_a_factor_that_is_absent_drops_the_row() -> None:
    reading = Enumeration((("A", "A"),), ("B",), (), LOOPS[:1], (Read("S", ("B", "A")),))
    assert items(reading, A=1) == []


def test_extremes_are_those_of_the_group_at_hand() -> None:
    read = Read("W", ("A", "X"), payload=False)
    extremes = (Extreme("min", "X", read), Extreme("max", "X", read), Extreme("count_distinct", "X", read))
    reading = Enumeration((("A", "A"),), (), (), (), (), extremes)
    assert items(reading, A=1) == [((), 1, (4, 7, 2))]
    assert items(reading, A=2) == [((), 1, (None, None, 0))]


def test_the_delay_is_the_same_for_every_row() -> None:
    """One visit for each loop at most, one look-up for each factor."""
    found = maps()
    tally = found["V"].tally
    reading = Enumeration((("A", "A"),), ("B", "C"), (), LOOPS, FACTORS)
    delays, before = [], tally.operations
    for _ in enumerate_items(reading, found, {"A": 1}):
        delays.append(tally.operations - before)
        before = tally.operations
    assert max(delays) <= len(LOOPS) + len(FACTORS)
