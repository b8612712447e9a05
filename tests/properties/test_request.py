"""Strategy `request` under random streams, on both backends: every way of asking is answered like the oracle.

In the middle of a stream somebody follows the view, for whom it is maintained, and leaves again.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ivme.errors import PlanError
from ivme.plan.assemble.request_blueprint import summable
from ivme.plan.strategy.request import mixture
from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule
from tests.example_counts import examples
from tests.random_queries import Update, queries, updates
from tests.skew_checks import Twins, check_answers, whole_result

SHAPES = [
    "Q(D | A) = R(A, B), S(B, C), T(C, D)",
    "Q(B, C | A) = R(A, B), S(B, C), T(C, A)",
    "Q(. | A) = E(A, B), E(B, C), E(C, D), E(D, A)",
    "Q(C | A, E) = R(A, B), S(B, C), T(C, D), U(D, E)",
    "Q(B, D | A) = R(A, B), S(C, D)",
    "Q(D, SUM(X), COUNT, AVG(Y) | A) = R(A, B, X), S(B, D, Y)",
    "Q(SUM(X) | A) = R(A, B), S(B, C, X), T(C, D)",
    "Q(C, D | A, B) = R(A, B), S(B, C), T(C, A), U(C, D)",
    "Q(B, C, D | A) = R(A, B), S(A, C), T(A, D), U(B, C), V(C, D), W(B, D)",
    "Q(MIN(D), COUNT | A) = R(A, B), S(B, C), T(C, D)",
    "Q(B, MAX(C), COUNT(DISTINCT D), MIN(D) | A) = R(A, B), S(B, C), T(C, D)",
    "Q(D, MIN(X), MAX(Y), SUM(X) | A) = R(A, B, X), S(B, D, Y)",
    "Q(COUNT(DISTINCT C), MIN(B), AVG(C) | A) = E(A, B), E(B, C), E(C, A)",
]
"""Paths, cycles, products, sums, a clique and extremes, each with inputs."""


PIECED = [
    "Q(B, C, D | A) = R(A, B), S(B, C), T(C, D)",
    "Q(B, C, D, F | A) = E(A, B), E(B, C), E(C, D), E(D, F)",
    "Q(D, E, F | A) = R(A, B), S(B, C), T(C, D), U(D, E), V(D, F)",
    "Q(B, C, D | A) = R(A, B), S(B, C), T(C, D), U(D, A)",
    "Q(B, D, F | A, C, E) = R(A, B), S(C, D), T(E, F)",
    "Q(B, C, D, F | A) = R(A, B), S(B, C), T(C, D), U(D, B), V(D, F)",
    "Q(D, E, F | A, G) = R(A, B), S(B, D), U(D, E), V(D, F), T(F, C), W(C, G)",
    "Q(C, D, F, SUM(X), COUNT | A) = R(A, B), S(B, C, X), T(C, D), U(D, F)",
    "Q(C, D, F, SUM(X), AVG(Y), COUNT(Y) | A) = R(A, B), S(B, C, X), T(C, D), U(D, F, Y)",
]
"""Queries whose rows are read off pieces: paths, of one table too, ears behind a walk, a cycle that the input breaks,
products, a triangle with an ear, inputs on both sides, and sums in one piece and in two."""


MIXED = [
    ("Q(E | A) = R(A, B), S(B, C), T(C, D), U(D, B), V(B, E)", "CD", False),
    ("Q(F | A) = E(A, B), E(B, C), E(C, D), E(D, B), E(B, F)", "CD", False),
    ("Q(D | A) = R(A, B), S(B, C), T(C, D)", "B", False),
    ("Q(D | A) = R(A, B), S(B, C), T(C, D)", "C", False),
    ("Q(. | A, E) = E(A, B), E(B, C), E(C, D), E(D, E)", "BD", False),
    ("Q(F, SUM(X), COUNT | A) = R(A, B), S(B, C, X), T(C, D), U(D, B, Y), V(B, F)", "CD", False),
    ("Q(C, D | A) = R(A, B), S(B, C), T(C, A), U(C, D), V(D, E), W(E, C)", "E", False),
    ("Q(D, E, F | A) = R(A, B), S(B, C), T(C, D), U(D, E), V(D, F)", "C", False),
    ("Q(C | D) = R(A, B), S(A, C), T(A, D), U(B, C)", "B", True),
    ("Q(C | D) = E(A, B), E(A, C), E(A, D), E(B, C)", "B", True),
    ("Q(E, MIN(D), MAX(B) | A) = R(A, B), S(B, C), T(C, D), U(D, B), V(B, E)", "C", False),
    ("Q(COUNT(DISTINCT X), SUM(X) | A) = R(A, B), S(B, C), T(C, D), U(D, B, X)", "CD", False),
]
"""Queries with the variables that are summed away before requests come, and whether other atoms filter the parts:
triangles and paths in the middle, at an input and at an output, in several parts, of one table and of many."""


def run(
    text: str, steps: list[Update], batch: int, summed: frozenset[str] = frozenset(), *, filtered: bool = False
) -> None:
    if summed:
        with patch("ivme.plan.strategy.strategies.request", partial(mixture, summed=summed, filtered=filtered)):
            twins = Twins(text, {"strategy": "request"}, steps[:3])
            for database in twins.databases:
                assert database.view("the view").explain().plan.trees, "nothing is maintained"
        steps = steps[3:]
    else:
        twins = Twins(text, {"strategy": "request"})
    query = twins.query
    assert all(view.explain().strategy == "request" for view in twins.views)
    for number, start in enumerate(range(0, len(steps), batch)):
        if number == 2 and not query.aggregates:
            twins.follow()
        twins.apply(steps[start : start + batch])
        for view in twins.views:
            check_answers(view, query, twins.contents)
            view.verify()
        if number == 4:
            _check_changes(twins)
    for view in twins.views:
        check_answers(view, query, twins.contents)


def _check_changes(twins: Twins) -> None:
    """What was followed adds up to the result; then nobody follows any more."""
    expected = whole_result(twins.query, twins.contents) if twins.feeds else {}
    for feed, total in twins.feeds:
        for change in feed:
            total.update(Counter(dict(change)))
        assert expected == {row: weight for row, weight in total.items() if weight}
        feed.close()
    twins.feeds.clear()


@pytest.mark.parametrize("text", SHAPES)
@settings(max_examples=examples(5), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_requests_are_answered_like_the_oracle(text: str, data: Any) -> None:
    query = parse_rule(text)
    run(text, data.draw(updates(query, domain=3, max_size=20)), data.draw(st.sampled_from([1, 3, 20])))


@pytest.mark.parametrize("text", PIECED)
@settings(max_examples=examples(5), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_rows_off_pieces_are_those_of_the_oracle(text: str, data: Any) -> None:
    query = parse_rule(text)
    assert plan_with("request", query).blueprint.branches[0].pieces
    run(text, data.draw(updates(query, domain=3, max_size=24)), data.draw(st.sampled_from([1, 3, 24])))


@pytest.mark.parametrize(("text", "summed", "filtered"), MIXED)
@settings(max_examples=examples(4), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_requests_over_maintained_parts_are_answered_like_the_oracle(
    text: str, summed: str, filtered: bool, data: Any
) -> None:
    steps = data.draw(updates(parse_rule(text), domain=3, max_size=20))
    run(text, steps, data.draw(st.sampled_from([1, 3, 20])), frozenset(summed), filtered=filtered)


@pytest.mark.long
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_mixtures_are_answered_like_the_oracle(data: Any) -> None:
    query = data.draw(queries(max_atoms=5, max_variables=5, aggregates=data.draw(st.booleans())))
    assume(all(table.columns for table in query.tables))
    variables = summable(query)
    assume(query.input and variables)
    summed = data.draw(st.sets(st.sampled_from(variables), min_size=1))
    steps = data.draw(updates(query, domain=3, max_size=16))
    run(str(query), steps, data.draw(st.sampled_from([1, 3])), frozenset(summed), filtered=data.draw(st.booleans()))


@pytest.mark.long
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_queries_are_answered_like_the_oracle(data: Any) -> None:
    query = data.draw(queries(max_atoms=4, max_variables=5, aggregates=data.draw(st.booleans())))
    assume(all(table.columns for table in query.tables))
    try:
        plan_with("request", query)
    except PlanError:
        assume(False)
    run(str(query), data.draw(updates(query, domain=3, max_size=16)), data.draw(st.sampled_from([1, 3])))
