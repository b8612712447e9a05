"""Exponents are exact, and print as the sources write them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ivme.plan.ir.exponent import Bound, Exponent, bound, constant, linear, maximum, minimum

HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("exponent", "text"),
    [
        (constant(0), "0"),
        (constant(Fraction(3, 2)), "3/2"),
        (linear(0, 1), "ε"),
        (linear(0, -1), "-ε"),
        (linear(0, 2), "2ε"),
        (linear(1, -1), "1-ε"),
        (linear(1, 2), "1+2ε"),
        (maximum([linear(0, 1), linear(1, -1)]), "max(ε, 1-ε)"),
        (minimum([linear(0, 2), linear(2, -2)]), "min(2ε, 2-2ε)"),
    ],
)
def test_an_exponent_prints_as_the_sources_write_it(exponent: Exponent, text: str) -> None:
    assert text == str(exponent)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (0, "O(1)"),
        (1, "O(N)"),
        (2, "O(N^2)"),
        (Fraction(3, 2), "O(N^(3/2))"),
        (linear(0, 1), "O(N^ε)"),
        (linear(1, -1), "O(N^(1-ε))"),
        (maximum([linear(0, 1), linear(1, -1)]), "O(N^max(ε, 1-ε))"),
    ],
)
def test_a_bound_is_an_O_of_N(given: Fraction | int | Exponent, text: str) -> None:
    assert text == str(bound(given))
    assert f"{text} amortised" == str(bound(given, amortised=True))


def test_the_extremum_of_one_function_is_that_function() -> None:
    assert linear(1, -1) == maximum([linear(1, -1), linear(1, -1)]) == minimum([linear(1, -1)])


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 3), HALF, Fraction(2, 3), Fraction(1)])
def test_a_value_at_epsilon_is_exact(epsilon: Fraction) -> None:
    assert max(epsilon, 1 - epsilon) == maximum([linear(0, 1), linear(1, -1)]).at(epsilon)
    assert min(2 * epsilon, 2 - 2 * epsilon) == minimum([linear(0, 2), linear(2, -2)]).at(epsilon)
    assert 1 + 2 * epsilon == linear(1, 2).at(epsilon)


def test_a_bound_knows_whether_epsilon_moves_it() -> None:
    assert not Bound(constant(HALF)).depends_on_epsilon
    assert bound(linear(0, 1)).depends_on_epsilon
    assert bound(maximum([constant(1), linear(0, 1)])).depends_on_epsilon
    assert not bound(maximum([constant(1), constant(2)])).depends_on_epsilon
