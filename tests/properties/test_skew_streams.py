"""Strategy `skew` under random streams, on both backends: answers like the oracle, invariants after each step.

Domains are small, so that thresholds are 1, 2 and 3 and every few updates some key changes sides or M changes.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivme.errors import PlanError
from ivme.plan.strategy.options import Options
from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule
from tests.example_counts import some_of
from tests.random_queries import queries, updates
from tests.skew_checks import run_stream

TRIANGLES = [
    f"Q({outputs} | {inputs}) = R(A, B), S(B, C), T(C, A)"
    for outputs, inputs in (
        (".", "."),
        ("A", "."),
        ("A, B", "."),
        ("A, B, C", "."),
        (".", "A"),
        (".", "A, B"),
        ("B", "A"),
        ("C", "A, B"),
        ("B, C", "A"),
    )
]
"""C_count, C1, C2 and C3 in every access pattern; C_lookup is in CQAP0."""

HIERARCHICAL = [
    "Q(A, C | .) = R(A, B), S(B, C)",  # Example 2.1
    "Q(A | .) = R(A, B), S(B)",  # Example 5.28
    "Q(B | A) = R(A, B), S(B)",
    "Q(B, C | A) = R(A, B), S(B, C)",
    "Q(B, C, D | A) = R(A, B), S(B, C), T(B, D)",
    "Q(A, C | B, D) = R(A, B), S(A, C), T(A, D)",
    "Q(. | A) = R(A, B), S(B)",
    "Q(C, D, E | A) = R(A, B, C), S(A, B, D), T(A, E)",  # Example 5.2, as Q1 of Example 3.9 has it
    "Q(C, D | E) = R(A, B, C), S(A, B, D), T(A, E)",  # Examples 5.3 to 5.8
    "Q(C, E | F, D) = R(A, B, C), S(A, B, D), T(A, E), U(A, F)",
    "Q(E, D | A, C) = R(A, B, C), S(A, B, D), T(A, E)",  # Example 4.3
    "Q(A | B, D) = R(A, B), S(A), T(A, D)",
    "Q(A, C | I) = R(A, B), S(B, C), U(D, I), V(D)",
]

COUNTS = [
    "Q(. | .) = R(A), S(A, B), T(B)",
    "Q(. | .) = R(A, B), S(B, C), T(C, D)",
    "Q(. | .) = R(A, B), S(B, C), T(C, D), U(D, E)",
    "Q(. | .) = R(A, B), S(B, C), T(C, D), U(D, A)",
    "Q(. | .) = R(A, B, C), S(B, C, D), T(C, D, A), U(D, A, B)",
    "Q(. | .) = R(A, B, G), S(B, C, G), T(C, A, G)",
    "Q(. | .) = R(A, B, X), S(B, C, Y), T(C, A, Z)",
]

SELF_JOINS = [
    "Q(. | .) = E(A, B), E(B, C), E(C, A)",
    "Q(. | .) = E(A, B), E(B, C), E(A, C)",  # the undirected spelling: one orientation of each edge
    "Q(B | A) = E(A, B), E(B, C), E(C, A)",
    "Q(A, B, C | .) = E(A, B), E(B, C), E(C, A)",
    "Q(. | .) = E(A, B), E(C, B), E(C, A)",
    "Q(A, C | .) = E(A, B), E(B, C)",
    "Q(A, C | .) = E(A, B), E(C, B)",
    "Q(A | .) = E(A, B), E(C, B)",  # one of two equal atoms sums up a column that the other needs
    "Q(A, D | .) = E(A, B), E(C, B), E(D, B)",
]

VARIED = [
    "Q(. | .) = R(A, B), S(B, C), T(C, A), U(A), W(C)",
    "Q(A | .) = R(B, A), S(C, B), T(A, C), U(A)",
    "Q(B | A) = R(A, B, 1), S(B, C), T(C, A)",
    "Q(A, COUNT, SUM(X), AVG(Y)) = R(A, B, X), S(B, C, Y), T(C, A)",
    "Q(COUNT, SUM(X), SUM(Z)) = R(A, B, X), S(B, C), T(C, A, Z)",
    "Q(SUM(X) | B) = R(A, B, X), S(B, C), T(C, A)",
    "Q(A, SUM(X), COUNT(Y)) = R(A, B, Y), S(B, X)",
    "Q(SUM(X), AVG(X)) = R(A), S(A, B), T(B, X)",
]

SHAPES = TRIANGLES + HIERARCHICAL + COUNTS + SELF_JOINS

EPSILONS = [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(2, 3), Fraction(1)]
FEW = settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def stream(data: Any, text: str, *, nulls: bool = False, options: dict[str, Any] | None = None) -> None:
    """A stream drawn for a query: single rows or batches, into empty or filled tables, followed or not."""
    query = parse_rule(text)
    steps = data.draw(updates(query, domain=3, max_size=18, nulls=nulls))
    epsilon = data.draw(st.sampled_from(EPSILONS) | st.fractions(0, 1, max_denominator=12))
    followed = not (query.input and query.aggregates) and data.draw(st.booleans())
    run_stream(
        text,
        {"epsilon": epsilon, **(options or {})},
        steps,
        batch=data.draw(st.sampled_from([1, 1, 6])),
        filled=data.draw(st.sampled_from([0, 0, len(steps) // 2])),
        followed=followed,
        few=not followed and data.draw(st.booleans()),
    )


@pytest.mark.parametrize("text", some_of(SHAPES, *SHAPES[::2]))
@FEW
@given(data=st.data())
def test_a_stream_is_answered_like_the_oracle_and_keeps_every_invariant(text: str, data: Any) -> None:
    stream(data, text)


@pytest.mark.parametrize("text", VARIED)
@FEW
@given(data=st.data())
def test_unary_atoms_constants_groups_sums_and_nulls_change_nothing(text: str, data: Any) -> None:
    stream(data, text, nulls=True)


@pytest.mark.parametrize("text", [TRIANGLES[0], COUNTS[4], SELF_JOINS[0]])
@FEW
@given(data=st.data())
def test_the_space_of_the_source_gives_the_same_counts(text: str, data: Any) -> None:
    stream(data, text, options={"space": "source"})


@FEW
@given(data=st.data())
def test_each_relation_of_the_triangle_count_may_have_its_own_epsilon(data: Any) -> None:
    epsilon = {name: data.draw(st.sampled_from(EPSILONS)) for name in "RST"}
    stream(data, TRIANGLES[0], options={"epsilon": epsilon})


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_queries_that_have_a_plan_are_answered_like_the_oracle(data: Any) -> None:
    random_query(data)


def random_query(data: Any) -> None:
    aggregates = data.draw(st.sampled_from([False, False, True]))
    query = data.draw(queries(max_atoms=4, max_variables=5, aggregates=aggregates, constants=True))
    try:
        plan = plan_with("skew", query, Options())
    except PlanError:
        return
    if plan.blueprint.splits and all(table.columns for table in query.tables):
        stream(data, query.text, nulls=data.draw(st.booleans()))


@pytest.mark.long
@pytest.mark.parametrize("text", SHAPES + VARIED)
@MANY
@given(data=st.data())
def test_many_streams_are_answered_like_the_oracle(text: str, data: Any) -> None:
    stream(data, text, nulls=True)


@pytest.mark.long
@settings(MANY, max_examples=1000)
@given(data=st.data())
def test_many_random_queries_are_answered_like_the_oracle(data: Any) -> None:
    random_query(data)


@pytest.mark.long
@settings(MANY, max_examples=10)
@given(data=st.data())
def test_loomis_whitney_of_degree_five_is_counted(data: Any) -> None:
    stream(data, "Q(. | .) = R(A, B, C, D), S(B, C, D, E), T(C, D, E, A), U(D, E, A, B), V(E, A, B, C)")
