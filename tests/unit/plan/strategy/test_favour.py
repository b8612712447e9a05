"""What is favoured: updates, reads, or both; and that a default is never worse than evaluation at the request."""

from __future__ import annotations

from fractions import Fraction

import pytest

import ivme
from ivme.errors import PlanError
from ivme.plan.explain.explanation import Explanation

HALF = Fraction(1, 2)

QUERIES = [
    "Q(D | A) = R(A, B), S(B, C), T(C, D)",
    "Q(B, C | A) = R(A, B), S(B, C), T(C, A)",
    "Q(. | A) = R(A, B), S(B, C), T(C, A)",
    "Q(C | A, B) = R(A, B), S(B, C), T(C, A)",
    "Q(. | A, D) = R(A, B), S(B, C), T(C, D)",
    "Q(C | A) = R(A, B), S(B, C)",
    "Q(B | A) = R(A, B), S(B)",
    "Q(A, C | B, D) = R(A, B), S(B, C), T(C, D), U(A, D)",
    "Q(C, D | E) = R(A, B, C), S(A, B, D), T(A, E)",
    "Q(MIN(D) | A) = R(A, B), S(B, C), T(C, D)",
    "Q(B, COUNT(DISTINCT C) | A) = R(A, B), S(B, C), T(C, A)",
]


def costs(explained: Explanation) -> list[Fraction]:
    bounds = (explained.update, explained.delay, explained.preprocessing, explained.space)
    return [bound.exponent.at(HALF) for bound in bounds if bound is not None]


@pytest.mark.parametrize("text", QUERIES)
def test_no_default_is_worse_than_a_request_in_every_respect(text: str) -> None:
    default, asked = ivme.explain(text), ivme.explain(text, strategy="request")
    mine, theirs = costs(default), costs(asked)
    dominated = all(a >= b for a, b in zip(mine, theirs, strict=True)) and mine != theirs
    assert not dominated
    assert max(mine[:2]) <= max(theirs[:2])


@pytest.mark.parametrize("text", QUERIES)
def test_each_end_can_be_favoured(text: str) -> None:
    updates, reads = (costs(ivme.explain(text, favour=favour)) for favour in ("updates", "reads"))
    assert updates[0] == 0
    assert reads[1] == 0


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("Q(D | A) = R(A, B), S(B, C), T(C, D)", "request"),
        ("Q(B, C | A) = R(A, B), S(B, C), T(C, A)", "request"),
        ("Q(C | A) = R(A, B), S(B, C)", "skew"),
        ("Q(B | A) = R(A, B), S(A, C)", "view-tree"),
    ],
)
def test_balanced_takes_the_plan_whose_costlier_side_is_cheaper(text: str, strategy: str) -> None:
    assert strategy == ivme.explain(text).strategy


def test_who_asks_for_epsilon_gets_heavy_and_light_parts() -> None:
    assert ivme.explain("Q(B, C | A) = R(A, B), S(B, C), T(C, A)", epsilon=0.5).strategy == "skew"


def test_a_view_without_inputs_is_not_evaluated_at_requests() -> None:
    with pytest.raises(PlanError, match="this one has none"):
        ivme.explain("Q(A, C) = R(A, B), S(B, C)", strategy="request")
    assert ivme.explain("Q(A, C) = R(A, B), S(B, C)", favour="updates").strategy != "request"


def test_each_extreme_of_a_request_has_a_join_of_its_own() -> None:
    """Together their variables would multiply."""
    text = "Q(MIN(X), COUNT(DISTINCT Y) | A) = R(A, B), S(B, X), T(B, Y)"
    assert [0, 1, 1, 1] == costs(ivme.explain(text, strategy="request"))
    assert [0, 2, 1, 1] == costs(ivme.explain("Q(X, MIN(Y) | A) = R(A, B), S(B, X), T(B, Y)", strategy="request"))


def test_an_extreme_is_evaluated_at_the_request_where_a_view_tree_costs_more() -> None:
    explained = ivme.explain("Q(MIN(D) | A) = R(A, B), S(B, C), T(C, D)")
    assert "request" == explained.strategy
    assert "MIN(D): a request finds all values of D in its groups and sorts them; none are indexed" in explained.notes


def test_multiplicities_that_cancel_are_not_evaluated_at_requests() -> None:
    with pytest.raises(PlanError, match="ring semantics"):
        ivme.explain(QUERIES[0], strategy="request", semantics="ring")
    assert ivme.explain(QUERIES[0], semantics="ring").strategy != "request"


def test_what_a_request_costs_is_said_in_words_and_for_followers() -> None:
    text = " ".join(str(ivme.explain(QUERIES[0])).split())
    assert "A request costs up to as many look-ups as there are rows, however many it finds." in text
    assert "while its changes are followed it is maintained by view trees" in text


def test_a_wrong_favour_is_refused() -> None:
    with pytest.raises(PlanError, match="favour must be one of 'balanced', 'updates', 'reads'"):
        ivme.explain(QUERIES[0], favour="both")


def test_linear_space_leaves_out_plans_that_take_more() -> None:
    cycle = "Q(COUNT) = R(A, B), S(B, C), T(C, D), U(D, A)"
    fast, small = ivme.explain(cycle), ivme.explain(cycle, space="linear")
    assert ("skew", "classical") == (fast.strategy, small.strategy)
    assert small.space is not None
    assert str(small.space) == "O(N)"
    chain = ivme.explain("Q(D | A) = R(A, B), S(B, C), T(C, D)", space="linear")
    assert ("request", "O(N)") == (chain.strategy, str(chain.space))
    listed = ivme.explain("Q(A, B, C) = R(A, B), S(B, C), T(C, A), U(A)", space="linear", strategy="view-tree")
    assert "space='linear' has no effect: no plan of this view takes linear space" in listed.notes
