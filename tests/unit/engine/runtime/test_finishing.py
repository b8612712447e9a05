"""Columns that the kernel finishes have the values that are right one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivme.engine.codes.dictionary import NULL_CODE
from ivme.engine.codes.domains import Domains
from ivme.engine.runtime.finishing import finished
from ivme.query.aggregates import AGGREGATES
from ivme.query.totals import average, standard_deviation, sum_value, variance
from ivme.query.types import Type, parse_type

EDGES = [edge + step for edge in (0, 2**53, 2**62, 2**63 - 1) for step in (-1, 0, 1)]
TOTALS = st.one_of(st.sampled_from([sign * edge for edge in EDGES for sign in (1, -1)]), st.integers(-(2**70), 2**70))
COUNTS = st.one_of(st.just(0), st.integers(-5, 5), st.integers(1, 2**62))


def words(totals: list[int], width: int) -> Any:
    rows = [[(total >> 64 * i) & (2**64 - 1) for i in range(width)] for total in totals]
    found = np.array(rows, dtype=np.uint64).reshape(len(rows), width).view(np.int64)
    return np.ascontiguousarray(found[:, 0]) if width == 1 else found


def expected(function: str, total: Any, count: int, summed: Type, shown: Type) -> int:
    domain = Domains().domain(shown)
    if not count:
        return NULL_CODE
    value = sum_value(total, shown, "") if function == "sum" else average(total, count, summed, shown, "")
    return domain.code_computed(value)


@pytest.mark.parametrize(
    ("function", "summed", "shown"),
    [
        ("sum", "int", "int"),
        ("sum", "decimal(12, 2)", "decimal(38, 2)"),
        ("avg", "int", "float"),
        ("avg", "decimal(12, 2)", "decimal(16, 6)"),
        ("avg", "decimal(30, 4)", "decimal(38, 8)"),
    ],
)
@given(rows=st.lists(st.tuples(TOTALS, COUNTS), max_size=6), width=st.sampled_from([2, 3]))
def test_whole_numbers(function: str, summed: str, shown: str, rows: list[tuple[int, int]], width: int) -> None:
    types = parse_type(summed), parse_type(shown)
    counts = np.array([count for _, count in rows], np.int64)
    codes = finished(AGGREGATES[function], [words([total for total, _ in rows], width)], counts, *types)
    if codes is None:
        assert any(abs(total) > 2**40 or count > 2**40 for total, count in rows)
        return
    assert codes.tolist() == [expected(function, total, count, *types) for total, count in rows]


@pytest.mark.parametrize("function", ["sum", "avg"])
@given(rows=st.lists(st.tuples(st.floats(), COUNTS), max_size=6))
def test_floats(function: str, rows: list[tuple[float, int]]) -> None:
    float_ = Type("float")
    sums = np.array([total for total, _ in rows], np.float64)
    codes = finished(AGGREGATES[function], [sums], np.array([count for _, count in rows], np.int64), float_, float_)
    assert codes is not None
    assert codes.tolist() == [expected(function, total, count, float_, float_) for total, count in rows]


def test_numbers_of_one_word_are_as_good() -> None:
    int_ = Type("int")
    codes = finished(AGGREGATES["sum"], [words([5, -7, 0], 1)], np.array([1, 2, 0]), int_, int_)
    assert codes is not None
    assert codes.tolist() == [5, -7, NULL_CODE]


@pytest.mark.parametrize("slot", [[1, 2], np.array([2**80, 1], dtype=object)])
def test_what_only_python_has_is_left_to_it(slot: Any) -> None:
    assert finished(AGGREGATES["sum"], [slot], np.array([1, 1]), Type("int"), Type("int")) is None
    assert finished(AGGREGATES["exact_sum"], [words([1], 2)], np.array([1]), Type("int"), Type("binary")) is None


def test_floats_have_one_form_of_nan_and_of_zero() -> None:
    domain = Domains().domain(Type("float"))
    assert domain.code_computed(-0.0) == domain.code_computed(0.0)
    (value,) = domain.values([domain.code_computed(-math.nan)])
    assert value is math.nan
    many = domain.values([domain.code_computed(each) for each in [math.nan, None, -1.5] * 20])
    assert many == [math.nan, None, -1.5] * 20


NUMBERS = st.one_of(st.integers(-9, 9), st.integers(-(10**6), 10**6), st.integers(-(2**63) + 1, 2**63 - 1))


@pytest.mark.parametrize("function", ["var_samp", "stddev_samp", "var_pop", "stddev_pop"])
@pytest.mark.parametrize("summed", ["int", "decimal(12, 2)", "decimal(19, 12)"])
@given(groups=st.lists(st.lists(NUMBERS, max_size=5), max_size=4), times=st.integers(1, 2**40))
def test_variances_of_whole_numbers(function: str, summed: str, groups: list[list[int]], times: int) -> None:
    """Of each value so many times, to reach large counts; the kernel rounds the exact quotient once, as Python does."""
    type_, shown = parse_type(summed), Type("float")
    counts = np.array([times * len(group) for group in groups], np.int64)
    totals = [times * sum(group) for group in groups]
    squares = [times * sum(value * value for value in group) for group in groups]
    codes = finished(AGGREGATES[function], [words(totals, 2), words(squares, 3)], counts, type_, shown)
    if codes is None:
        largest = max((abs(value) for group in groups for value in group), default=0)
        assert (type_.scale or 0) > 9 or max(largest, 10 ** (type_.scale or 0)) * int(counts.max()) > 2**60
        return
    by_value: Callable[..., float | None] = variance if function.startswith("var") else standard_deviation
    whole = function.endswith("pop")
    domain = Domains().domain(shown)
    wanted = [
        by_value(n, *sums, type_.scale or 0, population=whole) if n else None
        for n, *sums in zip(counts.tolist(), totals, squares, strict=True)
    ]
    assert codes.tolist() == [domain.code_computed(value) for value in wanted]


@pytest.mark.parametrize(
    ("function", "wanted"), [("bool_and", [0, 1, NULL_CODE, 0]), ("bool_or", [1, 1, NULL_CODE, 0])]
)
def test_truth_values_are_finished_by_column(function: str, wanted: list[int]) -> None:
    trues, present = words([2, 3, 0, 0], 2), np.array([3, 3, 0, 2], np.int64)
    for sums in (trues, np.array([2, 3, 0, 0], dtype=object)):
        codes = finished(AGGREGATES[function], [sums], present, Type("int"), Type("bool"))
        assert codes is not None
        assert wanted == codes.tolist()
