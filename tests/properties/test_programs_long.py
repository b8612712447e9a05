"""Programs against the naive oracle on more and larger queries than a quick run has time for.

`make test-long` runs them: every strategy, self-joins of up to six atoms, NULLs, aggregates, and batches that hold a
whole database at once, so that pending reads meet every other occurrence of the changed relation.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivme.query.rule import parse_rule
from tests.conformance.test_programs import WORKED, run
from tests.random_queries import queries, updates
from tests.single_programs import SINGLE

SELF_JOINS = [
    "Q(.|.) = E(A), E(B), E(C)",
    "Q(A, C) = E(A, B), E(B, C)",
    "Q(.|.) = E(A, B), E(B, C), E(C, D), E(D, A)",
    "Q(A, D) = E(A, B), E(B, C), E(C, D)",
    "Q(.|.) = E(A, B), E(B, C), E(C, A), E(A, C)",
    "Q(B, C | A) = E(A, B), E(B, C), E(C, A), F(A, B)",
    "Q(.|.) = T(A, B, X), T(B, C, Y), T(C, A, Z)",
    "Q(A, SUM(X), MIN(Y)) = T(A, B, X), T(B, C, Y), T(C, A, Z)",
    "Q(A, B, C | .) = T(A, B, X), E(B, C), E(C, A)",
]
"""Cycles, paths and products of one relation, with and without columns to sum away."""


@pytest.mark.long
@pytest.mark.parametrize("strategy", SINGLE)
@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_queries_are_answered_like_the_oracle(strategy: str, data: Any) -> None:
    aggregates = data.draw(st.booleans())
    query = data.draw(queries(max_atoms=5, max_variables=5, aggregates=aggregates, constants=True))
    steps = data.draw(updates(query, domain=2, max_size=16, nulls=True))
    run(query, strategy, steps, data.draw(st.sampled_from([1, 3, 16])))


@pytest.mark.long
@pytest.mark.parametrize("strategy", SINGLE)
@pytest.mark.parametrize("text", [*WORKED, *SELF_JOINS])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_long_streams_are_answered_like_the_oracle(text: str, strategy: str, data: Any) -> None:
    query = parse_rule(text)
    run(query, strategy, data.draw(updates(query, domain=3, max_size=24)), data.draw(st.sampled_from([2, 6, 24])))
