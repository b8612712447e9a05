"""Sums of floats in the kernel: exact, whatever came and went, and rounded once."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivme import _kernel
from ivme.algebra.exact import ExactSum
from ivme.engine.ingest.feed import float_code
from tests.example_counts import examples
from tests.unit.kernel.programs import OneMap, column

LARGEST = 1.7976931348623157e308
ODD = [
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    LARGEST,
    -LARGEST,
    1e17,
    1.0,
    -1.0,
    0.1,
    2.0**-200,
    math.inf,
    -math.inf,
]
FLOATS = st.one_of(
    st.sampled_from(ODD), st.floats(allow_nan=False), st.floats(-1e6, 1e6), st.integers(-(10**9), 10**9).map(float)
)
WEIGHTS = st.one_of(st.integers(-3, 3), st.integers(-(2**62), 2**62))


def exact_sum(terms: list[tuple[float, int]]) -> float:
    """The rounded sum, by fractions."""
    up = sum(w for v, w in terms if v == math.inf)
    down = sum(w for v, w in terms if v == -math.inf)
    if up and down:
        return math.nan if (up > 0) == (down > 0) else math.copysign(math.inf, up)
    if up or down:
        return math.copysign(math.inf, up or -down)
    total = sum((Fraction(v) * w for v, w in terms if math.isfinite(v)), Fraction(0))
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(FLOATS, WEIGHTS), max_size=12), st.integers(1, 5))
def test_sums_equal_those_of_fractions_whatever_their_batches(terms: list[tuple[float, int]], size: int) -> None:
    one = OneMap(1, ["f64"], ["float"])
    marker = 2**62  # keeps the group there
    one.add([column(1), column(float_code(0.0))], column(marker))
    done: list[tuple[float, int]] = []
    for start in range(0, len(terms), size):
        batch = terms[start : start + size]
        try:
            codes = [float_code(value) for value, _ in batch]
            one.add([column(*[1] * len(batch)), column(*codes)], column(*(weight for _, weight in batch)))
        except _kernel.PayloadOverflow:
            continue
        done += batch
        found = one.kernel.get(one.map, [1])
        if found is not None:
            assert same(exact_sum(done), found[1])
        else:
            done = []
            one.add([column(1), column(float_code(0.0))], column(marker))


@given(st.lists(st.tuples(FLOATS, WEIGHTS), max_size=8))
def test_exact_sums_in_python_equal_those_of_fractions(terms: list[tuple[float, int]]) -> None:
    total: Any = sum((ExactSum.of(value) * weight for value, weight in terms), ExactSum())
    assert same(exact_sum(terms), float(total))
    assert total == ExactSum.from_bytes(total.to_bytes())


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_exact_sums_are_those_of_fsum(values: list[float]) -> None:
    total: Any = sum(map(ExactSum.of, values), ExactSum())
    try:
        assert math.fsum(values) == float(total)
    except OverflowError:
        assert math.isinf(float(total)) or abs(float(total)) > 1e307


def test_a_map_of_long_sums_is_dumped_and_loaded() -> None:
    one = OneMap(1, ["f64", "f64"], ["float", "float"])
    values = [1e300, 1e-300, 1.0, math.inf, -math.inf, 3.5]
    for group in range(50):
        codes = [float_code(value * (group + 1)) for value in values[group % 6 :]]
        one.add([column(*[group] * len(codes)), column(*codes), column(*codes[::-1])], column(*[1] * len(codes)))
    records = one.kernel.dump_map(one.map)
    other = OneMap(1, ["f64", "f64"], ["float", "float"])
    other.kernel.load_map(other.map, records)
    assert one.kernel.digest() == other.kernel.digest()
    assert repr(one.contents()) == repr(other.contents())
    for damaged in (records[:-1], records[:7], np.append(records[:-1], records[-1] + 8)):
        with pytest.raises(ValueError, match="floats are not"):
            OneMap(1, ["f64", "f64"], ["float", "float"]).kernel.load_map(0, np.ascontiguousarray(damaged))


def test_long_sums_that_no_entry_has_are_freed() -> None:
    one = OneMap(1, ["f64"], ["float"])
    for group in range(100):
        one.add([column(group, group), column(float_code(1e200), float_code(1e-200))], column(1, 1))
    full = one.kernel.memory_bytes()
    for step in range(20_000):
        one.add([column(step % 100), column(float_code(2.0**-600))], column(1 if step % 2 else -1))
    assert one.kernel.memory_bytes() < 20 * full
    assert one.kernel.get(one.map, [7]) is not None


def test_a_batch_that_fails_leaves_long_sums_as_they_were() -> None:
    one = OneMap(1, ["f64"], ["float"])
    one.add([column(1, 1), column(float_code(1e200), float_code(1e-200))], column(1, 1))
    before = one.kernel.digest()
    budget = 0
    while True:
        _kernel.limit_allocations(budget)
        try:
            one.add(
                [column(1, 2, 2), column(float_code(1e-250), float_code(1e99), float_code(-1e-99))], column(1, 1, 1)
            )
            break
        except MemoryError:
            budget += 1
        finally:
            _kernel.limit_allocations(-1)
        assert before == one.kernel.digest()
    assert budget > 0
    assert one.contents() == {(1,): (3, 1e200), (2,): (2, 1e99)}
