"""Sums of floats over many frames are the exact ones, rounded once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ivme.algebra.exact import ExactSum
from ivme.engine.float_sums import frame_sums

_NEAR = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12)
_ANY = st.floats(allow_nan=False, allow_infinity=False)
_CENTS = st.integers(-(10**9), 10**9).map(lambda cents: cents / 100)


@given(st.data(), st.one_of(st.lists(_NEAR, min_size=1), st.lists(_ANY, min_size=1), st.lists(_CENTS, min_size=1)))
def test_they_are_those_of_exact_sums(data: st.DataObject, values: list[float]) -> None:
    copies = data.draw(st.lists(st.integers(0, 5), min_size=len(values), max_size=len(values)))
    place = st.integers(0, len(values))
    frames = [sorted(data.draw(st.tuples(place, place))) for _ in range(5)]
    before = data.draw(st.sampled_from([[], [ExactSum.of(0.1), ExactSum.of(-3e200)], [ExactSum(), ExactSum()]]))
    numbers = data.draw(st.lists(st.integers(0, 1), min_size=5, max_size=5))
    found = frame_sums(
        np.array(values),
        np.array(copies, np.int64),
        np.array([first for first, _ in frames], np.int64),
        np.array([last for _, last in frames], np.int64),
        before,
        np.array(numbers, np.int64),
    )
    if found is None:
        assert max(map(abs, values)) / min((abs(each) for each in values if each), default=1.0) > 1e90 or any(
            0 < abs(each) < 1e-300 for each in values
        )
        return
    for shown, (first, last), number in zip(found.tolist(), frames, numbers, strict=True):
        exact = before[number] if before else ExactSum()
        for place_ in range(first, last):
            exact = exact + ExactSum.of(values[place_]) * copies[place_]
        assert float(exact) == shown


def test_infinite_values_and_sums_before_are_left_to_exact_sums() -> None:
    one, place = np.ones(1, np.int64), np.zeros(1, np.int64)
    assert frame_sums(np.array([np.inf]), one, place, one, [], place) is None
    assert frame_sums(np.array([1.0]), one, place, one, [ExactSum.of(float("inf"))], place) is None
    assert frame_sums(np.array([1e300, 1e-300]), np.ones(2, np.int64), place, one, [], place) is None


def test_a_sum_beyond_the_largest_float_is_infinite() -> None:
    found = frame_sums(
        np.array([1.7e308, -1.0e290]), np.array([3, 1]), np.array([0, 1]), np.array([2, 2]), [], np.zeros(2, np.int64)
    )
    assert found is not None
    assert [float("inf"), -1.0e290] == found.tolist()
