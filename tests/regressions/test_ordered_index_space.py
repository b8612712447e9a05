"""Found once: the heaps of an ordered index grow with the number of updates, not with the number of entries."""

from __future__ import annotations

from fractions import Fraction

from ivme.engine.reference.indexed_map import IndexedMap, Tally
from ivme.plan.ir.program import Index, Map


def test_a_value_that_comes_and_goes_takes_no_space_for_good() -> None:
    """5 is neither least nor greatest, so that its dead copies never surface."""
    index = Index((0,), (1,))
    stored = IndexedMap(Map("R", ("A", "X"), "leaf", Fraction(1), sorted_by=(index,)), Tally())
    stored.add_all({(1, 0): 1, (1, 9): 1})
    for _ in range(1000):
        stored.add_all({(1, 5): 1})
        stored.add_all({(1, 5): -1})
    extremes = stored._ordered[index][(1,)]
    assert len(extremes._least) <= 100
    assert (stored.extreme(index, (1,), "min"), stored.extreme(index, (1,), "max")) == (0, 9)
