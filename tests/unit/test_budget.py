"""Budgets of planning, and cancellations."""

from __future__ import annotations

import pytest

import ivme
from ivme.budget import STEPS_A_SECOND, Budget, BudgetSpentError, Cancellation, cancellable, claim, limited, spend
from ivme.errors import CancelledError, PlanError

FOUR_CLIQUE = "Q(. | .) = R(A, B), S(B, C), T(C, D), U(D, A), V(A, C), W(B, D)"


def clique(size: int) -> str:
    atoms = (f"E(x{i}, x{j})" for i in range(size) for j in range(i + 1, size))
    return f"Q(. | .) = {', '.join(atoms)}"


def test_a_budget_is_spent_after_its_steps() -> None:
    budget = Budget(10 / STEPS_A_SECOND)
    budget.spend(10)
    assert not budget.cut
    with pytest.raises(BudgetSpentError):
        budget.spend(1)
    assert budget.cut


def test_a_part_ends_before_the_whole_does() -> None:
    budget = Budget(100 / STEPS_A_SECOND)
    with pytest.raises(BudgetSpentError), budget.part(0.5):
        budget.spend(51)
    budget.spend(49)
    with pytest.raises(BudgetSpentError):
        budget.spend(1)


def test_without_a_budget_nothing_ends() -> None:
    spend(10**12)


def test_what_was_cancelled_does_not_take_effect() -> None:
    cancellation = Cancellation()
    assert cancellation.cancel()
    with cancellable(cancellation):
        with pytest.raises(CancelledError):
            claim()
        with limited(1), pytest.raises(CancelledError):
            spend(1)


def test_what_took_effect_cannot_be_cancelled() -> None:
    cancellation = Cancellation()
    with cancellable(cancellation):
        claim()
    assert not cancellation.cancel()


def test_a_query_that_is_too_large_for_the_budget_is_refused_with_what_to_do() -> None:
    with pytest.raises(PlanError, match=r"66 atoms .* planning_seconds=0\.1; split it into views"):
        ivme.explain(clique(12), planning_seconds=0.1)


@pytest.mark.slow
def test_the_best_plan_before_the_budget_was_spent_is_taken_and_says_so() -> None:
    """The search over heavy and light parts of a 4-clique takes more steps than this budget has."""
    whole, cut = ivme.explain(FOUR_CLIQUE), ivme.explain(FOUR_CLIQUE, planning_seconds=0.05)
    assert ("classical", False) == (whole.strategy, whole.cut)
    assert ("classical", True) == (cut.strategy, cut.cut)
    assert "planning stopped at its budget, planning_seconds=0.05: the plan may not be the best known" in cut.notes
    assert str(cut) == str(ivme.explain(FOUR_CLIQUE, planning_seconds=0.05))


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 10**6, True, "5"])
def test_planning_seconds_that_are_no_time_are_refused(seconds: object) -> None:
    with pytest.raises(PlanError, match="planning_seconds must be a number above 0"):
        ivme.explain("Q(A) = R(A)", planning_seconds=seconds)
