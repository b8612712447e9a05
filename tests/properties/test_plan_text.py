"""Stored plans of random queries."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivme.compile import compile_plan
from ivme.errors import PlanError
from ivme.plan.plan_text import plan_text, read_plan
from ivme.query.model import Query
from tests.example_counts import examples
from tests.random_queries import queries


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    query=st.one_of(queries(max_atoms=4), queries(max_atoms=4, aggregates=True, constants=True)),
    strategy=st.sampled_from([None, None, "skew", "marks", "recursive", "recompute"]),
)
def test_the_plan_of_any_query_is_read_as_it_was_written(query: Query, strategy: str | None) -> None:
    try:
        explanation, plan = compile_plan(query, strategy=strategy)
    except PlanError:
        return
    stored = read_plan(plan_text(explanation, plan))
    assert (explanation, plan) == (stored.explanation, stored.plan)
