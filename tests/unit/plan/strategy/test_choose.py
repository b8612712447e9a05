"""The chooser takes the best plan there is, says why, and does what it is told."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ivme.budget import SECONDS, limited
from ivme.engine.reference.interpreter import Interpreter
from ivme.errors import PlanError
from ivme.plan.assemble.plan import Plan
from ivme.plan.ir.exponent import bound
from ivme.plan.strategy import choose as chooser
from ivme.plan.strategy.choose import COMPARED_ATOMS, Choice, choose
from ivme.plan.strategy.options import Options
from ivme.plan.strategy.skew.plans import skew
from ivme.plan.strategy.strategies import STRATEGIES
from ivme.query.rule import parse_rule
from ivme.structure.analysis import Analysis, analyse
from tests import oracle
from tests.counting import COUNTING
from tests.example_counts import examples
from tests.programs import rows
from tests.random_queries import queries

TRIANGLES = "Q(. | .) = R(A, B), S(B, C), T(C, A)"


def chosen(text: str, options: Options | None = None, static: tuple[str, ...] = ()) -> Choice:
    query = parse_rule(text)
    query = query.with_tables(replace(table, static=table.name in static) for table in query.tables)
    return choose(analyse(query), options or Options())


def strategy_of(choice: Choice) -> str:
    assert choice.plan is not None
    return choice.plan.strategy


def test_a_query_in_cqap0_gets_view_trees_without_looking_further(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def recorded(strategy: str, query: Analysis, options: Options | None = None) -> Plan:
        asked.append(strategy)
        return STRATEGIES[strategy](query, options or Options())

    monkeypatch.setattr(chooser, "plan_with", recorded)
    choice = chosen("Q(A, B, C) = R(A, B), S(A, C)")
    assert asked == ["view-tree"]
    assert choice.reason == "in CQAP0: constant update time and delay, which is optimal"


def long_path(atoms: int) -> str:
    return "Q(.) = " + ", ".join(f"R{i}(A{i}, A{i + 1})" for i in range(atoms))


@pytest.mark.parametrize("beyond", [False, True])
def test_only_parts_are_compared_with_a_linear_view_tree_of_few_atoms(
    monkeypatch: pytest.MonkeyPatch, beyond: bool
) -> None:
    asked: list[str] = []

    def recorded(strategy: str, query: Analysis, options: Options | None = None) -> Plan:
        asked.append(strategy)
        return STRATEGIES[strategy](query, options or Options())

    def recorded_parts(query: Analysis, options: Options, below: Fraction | None = None) -> Plan:
        asked.append("skew")
        return skew(query, options, below)

    monkeypatch.setattr(chooser, "plan_with", recorded)
    monkeypatch.setattr(chooser, "skew", recorded_parts)
    choice = chosen(long_path(COMPARED_ATOMS + beyond))
    assert asked == (["view-tree"] if beyond else ["view-tree", "skew"])
    assert choice.compared is not beyond
    assert choice.reason.startswith("O(N) updates: view trees" if beyond else "no strategy here maintains it in less")
    assert strategy_of(choice) == "view-tree"


def test_a_large_query_that_view_trees_cannot_maintain_is_compared_all_the_same() -> None:
    text = long_path(COMPARED_ATOMS + 1).replace("Q(.)", "Q(A0, A1, A2)")
    assert strategy_of(chosen(text)) == "view-tree"
    ring = chosen(text, Options(semantics="ring"))
    assert ring.compared
    assert strategy_of(ring) != "view-tree"


def test_a_large_query_over_static_tables_has_the_bound_of_those_that_change() -> None:
    names = tuple(f"R{i}" for i in range(COMPARED_ATOMS + 1))
    choice = chosen(long_path(len(names)), static=names)
    assert choice.plan is not None
    assert choice.plan.update == bound(0)
    assert choice.reason.startswith("constant update time")


def test_view_trees_win_ties_and_the_reason_names_the_widths() -> None:
    """The path of seven relations is too long for `skew`; the others update it in O(N), too."""
    choice = chosen(long_path(7))
    assert strategy_of(choice) == "view-tree"
    assert choice.reason.endswith("(δ, w) = (1, 1)")


def test_heavy_and_light_parts_win_where_updates_are_sublinear_with_them() -> None:
    """Source 003, Proposition 6.2; without R the view tree joins S and T in N^2."""
    choice = chosen("Q(C | A, B) = R(A, B), S(B, C), T(C, A)")
    assert choice.plan is not None
    assert (choice.plan.strategy, str(choice.plan.preprocessing)) == ("skew", "O(N^(3/2))")
    assert "view-tree would have update O(N), delay O(1), preprocessing O(N^2)" in choice.reason


def test_recomputing_is_never_chosen_though_its_updates_cost_nothing() -> None:
    assert "recompute" not in chooser.MAINTAINING
    assert set(STRATEGIES) == {*chooser.MAINTAINING, "recompute"}


@pytest.mark.parametrize("strategy", COUNTING)
def test_a_strategy_that_is_asked_for_is_taken(strategy: str) -> None:
    choice = chosen(TRIANGLES, Options(strategy=strategy))
    assert strategy == strategy_of(choice)
    assert choice.reason.startswith("requested")


def test_a_forced_plan_that_costs_more_says_what_view_trees_would_cost() -> None:
    assert "view-tree would have update O(N)" in chosen(TRIANGLES, Options(strategy="recursive")).reason
    assert "view-tree" not in chosen(TRIANGLES, Options(strategy="classical")).reason


@pytest.mark.parametrize("strategy", COUNTING)
def test_the_widths_are_those_of_the_query_whatever_the_strategy(strategy: str) -> None:
    text = "Q(A, C | B, D) = R(A, B), S(B, C), T(C, D), U(A, D)"
    assert chosen(text).widths == chosen(text, Options(strategy=strategy)).widths


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(PlanError, match="there is no strategy 'magic'; choose one of view-tree, "):
        chosen(TRIANGLES, Options(strategy="magic"))


def test_a_strategy_without_a_plan_does_not_stop_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(strategy: str, query: Analysis, options: Options | None = None) -> Plan:
        if strategy != "view-tree":
            raise PlanError("not for this one")
        return STRATEGIES[strategy](query, options or Options())

    def without_parts(*_: object, **__: object) -> Plan:
        raise PlanError("not for this one")

    monkeypatch.setattr(chooser, "plan_with", failing)
    monkeypatch.setattr(chooser, "skew", without_parts)
    assert strategy_of(chosen(TRIANGLES)) == "view-tree"


def test_a_closure_is_not_for_the_chooser() -> None:
    with pytest.raises(PlanError, match="closure"):
        chosen("Q(X, Y) = closure(edge)", Options(strategy="view-tree"))


def test_updates_of_static_tables_do_not_count() -> None:
    """In R(A), S(A, B), T(B) with A above B only a change of T has to look at many A."""
    text = "Q(. | .) = R(A), S(A, B), T(B)"
    assert chosen(text).plan is not None
    assert [str(plan.update) for s in ((), ("T",)) if (plan := chosen(text, static=s).plan)] == [
        "O(N^max(ε, 1-ε)) amortised",
        "O(1)",
    ]


def test_under_ring_semantics_no_plan_reads_through_views_that_may_cancel() -> None:
    """With R(a,b) = 1, S(b,c) = 1 and S(b,d) = -1 the view over B alone is zero, and two rows would be lost."""
    assert strategy_of(chosen("Q(A, B, C) = R(A, B), S(B, C)", Options(semantics="ring"))) == "classical"
    with pytest.raises(PlanError, match="ring semantics"):
        chosen("Q(A, B, C) = R(A, B), S(B, C)", Options(semantics="ring", strategy="view-tree"))


def test_under_ring_semantics_a_tree_whose_loops_are_factors_is_kept() -> None:
    assert strategy_of(chosen("Q(A) = R(A, B), S(B)", Options(semantics="ring"))) == "view-tree"


@pytest.mark.parametrize("aggregate", ["SUM(B)", "AVG(B)", "COUNT(B)", "MIN(B)", "COUNT(DISTINCT B)"])
def test_under_ring_semantics_aggregates_of_values_are_refused(aggregate: str) -> None:
    """With R(a, 1) = 1 and R(a, 2) = -1 the group's count is 0, and its sum -1 would go with it."""
    with pytest.raises(PlanError, match="ring semantics"):
        chosen(f"Q(A, {aggregate}) = R(A, B)", Options(semantics="ring"))
    assert strategy_of(chosen("Q(A, COUNT) = R(A, B)", Options(semantics="ring"))) == "view-tree"


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_plans_for_ring_semantics_answer_like_the_oracle_when_multiplicities_cancel(data: Any) -> None:
    query = data.draw(queries(max_atoms=3, max_variables=4))
    plan = choose(analyse(query), Options(semantics="ring")).plan
    assert plan is not None
    assume(not plan.program.partitions)  # tests/properties/test_skew_views.py runs these
    kernel = Interpreter(plan.program)
    database: dict[str, Counter[Any]] = {table.name: Counter() for table in query.tables}
    for _ in range(data.draw(st.integers(1, 10))):
        table = data.draw(st.sampled_from(query.tables))
        change = Counter({tuple(data.draw(st.integers(0, 1)) for _ in table.columns): data.draw(st.integers(-2, 2))})
        kernel.apply(table.name, change)
        database[table.name].update(change)
    present = {name: {row: weight for row, weight in stored.items() if weight} for name, stored in database.items()}
    inputs = {parameter: data.draw(st.integers(0, 1)) for parameter in query.parameters}
    assert oracle.rows(query, present, inputs) == dict(rows(query, kernel, inputs))


_STEPS = 80_000
"""About 0.3 s of CPU."""


@pytest.mark.parametrize(
    "text",
    [
        "Q(B, C | .) = " + ", ".join(f"R{i}(A, {chr(66 + i)})" for i in range(10)),
        "Q(A, G | .) = " + ", ".join(f"R{i}({chr(65 + i)}, {chr(66 + i)})" for i in range(6)),
        "Q(A, K | .) = " + ", ".join(f"R{i}({chr(65 + i)}, {chr(66 + i)})" for i in range(10)),
        "Q(. | .) = " + ", ".join(f"R{i}({chr(65 + i)}, {chr(65 + (i + 1) % 10)})" for i in range(10)),
        "Q(. | .) = R(A, B), S(B, C), T(C, A), U(A, D), V(D, E), W(E, A)",
    ],
    ids=["a star by two columns", "a path of six by its ends", "a path of ten by its ends", "a 10-cycle", "a bowtie"],
)
def test_up_to_ten_tables_are_planned_in_few_steps(text: str) -> None:
    """Steps are counted rather than time, so that the test is the same on every machine."""
    with limited(SECONDS) as budget:
        assert choose(analyse(parse_rule(text)), Options()).plan is not None
    assert budget.spent <= _STEPS
    assert not budget.cut
