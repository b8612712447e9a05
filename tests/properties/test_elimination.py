"""Deltas by variable elimination, on both kernels against the oracle, on shapes where stages differ from one join."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule
from tests.conformance.test_programs import run
from tests.example_counts import examples
from tests.random_queries import updates

SHAPES = [
    "Q(.|.) = R(A,B), S(B,C), T(C,D), U(D,E), V(E,A)",
    "Q(.|.) = R(A,B), S(B,C), T(C,D), U(D,E), V(E,F), W(F,A)",
    "Q(A, COUNT) = E(A,B), E(B,C), E(C,D), E(D,A), E(A,C)",
    "Q(SUM(X), COUNT | A) = E(A,B), F(B,C,X), E(C,D), E(D,G), E(G,A)",
    "Q(.|.) = E(A,B), E(B,C), E(C,A), E(A,D), E(D,F), E(F,A)",
    "Q(A, D, MIN(X)) = R(A,B), S(B,C,X), T(C,D), U(D,A)",
]
"""Cycles, with and without self-joins, groups, inputs, sums and extremes, and a bowtie."""


@pytest.mark.parametrize("text", SHAPES)
@settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_classical_deltas_answer_like_the_oracle(text: str, data: Any) -> None:
    query = parse_rule(text)
    run(query, "classical", data.draw(updates(query, domain=2, max_size=20)), data.draw(st.sampled_from([1, 4, 20])))


def test_some_of_these_shapes_have_stages() -> None:
    assert any(
        len(rule.stages) > 2
        for text in SHAPES
        for propagation in plan_with("classical", parse_rule(text)).blueprint.propagations
        for rule in propagation.rules
    )
