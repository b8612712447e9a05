"""Views whose plans change while rows come and go: every answer and every change like the oracle's, on both backends.

Plans are exchanged at random here, whatever the view is used for; tests/unit/test_replanning.py says when they are.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ivme.definitions.definitions import Definitions
from ivme.errors import PlanError
from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule
from ivme.view import View
from tests.example_counts import examples, some_of
from tests.random_queries import Update, queries, updates
from tests.skew_checks import Twins, check_answers, whole_result

PLANS: list[dict[str, Any]] = [
    {"strategy": "view-tree"},
    {"strategy": "classical"},
    {"strategy": "recursive"},
    {"strategy": "factorised"},
    {"strategy": "request"},
    {"strategy": "recompute"},
    {"strategy": "marks"},
    {"strategy": "skew", "epsilon": 0},
    {"strategy": "skew", "epsilon": 0.5},
    {"strategy": "skew", "epsilon": 1},
]

SHAPES = [
    "Q(D | A) = R(A, B), S(B, C), T(C, D)",
    "Q(B, C | A) = R(A, B), S(B, C), T(C, A)",
    "Q(A, B, C) = R(A, B), S(B, C), T(C, A)",
    "Q(A, D) = R(A, B), S(B, C), T(C, D)",
    "Q(COUNT) = R(A, B), S(B, C), T(C, A)",
    "Q(A, SUM(C), COUNT) = R(A, B), S(B, C)",
    "Q(A, MIN(C)) = R(A, B), S(B, C)",
    "Q(A, C) = E(A, B), E(B, C)",
]


def exchange(definitions: Definitions, view: View, options: dict[str, Any]) -> None:
    """Gives a view the plan of these options, as `Replanning` does."""
    installation = definitions.runtime.installation
    planned, _, _ = definitions.planned(view.name, view.made_with[0], options)
    assert planned.plan is not None
    with definitions.runtime.lock, definitions.change():
        installation.replace_plan(view.state, planned.explanation, planned.plan, planned.assembled)
    assert options.get("strategy") in (None, view.explain().strategy)


def possible(text: str) -> list[dict[str, Any]]:
    """The plans that a query can have."""
    found = []
    for options in PLANS:
        try:
            plan_with(options["strategy"], parse_rule(text))
        except PlanError:
            continue
        found.append(options)
    return found


def run(text: str, steps: list[Update], plans: list[dict[str, Any]], batch: int, *, follow: bool) -> None:
    twins = Twins(text, {"strategy": "view-tree"})
    feeds = follow and not (twins.query.input and twins.query.aggregates)
    for number, start in enumerate(range(0, len(steps), batch)):
        if number == 1 and feeds:
            twins.follow()
        for database, view in zip(twins.databases, twins.views, strict=True):
            exchange(database.definitions, view, plans[number % len(plans)])
        twins.apply(steps[start : start + batch])
        for view in twins.views:
            check_answers(view, twins.query, twins.contents)
            view.verify()
    expected = whole_result(twins.query, twins.contents) if twins.feeds else {}
    for feed, total in twins.feeds:
        for change in feed:
            total.update(Counter(dict(change)))
        assert expected == {row: weight for row, weight in total.items() if weight}


@pytest.mark.parametrize("text", some_of(SHAPES, *SHAPES[::2]))
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_answers_stay_right_while_plans_change(text: str, data: Any) -> None:
    plans = data.draw(st.lists(st.sampled_from(possible(text)), min_size=1, max_size=6))
    steps = data.draw(updates(parse_rule(text), domain=3, max_size=16))
    run(text, steps, plans, data.draw(st.sampled_from([1, 3])), follow=data.draw(st.booleans()))


@settings(max_examples=examples(4), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_answers_stay_right_while_parts_are_maintained_for_requests_and_then_not(data: Any) -> None:
    """By default, the triangles in the middle are a part that is maintained."""
    text = "Q(F | A) = E(A, B), E(B, C), E(C, D), E(D, B), S(B, F)"
    default: list[dict[str, Any]] = [{}]
    plans = data.draw(st.lists(st.sampled_from(default + PLANS[:1] + PLANS[4:5]), min_size=3, max_size=6))
    steps = data.draw(updates(parse_rule(text), domain=3, max_size=14))
    run(text, steps, default + plans, data.draw(st.sampled_from([1, 3])), follow=data.draw(st.booleans()))


@pytest.mark.long
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_answers_of_random_queries_stay_right(data: Any) -> None:
    query = data.draw(queries(max_atoms=4, max_variables=5, aggregates=data.draw(st.booleans())))
    assume(all(table.columns for table in query.tables))
    plans = data.draw(st.lists(st.sampled_from(possible(str(query))), min_size=1, max_size=6))
    steps = data.draw(updates(query, domain=3, max_size=16))
    run(str(query), steps, plans, data.draw(st.sampled_from([1, 3])), follow=data.draw(st.booleans()))
