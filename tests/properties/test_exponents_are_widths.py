"""What a program costs, read off its steps, is what the theory of its order says (source 003, Definition 4.9)."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings

from ivme.plan.ir.exponent import bound
from ivme.plan.strategy.strategies import plan_with
from ivme.query.model import Query
from tests.example_counts import examples
from tests.random_queries import queries


def check(query: Query) -> None:
    """The worst step of a trigger has the dynamic width as its exponent, that of the build at most the static one."""
    plan = plan_with("view-tree", query)
    assert plan.widths is not None
    assert bound(plan.widths.dynamic) == plan.update
    assert plan.preprocessing.exponent.at(Fraction(0)) <= max(Fraction(1), plan.widths.static)


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(query=queries(max_atoms=6, max_variables=7))
def test_a_view_tree_costs_its_widths(query: Query) -> None:
    check(query)


@pytest.mark.long
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(query=queries(max_atoms=6, max_variables=7))
def test_many_view_trees_cost_their_widths(query: Query) -> None:
    check(query)
