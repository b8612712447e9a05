"""What a class admits besides the plan of today: only where a source states it, with the source's exponents."""

from __future__ import annotations

from fractions import Fraction

import pytest

import ivme
from ivme.plan.admits import Admitted


def admits_of(text: str) -> Admitted | None:
    return ivme.explain(text).admits


@pytest.mark.parametrize(
    ("text", "update", "best"),
    [
        ("Q(. | .) = R(A), S(A, B), T(B)", "O(N^max(ε, 1-ε)) amortised", Fraction(1, 2)),
        ("Q(. | .) = R(A, B), S(B, C), T(C, D)", "O(N^max(ε, 1-ε)) amortised", Fraction(1, 2)),
        ("Q(. | .) = R(A, B), S(B, C), T(C, D), U(D, E)", "O(N^max(ε, 1-ε)) amortised", Fraction(1, 2)),
        ("Q(. | .) = R(A, B), S(B, C), T(C, D), U(D, A)", "O(N^max(ε, 2-2ε)) amortised", Fraction(2, 3)),
    ],
)
def test_counts_are_sublinear_by_the_sketches(text: str, update: str, best: Fraction) -> None:
    found = admits_of(text)
    assert found is not None
    assert (update, "O(1)", best) == (str(found.update), str(found.delay), found.update.exponent.at(best))
    assert "sketch" in found.source


@pytest.mark.parametrize(
    "text",
    [
        "Q(A, B, C) = R(A, B), S(A, C)",
        "Q(A | .) = R(A), S(A, B), T(B)",
        "Q(A | .) = R(A, B), S(B, C), T(C, D), U(D, A)",
        "Q(. | A) = R(A, B, C), S(B, C, D), T(C, D, A), U(D, A, B)",
        "Q(A, MIN(C) | .) = R(A, B), S(B, C)",
        "Q(X, Y) = closure(edge)",
    ],
)
def test_nothing_is_admitted_where_no_source_says_so(text: str) -> None:
    assert admits_of(text) is None


def test_nothing_is_left_to_admit_where_the_plan_is_constant_already() -> None:
    text = "Q(. | .) = R(A), S(A, B), T(B)"
    assert [ivme.explain(text, static=s).admits is None for s in ((), ("T",))] == [False, True]
