"""Costs are read off the program."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from ivme.plan.assemble.plan import costs
from ivme.plan.assemble.update_costs import table_costs, worst
from ivme.plan.ir.program import Add, Enumeration, Join, Map, Program, Scan, Step, Trigger
from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule
from tests.counting import COUNTING

HALF = Fraction(1, 2)
QUERY = parse_rule("Q(. | .) = R(A), S(A)")


def join(exponent: Fraction | int) -> Join:
    return Join("d2", "d1", (), ("A",), Fraction(exponent))


def program(trigger: tuple[Step, ...], build: tuple[Step, ...], *sizes: Fraction | int) -> Program:
    maps = tuple(Map(f"M{i}", ("A",), "view", Fraction(size)) for i, size in enumerate(sizes))
    triggers = (Trigger("R", ()), Trigger("S", trigger))
    return Program((), maps, triggers, build, Enumeration((), (), (), (), ()))


def printed(given: Program) -> list[str]:
    preprocessing, delay, space = costs(given)
    return [str(bound) for bound in (preprocessing, worst(table_costs(given, QUERY)), delay, space)]


def test_the_dearest_join_of_all_triggers_is_the_update_time() -> None:
    given = program((join(0), join(HALF), join(0), Add("d2", "M0")), (), 1)
    assert printed(given) == ["O(N)", "O(N^(1/2))", "O(1)", "O(N)"]


def test_triggers_without_joins_cost_a_constant_and_reading_the_tables_is_linear() -> None:
    assert printed(program((Scan("d1", "M0", ("A",)),), (), 0)) == ["O(N)", "O(1)", "O(1)", "O(N)"]


def test_the_build_and_the_largest_map_give_preprocessing_and_space() -> None:
    assert printed(program((), (join(HALF), join(2)), 1, Fraction(3, 2))) == ["O(N^2)", "O(1)", "O(1)", "O(N^(3/2))"]


def test_a_lazy_program_pays_the_build_before_the_next_row() -> None:
    lazy = replace(program((), (join(Fraction(3, 2)),), 1), lazy=True)
    assert printed(lazy) == ["O(N)", "O(1)", "O(N^(3/2))", "O(N)"]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("view-tree", ["O(N^(3/2))", "O(N)", "O(1)", "O(N)"]),
        ("factorised", ["O(N^2)", "O(N)", "O(1)", "O(N^2)"]),
        ("classical", ["O(N^(3/2))", "O(N)", "O(1)", "O(N)"]),
        ("recursive", ["O(N^2)", "O(N)", "O(1)", "O(N^2)"]),
        ("recompute", ["O(N)", "O(1)", "O(N^(3/2))", "O(N)"]),
    ],
)
def test_the_triangle_count_costs_what_source_000_says(strategy: str, expected: list[str]) -> None:
    """Source 000, sections 1 and 3: linear updates; N^2 space once S ⋈ T is stored; N^(3/2) to count from scratch."""
    plan = plan_with(strategy, parse_rule("Q(. | .) = R(A, B), S(B, C), T(C, A)"))
    assert expected == [str(bound) for bound in (plan.preprocessing, plan.update, plan.delay, plan.space)]


@pytest.mark.parametrize("strategy", COUNTING)
def test_a_plan_says_what_its_program_costs(strategy: str) -> None:
    plan = plan_with(strategy, parse_rule("Q(C, D | E) = R(A, B, C), S(A, B, D), T(A, E)"))
    assert costs(plan.program) == (plan.preprocessing, plan.delay, plan.space)
    assert plan.update == worst(plan.updates)
    assert [cost.table for cost in plan.updates] == ["R", "S", "T"]
    assert strategy == plan.strategy
