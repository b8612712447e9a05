"""Ears that are peeled off: views over the core and the ears answer like the oracle under random streams.

Every map is compared with its definition after each step, keys change sides every few updates, and some streams are
followed (`tests/skew_checks.py`).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivme.errors import PlanError
from ivme.plan.assemble.leaves import leaves_of
from ivme.plan.strategy.options import Options
from ivme.plan.strategy.skew.peeling import ears_of
from ivme.plan.strategy.strategies import plan_with
from ivme.query.model import Query
from ivme.query.rule import parse_rule
from ivme.structure.analysis import analyse
from ivme.structure.fracture import unbroken
from tests.properties.test_skew_streams import stream
from tests.random_queries import Update, queries
from tests.skew_checks import run_stream

PEELED = [
    "Q(A, B, C, D | .) = R(A, B), S(B, C), T(C, D)",
    "Q(B, C, D | .) = R(A, B), S(B, C), T(C, D)",
    "Q(A, B, C | D) = R(A, B), S(B, C), T(C, D)",
    "Q(A, C, D | B) = R(A, B), S(B, C, X), T(C, D), U(X)",
    "Q(A, B, C, X, Y, Z | .) = R(A, B, X), S(B, C, Y), T(C, A, Z)",
    "Q(A, B, X | .) = R(A, B, X), S(B, C, Y), T(C, A, Z)",
    "Q(A, B, C, D | .) = R(A, B), S(B, C), T(C, A), U(A, D)",
    "Q(A, C, D, E | .) = R(A, B), S(B, C), T(A, D), U(C, E)",
    "Q(A, B, C, D | .) = E(A, B), E(B, C), E(C, D)",
    "Q(A, B, C, D | .) = E(A, B), E(B, C), E(C, A), E(A, D)",
    "Q(A, B, C, X, Y, Z | .) = E(A, B, X), E(B, C, Y), E(C, A, Z)",
    "Q(A, B, C, D, SUM(X), COUNT(Y) | .) = R(A, B, X), S(B, C), T(C, D, Y)",
]

HUNG = [
    "Q(A, B, C | .) = R(A, B), S(B, C), T(C, A), U(A)",
    "Q(A, B, C | .) = R(A, B), S(B, C), T(C, A), U(A), V(A, B)",
    "Q(A, B, C, D, E | .) = R(A, B), S(B, C), T(C, A), U(A, D), V(A, E)",
    "Q(A, B, C | .) = E(A, B), E(B, C), E(C, A), E(A, A)",
]
"""Filters that are hung on listings; the first two have no ears."""


def has_peeled_plan(query: Query) -> bool:
    """Whether the plan over parts has indicators in place of ears."""
    try:
        plan = plan_with("skew", query, Options())
    except PlanError:
        return False
    leaves = plan.blueprint.leaves
    return bool(plan.blueprint.splits and any(m.role == "support" for m in plan.program.maps) and leaves.outputs)


@pytest.mark.parametrize(
    "text", [PEELED[0], PEELED[4], *(pytest.param(text, marks=pytest.mark.long) for text in PEELED)]
)
def test_ears_are_peeled_off(text: str) -> None:
    assert has_peeled_plan(parse_rule(text))


def seeded_steps(query: Query, chance: Random, number: int = 16) -> list[Update]:
    """Inserts and deletes over few values; the tables get rows in turn first."""
    present: Counter[tuple[str, Any]] = Counter()
    steps: list[Update] = []
    for i in range(number):
        if i >= 2 * len(query.tables) and present and chance.random() < 0.4:
            row = chance.choice(sorted(present))
            weight = -chance.randint(1, present[row])
        else:
            table = query.tables[i % len(query.tables)]
            row, weight = (table.name, tuple(chance.randrange(3) for _ in table.columns)), chance.randint(1, 2)
        steps.append((*row, weight))
        present[row] += weight
        present = +present
    return steps


@pytest.mark.parametrize(
    ("text", "followed"), [(PEELED[0], True), (PEELED[4], False), (PEELED[8], False), (HUNG[2], False)]
)
def test_a_stream_is_answered_like_the_oracle(text: str, followed: bool) -> None:
    steps = seeded_steps(parse_rule(text), Random(text))
    run_stream(text, {"epsilon": Fraction(1, 2)}, steps, filled=4, followed=followed, every=3)


def _random(data: Any) -> None:
    query = data.draw(queries(max_atoms=4, max_variables=6, constants=True))
    if all(table.columns for table in query.tables) and has_peeled_plan(query):
        stream(data, query.text, nulls=data.draw(st.booleans()))


@pytest.mark.long
@pytest.mark.parametrize("text", PEELED + HUNG)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_many_streams_are_answered_like_the_oracle(text: str, data: Any) -> None:
    stream(data, text, nulls=True)


@pytest.mark.long
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_queries_with_ears_are_answered_like_the_oracle(data: Any) -> None:
    _random(data)


def test_an_ear_has_outputs_of_its_own_and_hangs_on_free_variables() -> None:
    def ears(text: str) -> dict[str, tuple[str, ...]]:
        query = parse_rule(text)
        analysis = analyse(query)
        leaves = leaves_of(query, unbroken(analysis.plain.cqap))
        return {label: ear.own for label, ear in ears_of(analysis.plain.cqap, leaves).items()}

    assert ears("Q(A, B, C, D) = R(A, B), S(B, C), T(C, D)") == {"R": ("A",), "T": ("D",)}
    assert ears("Q(A, C, D) = R(A, B), S(B, C), T(C, D)") == {"T": ("D",)}
    assert ears("Q(A, B, C | D) = R(A, B), S(B, C), T(C, D)") == {"R": ("A",)}
    assert ears("Q(A, C) = R(A, B), S(B, C), T(C, D)") == {}
