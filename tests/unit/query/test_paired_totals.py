"""COVAR, CORR and REGR from exact totals, against NumPy and by definition."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ivme.algebra.exact import ExactSum
from ivme.query.aggregates import AGGREGATES
from ivme.query.types import Type

FLOAT = Type("float")
FUNCTIONS = ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2", "regr_sxy")


def finished(function: str, pairs: list[tuple[float, float]]) -> float | None:
    def total(products: list[ExactSum]) -> ExactSum:
        return sum(products, start=ExactSum())

    columns = list(zip(*pairs, strict=True))
    sums = [total([ExactSum.of(v) for v in column]) for column in columns]
    sums += [total([ExactSum.of_square(v) for v in column]) for column in columns]
    sums.append(total([ExactSum.of_product(*pair) for pair in pairs]))
    finish = AGGREGATES[function].finish
    assert finish is not None
    found: float | None = finish(len(pairs), sums, FLOAT, FLOAT, "x")
    return found


def test_values_that_are_close_together_do_not_cancel() -> None:
    pairs = [(1e15 + y, 1e15 + x) for y, x in ((1, 1), (2, 3), (4, 4), (3, 6))]
    y, x = np.array([1.0, 2, 4, 3]), np.array([1.0, 3, 4, 6])
    slope, intercept = np.polyfit(x, y, 1)
    wanted = {
        "covar_pop": np.cov(y, x, ddof=0)[0, 1],
        "covar_samp": np.cov(y, x)[0, 1],
        "corr": np.corrcoef(y, x)[0, 1],
        "regr_slope": slope,
        "regr_intercept": 1e15 + intercept - slope * 1e15,
        "regr_r2": np.corrcoef(y, x)[0, 1] ** 2,
        "regr_sxy": np.cov(y, x, ddof=0)[0, 1] * 4,
    }
    for function in FUNCTIONS:
        assert finished(function, pairs) == pytest.approx(wanted[function], rel=1e-12), function


ONE, FLAT_X, FLAT_Y = [(2.0, 3.0)], [(1.0, 5.0), (2.0, 5.0)], [(5.0, 1.0), (5.0, 2.0)]
EDGES = {
    "covar_pop": (0.0, 0.0, 0.0),
    "covar_samp": (None, 0.0, 0.0),
    "corr": (None, None, None),
    "regr_slope": (None, None, 0.0),
    "regr_intercept": (None, None, 5.0),
    "regr_r2": (None, None, 1.0),
    "regr_sxy": (0.0, 0.0, 0.0),
}
"""As Spark 4 answers: over one row, over an x that does not vary, over such a y."""


@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_row_and_columns_that_do_not_vary(function: str) -> None:
    assert EDGES[function] == tuple(finished(function, pairs) for pairs in (ONE, FLAT_X, FLAT_Y))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_makes_it_nan(function: str, value: float) -> None:
    found = finished(function, [(value, 1.0), (1.0, 2.0), (2.0, 4.0)])
    assert found is not None
    assert math.isnan(found)


def test_products_beyond_the_largest_float_make_it_infinite() -> None:
    assert finished("covar_pop", [(1e200, 1e200), (1.0, 1.0)]) == math.inf
    assert finished("covar_pop", [(1e200, -1e200), (1.0, 1.0)]) == -math.inf
