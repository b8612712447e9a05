"""Options that a plan cannot honour are refused or named, never dropped."""

from __future__ import annotations

from typing import Any

import pytest

import ivme
from ivme.errors import PlanError

COUNT = "Q(. | .) = R(A, B), S(B, C), T(C, A)"
FULL = "Q(A, B, C) = R(A, B), S(B, C), T(C, A)"


def test_deamortised_updates_are_not_called_amortised() -> None:
    found = ivme.explain(COUNT, strategy="skew", epsilon=0.5, rebalance="deamortised")
    assert "update         O(N^max(ε, 1-ε)), at ε = 1/2 O(N^(1/2))\n" in str(found)
    assert not found.to_dict()["update"]["amortised"]
    assert any("in the space of space='source'" in note for note in found.notes)


def test_deamortised_rebalancing_is_refused_in_linear_space() -> None:
    with pytest.raises(PlanError, match="leave out space='linear', or rebalance"):
        ivme.explain(COUNT, rebalance="deamortised", space="linear")
    with pytest.raises(PlanError, match="leave out space='linear'"):
        ivme.explain(COUNT, strategy="skew", epsilon={"R": 0, "S": 1}, space="linear")


@pytest.mark.parametrize(
    ("query", "options", "said"),
    [
        (FULL, {"space": "source"}, "space='source' has no effect"),
        (FULL, {"workload": {"updates": 2}, "epsilon": 0.5}, "workload has no effect"),
        ("Q(A) = R(A, B)", {"workload": {"updates": 2}}, "workload has no effect on this plan"),
        ("Q(X, Y) = closure(R)", {"epsilon": 0.5, "append_only": "R"}, "ε, append_only: no effect on a closure"),
    ],
)
def test_an_option_without_effect_is_named(query: str, options: dict[str, Any], said: str) -> None:
    assert any(said in note for note in ivme.explain(query, **options).notes)


def test_a_join_beside_a_cross_product_with_nothing_to_split_is_refused_with_the_reason() -> None:
    with pytest.raises(PlanError, match=r"finds nothing to split.*leave out the strategy"):
        ivme.explain("Q(. | .) = R(A, B), S(B, C), T(D)", strategy="skew")
