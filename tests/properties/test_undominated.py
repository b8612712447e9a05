"""No default plan of a small query is dominated: neither by a plan of another strategy, nor by brute force.

A plan dominates another if it is no worse in update, delay and space, and better in one. All connected queries of up to
four atoms over two variables are tried, with every access pattern (`tests/small_queries.py`): 814 up to renaming.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from ivme.errors import PlanError
from ivme.plan.assemble.plan import Plan
from ivme.plan.strategy.choose import choose
from ivme.plan.strategy.options import Options
from ivme.plan.strategy.strategies import STRATEGIES, plan_with
from ivme.query.rule import parse_rule
from ivme.structure.analysis import Analysis, analyse
from ivme.structure.hypergraph import cqap_of
from tests.small_queries import Point, brute_points, rules

NUMBERS = {1: 6, 2: 24, 3: 118, 4: 666}
"""How many queries there are of so many atoms."""


def point_of(plan: Plan) -> Point:
    """The exponents of a plan at its ε."""
    epsilon = Fraction(1, 2) if plan.epsilon is None else plan.epsilon
    return Point(*(each.exponent.at(epsilon) for each in (plan.update, plan.delay, plan.space)))


def points(analysis: Analysis) -> dict[str, Point]:
    """What each strategy, and brute force, has for a query."""
    brute = {f"brute force {i}": point for i, point in enumerate(sorted(brute_points(cqap_of(analysis.query))))}
    return brute | by_strategies(analysis)


def by_strategies(analysis: Analysis) -> dict[str, Point]:
    found = {}
    for strategy in STRATEGIES:
        if strategy != "recompute":
            try:
                found[strategy] = point_of(plan_with(strategy, analysis, Options()))
            except PlanError:
                continue
    return found


def better_than(mine: Point, found: dict[str, Point]) -> dict[str, Point]:
    return {name: point for name, point in found.items() if point.dominates(mine)}


@pytest.mark.parametrize(
    "atoms", [1, 2, pytest.param(3, marks=pytest.mark.long), pytest.param(4, marks=pytest.mark.long)]
)
def test_no_default_plan_is_dominated(atoms: int) -> None:
    texts = [*rules(atoms)]
    assert len(texts) == NUMBERS[atoms]
    worse = {}
    for text in texts:
        analysis = analyse(parse_rule(text))
        plan = choose(analysis, Options()).plan
        assert plan is not None
        if better := better_than(point_of(plan), points(analysis)):
            worse[text] = (plan.strategy, point_of(plan), better)
    assert not worse


@pytest.mark.parametrize("atoms", [1, 2, pytest.param(3, marks=pytest.mark.long)])
def test_no_default_plan_of_an_extreme_is_dominated(atoms: int) -> None:
    """MIN of each bound variable, by the strategies; brute force knows no ordered variables."""
    worse = {}
    for text, variable in ((rule, each) for rule in rules(atoms) for each in parse_rule(rule).bound):
        head, body = text.removeprefix("Q(").split(" | ", 1)
        outputs = [] if head == "." else [head]
        extreme = f"Q({', '.join([*outputs, f'MIN({variable})'])} | {body}"
        analysis = analyse(parse_rule(extreme))
        plan = choose(analysis, Options()).plan
        assert plan is not None
        if better := better_than(point_of(plan), by_strategies(analysis)):
            worse[extreme] = (plan.strategy, point_of(plan), better)
    assert not worse


@pytest.mark.parametrize("atoms", [1, 2, 3, pytest.param(4, marks=pytest.mark.long)])
def test_hierarchical_fractures_reach_the_trade_off_of_their_theorem(atoms: int) -> None:
    """Source 003, Theorem 3.5: updates in N^(δε) with delay N^(1-ε). Triangles have a theorem of their own."""
    worse = {}
    for text in rules(atoms):
        analysis = analyse(parse_rule(text))
        kind = analysis.classification
        if not kind.hierarchical_fracture or kind.cqap0 or kind.triangle or not analysis.query.free:
            continue
        plan, widths = plan_with("skew", analysis, Options()), plan_with("view-tree", analysis).widths
        assert widths is not None
        for epsilon in (Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)):
            update, delay = (each.exponent.at(epsilon) for each in (plan.update, plan.delay))
            if update > widths.dynamic * epsilon or delay > 1 - epsilon:
                worse[text] = (epsilon, plan.update, plan.delay)
    assert not worse


@pytest.mark.parametrize(
    ("text", "strategy", "by"),
    [
        ("Q(. | .) = R(A, B), S(B, C), T(C, A)", "recursive", "skew"),
        ("Q(A, B, C, D | .) = R(A, B), S(B, C), T(C, D)", "view-tree", "skew"),
        ("Q(A, B | .) = R(A, B), S(B, C)", "classical", "brute force"),
    ],
)
def test_a_plan_that_is_dominated_is_found(text: str, strategy: str, by: str) -> None:
    """So the search can fail."""
    analysis = analyse(parse_rule(text))
    better = better_than(point_of(plan_with(strategy, analysis, Options())), points(analysis))
    assert any(name.startswith(by) for name in better)
