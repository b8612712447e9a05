"""Thresholds and the threshold base: exact comparisons, and a base that fits any size."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivme.engine.runtime.rebalance import fitting_base
from ivme.engine.runtime.threshold import least_degree


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_a_base_that_fits_keeps_the_size_invariant(size: int, base: int) -> None:
    found = fitting_base(size, base)
    assert found // 4 <= size < found
    assert found == base or not base // 4 <= size < base


def test_a_growing_and_shrinking_database_doubles_and_halves_its_base() -> None:
    """Source 003, Figure 5.25: at N = M the base becomes 2M, and at N = ⌊M/4⌋ - 1 it becomes ⌊M/2⌋ - 1."""
    assert [fitting_base(n, 8) for n in (1, 2, 7, 8)] == [3, 8, 8, 16]
    assert fitting_base(0, 1) == 1
    assert fitting_base(100, 1) == 128


@pytest.mark.slow
@given(
    st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(3, 2)]),
    st.integers(1, 10**9),
    st.fractions(0, 1, max_denominator=12),
)
def test_the_least_degree_is_the_least(factor: Fraction, size: int, epsilon: Fraction) -> None:
    found = least_degree(factor, size, epsilon)
    p, q = epsilon.numerator, epsilon.denominator
    assert Fraction(found) ** q >= factor**q * size**p
    assert found == 0 or Fraction(found - 1) ** q < factor**q * size**p


@pytest.mark.parametrize(("size", "expected"), [(1, 1), (4, 2), (5, 3), (9, 3), (10, 4), (10**18, 10**9)])
def test_square_roots_are_not_rounded_down(size: int, expected: int) -> None:
    assert expected == least_degree(Fraction(1), size, Fraction(1, 2))
