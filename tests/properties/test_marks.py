"""Marks against the naive oracle: sets, full joins, acyclic and cyclic schemas, inserts and deletes, on both kernels.

Every stored map equals its definition after each step: good tuples, supports, templates (tests/invariants.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivme.plan.strategy.marks import unmarkable
from ivme.plan.strategy.strategies import plan_with
from ivme.query.model import Query, plain_head
from ivme.query.rule import parse_rule
from tests.conformance.test_programs import WORKED, run
from tests.example_counts import examples
from tests.properties.test_changes import follow
from tests.random_queries import queries, updates

SHAPES = [
    "Q(A, B, C, D) = R(A, B), S(B, C), T(C, D)",
    "Q(A, D) = R(A, B), S(B, C), T(C, D)",
    "Q(A) = R(A, B), S(B, C), T(C, D), U(D, E)",
    "Q(.) = R(A, B), S(B, C), T(C, D)",
    "Q(B, C | A) = R(A, B), S(B, C), T(C, D)",
    "Q(D | A) = R(A, B), S(B, C), T(C, D)",
    "Q(A, B | C, D) = R(A, B), S(B, C), T(C, D)",
    "Q(A, B, C | D) = R(A, B), S(B, C), T(C, D)",
    "Q(A, C) = R(A, B), S(C, D)",
    "Q(A, C | B) = R(A, B), S(B, C), T(D)",
    "Q(A, B) = R(A, B, X), S(A, B)",
    "Q(A, B, C, D) = R(A, B), S(A, C), T(A, D), U(A)",
    "Q(A, B, C) = R(A, B), S(B, C), T(C, A)",
    "Q(A, B) = R(A, B), S(B, C), T(C, A)",
    "Q(A) = R(A, B), S(B, C), T(C, A)",
    "Q(A, B, C, D) = R(A, B), S(B, C), T(C, D), U(D, A)",
    "Q(A, C | B) = R(A, B), S(B, C), T(C, D), U(D, A)",
    "Q(A, D) = R(A, B), S(B, C), T(C, D), U(D, E), V(E, F), W(F, A)",
    "Q(A, B, C, D) = R(A, B, C), S(B, C, D), T(C, D, A), U(D, A, B)",
    "Q(A, B, C) = R(A, B, X), S(B, C, Y), T(C, A, Z), U(X)",
    "Q(A, B, C, D, E) = E(A, B), E(B, C), E(C, D), E(D, E)",
    "Q(A, E) = E(A, B), E(B, C), E(C, D), E(D, E)",
    "Q(A, B, C) = E(A, B), E(B, C), E(C, A)",
    "Q(A, C) = E(A, B), E(B, C), E(A, C)",
    "Q(A, B) = E(A, B), E(A, B), E(B, A)",
]


def as_set(query: Query) -> Query:
    """The query without aggregates, as a set."""
    return replace(query, distinct=True, head=plain_head(query.output))


@pytest.mark.parametrize("distinct", [True, False], ids=["set", "bag"])
@pytest.mark.parametrize("text", SHAPES)
@settings(max_examples=examples(5), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_marks_answer_like_the_oracle_on_the_shapes_they_are_for(text: str, distinct: bool, data: Any) -> None:
    query = as_set(parse_rule(text)) if distinct else parse_rule(text)
    run(query, "marks", data.draw(updates(query, domain=3, max_size=20)), data.draw(st.sampled_from([1, 1, 6])))


@settings(max_examples=examples(70), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_marks_answer_like_the_oracle_as_sets_on_random_queries(data: Any) -> None:
    query = as_set(data.draw(queries(max_atoms=5, max_variables=6, constants=True)))
    run(
        query, "marks", data.draw(updates(query, domain=2, max_size=14, nulls=True)), data.draw(st.sampled_from([1, 4]))
    )


@st.composite
def full_joins(draw: st.DrawFn) -> Query:
    """Queries whose variables are all free but for some that one atom alone has."""
    query = draw(queries(max_atoms=5, max_variables=6, constants=True))
    local = [v for v in query.bound if sum(v in atom.variables for atom in query.atoms) == 1]
    output = tuple(v for v in query.variables if v not in query.input and (v not in local or draw(st.booleans())))
    return replace(query, output=output, head=plain_head(output))


@settings(max_examples=examples(70), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_marks_have_the_multiplicities_of_full_joins_on_random_queries(data: Any) -> None:
    query = data.draw(full_joins())
    assert not unmarkable(query)
    run(
        query, "marks", data.draw(updates(query, domain=2, max_size=14, nulls=True)), data.draw(st.sampled_from([1, 4]))
    )


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_changes_of_marks_add_up_to_the_result(data: Any) -> None:
    query = data.draw(st.one_of(full_joins(), queries(max_atoms=4, max_variables=5).map(as_set)))
    steps = data.draw(updates(query, domain=2, max_size=14, nulls=True))
    follow(
        query, ("marks", data.draw(st.sampled_from(["marks", "view-tree"]))), steps, data.draw(st.sampled_from([1, 4]))
    )


@pytest.mark.parametrize("text", [text for text in SHAPES if "|" not in text])
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_changes_of_marks_add_up_on_the_shapes_they_are_for(text: str, data: Any) -> None:
    query = parse_rule(text)
    query = as_set(query) if unmarkable(query) or data.draw(st.booleans()) else query
    follow(
        query, ("marks", "marks"), data.draw(updates(query, domain=3, max_size=20)), data.draw(st.sampled_from([1, 5]))
    )


def test_marks_are_planned_for_every_set_valued_worked_example() -> None:
    for text in WORKED:
        query = parse_rule(text)
        if not query.aggregates:
            assert plan_with("marks", as_set(query)).strategy == "marks"


@pytest.mark.long
@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_marks_answer_like_the_oracle_on_many_more_queries(data: Any) -> None:
    query = data.draw(st.one_of(full_joins(), queries(max_atoms=6, max_variables=7, constants=True).map(as_set)))
    steps = data.draw(updates(query, domain=2, max_size=16, nulls=True))
    run(query, "marks", steps, data.draw(st.sampled_from([1, 4, 16])))


@pytest.mark.long
@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_changes_of_marks_add_up_on_many_more_queries(data: Any) -> None:
    query = data.draw(st.one_of(full_joins(), queries(max_atoms=5, max_variables=6).map(as_set)))
    steps = data.draw(updates(query, domain=2, max_size=16, nulls=True))
    follow(query, ("marks", "marks"), steps, data.draw(st.sampled_from([1, 4, 16])))
