"""What marks cost, in operations that no clock blurs: flat over inserts and deletes, linear for the dearest update."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from math import log
from typing import Any

import pytest

from ivme.plan.strategy.strategies import plan_with
from ivme.query.model import Query
from ivme.query.rule import parse_rule
from tests.programs import NativeProgram

Change = tuple[str, tuple[Any, ...], int]
PATH = parse_rule("Q(A, B, C, D) = R(A, B), S(B, C), T(C, D)")


def operations(query: Query, strategy: str, before: Iterable[Change], counted: Iterable[Change]) -> int:
    """What the counted changes cost, one by one, after those before."""
    kernel = NativeProgram(plan_with(strategy, query).program)
    for relation, row, weight in before:
        kernel.apply(relation, {row: weight})
    start = kernel.operations
    for relation, row, weight in counted:
        kernel.apply(relation, {row: weight})
    return kernel.operations - start


def hubs(n: int) -> list[Change]:
    """Rows in random order half of which meet in one value: every hub has n/6 partners on each side."""
    chosen = random.Random(n)
    rows: dict[Change, None] = {}
    while len(rows) < n:
        values = tuple(0 if chosen.random() < 0.5 else chosen.randrange(n) for _ in range(2))
        rows.setdefault((chosen.choice("RST"), values, 1))
    return list(rows)


def slope(small: float, large: float, factor: int) -> float:
    return log(large / small) / log(factor)


@pytest.mark.parametrize(("strategy", "least", "most"), [("marks", -0.05, 0.05), ("view-tree", 0.5, 1.1)])
def test_an_insert_costs_marks_the_same_however_much_is_there(strategy: str, least: float, most: float) -> None:
    small, large = (operations(PATH, strategy, [], hubs(n)) / n for n in (500, 4000))
    assert least <= slope(small, large, 8) <= most


def test_deletes_from_a_full_database_cost_as_little() -> None:
    costs = []
    for n in (500, 4000):
        rows = hubs(n)
        costs.append(operations(PATH, "marks", rows, [(r, row, -1) for r, row, _ in reversed(rows)]) / n)
    assert -0.05 <= slope(costs[0], costs[1], 8) <= 0.05


@pytest.mark.parametrize("weight", [1, -1])
def test_the_most_expensive_single_update_is_linear(weight: int) -> None:
    costs = []
    for n in (500, 4000):
        waiting: list[Change] = [("S", (b, 0), 1) for b in range(n)] + [("R", (0, b), 1) for b in range(n)]
        before = [*waiting, ("T", (0, 0), 1)] if weight < 0 else waiting
        costs.append(operations(PATH, "marks", before, [("T", (0, 0), weight)]))
    assert 0.95 <= slope(costs[0], costs[1], 8) <= 1.05


def test_a_second_partner_costs_nothing_above_its_own_relation() -> None:
    waiting: list[Change] = [("S", (b, 0), 1) for b in range(1000)] + [("R", (0, b), 1) for b in range(1000)]
    first = operations(PATH, "marks", waiting, [("T", (0, 0), 1)])
    second = operations(PATH, "marks", [*waiting, ("T", (0, 0), 1)], [("T", (0, 1), 1)])
    assert first > 1000
    assert second < 10


def test_triangles_cost_the_root_of_n_an_insert() -> None:
    """A complete graph of k nodes has 3k² rows and k³ triangles: N^(3/2) in all."""
    query = replace(parse_rule("Q(A, B, C) = R(A, B), S(B, C), T(C, A)"), distinct=True)
    costs = []
    for k in (8, 16):
        rows: list[Change] = [(r, (a, b), 1) for r in "RST" for a in range(k) for b in range(k)]
        random.Random(k).shuffle(rows)
        costs.append(operations(query, "marks", [], rows) / len(rows))
    assert 0.35 <= slope(costs[0], costs[1], 4) <= 0.55


def test_a_template_is_not_filled_by_pairs_that_a_third_relation_forbids() -> None:
    """R and S meet in one value, N² pairs; T is small, and the join of all three looks at no more than it has."""
    query = replace(parse_rule("Q(A, B, C) = R(A, B), S(B, C), T(C, A)"), distinct=True)
    costs = []
    for n in (500, 4000):
        rows: list[Change] = [("T", (1, 1), 1)]
        rows += [change for i in range(n) for change in (("R", (i, 0), 1), ("S", (0, i), 1))]
        costs.append(operations(query, "marks", [], rows) / len(rows))
    assert -0.05 <= slope(costs[0], costs[1], 8) <= 0.05
