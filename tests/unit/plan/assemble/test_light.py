"""Triggers while nothing is heavy: as short as classical ones, and asking only maps that have entries."""

from __future__ import annotations

import pytest

from ivme.plan.assemble.light import light_triggers
from ivme.plan.ir import program as ir
from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule

QUERIES = [
    "Q(COUNT) = R(A, B), S(B, C), T(C, A)",
    "Q(COUNT) = E(A, B), E(B, C), E(A, C)",
    "Q(COUNT) = R(A, B), S(B, C), T(C, D)",
    "Q(A, B, C) = R(A, B), S(B, C), T(C, A)",
    "Q(COUNT) = R(A, B), S(B, C), T(C, D), U(D, A)",
]


def maps_of(step: ir.Step) -> set[str]:
    """The maps that a step joins with or adds to."""
    if isinstance(step, ir.Join):
        return {read.map for read in step.reads}
    return {step.map} if isinstance(step, ir.Add | ir.Exists) else set()


@pytest.mark.parametrize("text", QUERIES)
def test_light_triggers_ask_no_map_that_has_to_be_empty(text: str) -> None:
    program = plan_with("skew", parse_rule(text)).program
    triggers = light_triggers({each.relation: each.steps for each in program.triggers})
    assert {partition.heavy for partition in program.partitions} <= {
        map_ for _, maps in triggers.values() for map_ in maps
    }
    for trigger in program.triggers:
        short, empty = triggers[trigger.relation]
        filters = {step.read.map for step in trigger.steps if isinstance(step, ir.Filter)}
        assert filters <= set(empty)
        assert set(empty) <= filters.union(*(maps_of(step) for step in trigger.steps))
        assert len(short) < len(trigger.steps)
        asked = {read.map for step in short if isinstance(step, ir.Join) for read in step.reads if not read.pending}
        added = {step.map for step in short if isinstance(step, ir.Add)}
        assert not set(empty) & (asked | added)
        assert not any(isinstance(step, ir.Filter) for step in short)
        watched = {str(step.key) for step in trigger.steps if isinstance(step, ir.Watch)}
        assert watched == {str(step.key) for step in short if isinstance(step, ir.Watch)}


def test_a_node_of_an_undirected_graph_is_heavy_for_all_of_its_roles() -> None:
    program = plan_with("skew", parse_rule("Q(COUNT) = E(A, B), E(B, C), E(A, C)")).program
    assert ["A"] == [partition.name for partition in program.partitions]
    assert 2 == len(program.partitions[0].degrees)
