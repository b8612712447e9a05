"""Every strategy: the worked examples of the sources, what is refused, and how orders are chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ivme.engine.reference.interpreter import Interpreter
from ivme.errors import PlanError
from ivme.plan.order.search import OrderChoice, best_order
from ivme.plan.strategy import orders
from ivme.plan.strategy.strategies import plan_with
from ivme.query.model import Query, table
from ivme.query.rule import parse_rule
from ivme.query.sql import parse_sql
from ivme.structure.hypergraph import Cqap
from tests.counting import COUNTING
from tests.programs import rows

EVERY = pytest.mark.parametrize("strategy", COUNTING)
Tables = dict[str, dict[tuple[str, ...], int]]


def kernel(query: Query, strategy: str, database: Tables, bulk: bool) -> Interpreter:
    running = Interpreter(plan_with(strategy, query).program)
    if bulk:
        running.build(database)
    else:
        for relation, changes in database.items():
            running.apply(relation, changes)
    return running


@EVERY
@pytest.mark.parametrize("bulk", [True, False])
def test_the_triangles_of_source_001_are_19_and_13_after_the_delete(strategy: str, bulk: bool) -> None:
    """Source 001: Σ R·S·T = 2·2·1 + 2·1·3 + 3·1·3 = 19; δR = {(a2, b1) → -2} takes 2·1·3 from it."""
    query = parse_rule("Q(. | .) = R(A, B), S(B, C), T(C, A)")
    database: Tables = {
        "R": {("a1", "b1"): 2, ("a2", "b1"): 3},
        "S": {("b1", "c1"): 2, ("b1", "c2"): 1},
        "T": {("c1", "a1"): 1, ("c2", "a1"): 3, ("c2", "a2"): 3},
    }
    running = kernel(query, strategy, database, bulk)
    assert list(rows(query, running, {})) == [((), 19)]
    running.apply("R", {("a2", "b1"): -2})
    assert list(rows(query, running, {})) == [((), 13)]


@EVERY
@pytest.mark.parametrize("bulk", [True, False])
def test_examples_2_1_and_2_2_of_source_003_are_6_and_12(strategy: str, bulk: bool) -> None:
    query = parse_rule("Q(A, C) = R(A, B), S(B, C)")
    database: Tables = {"R": {("a1", "b1"): 1, ("a1", "b2"): 2}, "S": {("b1", "c1"): 2, ("b2", "c1"): 2}}
    running = kernel(query, strategy, database, bulk)
    assert list(rows(query, running, {})) == [(("a1", "c1"), 6)]
    running.apply("R", {("a1", "b2"): 3})
    assert list(rows(query, running, {})) == [(("a1", "c1"), 12)]


@EVERY
def test_a_batch_with_all_edges_of_a_triangle_is_inserted_and_deleted(strategy: str) -> None:
    """Three rotations of one triangle, from one batch that changes all occurrences at once."""
    query = parse_rule("Q(A, B, C) = E(A, B), E(B, C), E(C, A)")
    running = Interpreter(plan_with(strategy, query).program)
    edges = {(1, 2): 1, (2, 3): 1, (3, 1): 1}
    running.apply("E", edges)
    assert {((1, 2, 3), 1), ((2, 3, 1), 1), ((3, 1, 2), 1)} == set(rows(query, running, {}))
    running.apply("E", dict.fromkeys(edges, -1))
    assert list(rows(query, running, {})) == []
    assert {0} == {len(running.map(declared.name)) for declared in running.program.maps}


@EVERY
def test_a_loop_counts_with_the_cube_of_its_multiplicity(strategy: str) -> None:
    """δ(E·E·E) at (1, 1): from 2 copies to 5, 5³ = 125."""
    query = parse_rule("Q(. | .) = E(A, B), E(B, C), E(C, A)")
    running = Interpreter(plan_with(strategy, query).program)
    running.apply("E", {(1, 1): 2})
    assert list(rows(query, running, {})) == [((), 8)]
    running.apply("E", {(1, 1): 3})
    assert list(rows(query, running, {})) == [((), 125)]


@EVERY
def test_an_indicator_that_a_build_starts_from_does_not_multiply(strategy: str) -> None:
    """R(1, 1, 1) three times, one D: the count is 3 and not 9."""
    query = parse_rule("Q(A, B, C | .) = R(A, B, C), S(A, D), T(B, D), U(C, D)")
    pairs = {(1, 7): 1}
    running = Interpreter(plan_with(strategy, query).program)
    running.build({"R": {(1, 1, 1): 3}, "S": pairs, "T": pairs, "U": pairs})
    assert list(rows(query, running, {})) == [((1, 1, 1), 3)]


@EVERY
def test_the_multiplicity_of_a_row_is_the_product_over_all_components(strategy: str) -> None:
    """Example 4.2 with multiplicities 2, 3 and 5."""
    query = parse_rule("Q(B, C, D, E | A) = R(A, B, C), S(A, B, D), T(A, E)")
    running = Interpreter(plan_with(strategy, query).program)
    running.build({"R": {(1, 2, 3): 2}, "S": {(1, 2, 4): 3}, "T": {(1, 5): 5}})
    assert list(rows(query, running, {"A": 1})) == [((2, 3, 4, 5), 30)]


@EVERY
def test_an_indicator_beside_factors_does_not_multiply(strategy: str) -> None:
    """Each edge twice: 2·2·2 and not more, though one of them also closes the triangle as an indicator."""
    query = parse_rule("Q(A, B, C, D, E, F | .) = R(A, B), S(B, C), T(C, A), U(A, D), V(B, E), W(C, F)")
    running = Interpreter(plan_with(strategy, query).program)
    tails = {"U": {(1, 4): 1}, "V": {(2, 5): 1}, "W": {(3, 6): 1}}
    running.build({"R": {(1, 2): 2}, "S": {(2, 3): 2}, "T": {(3, 1): 2}, **tails})
    assert list(rows(query, running, {})) == [((1, 2, 3, 4, 5, 6), 8)]


def test_inputs_that_branch_are_checked_before_any_loop() -> None:
    """Without the fracture A is above B and C: a node with many B and no C must not cost more than one look-up."""
    query = parse_rule("Q(B, C | A) = R(A, B), S(A, C)")
    running = Interpreter(plan_with("factorised", query).program)
    assert str(running.program.enumeration.loops[0]) == "if V_A(A)"
    running.build({"R": {(1, b): 1 for b in range(50)}, "S": {(2, 2): 1}})
    before = running.operations
    assert list(rows(query, running, {"A": 1})) == []
    assert running.operations - before == 1


@pytest.mark.parametrize("strategy", ["view-tree", "classical", "recompute"])
def test_a_worst_case_optimal_build_is_not_fooled_by_skew(strategy: str) -> None:
    """All edges touch the node 0. Each of the N edges has few candidates on one side and N on the other: a build that
    does not take the smaller side costs N^2, though N^(3/2) is promised."""
    query = parse_rule("Q(. | .) = R(A, B), S(B, C), T(C, A)")
    operations = []
    for size in (50, 200):
        star = {edge: 1 for i in range(1, size) for edge in ((0, i), (i, 0))}
        running = Interpreter(plan_with(strategy, query).program)
        running.build({"R": star, "S": star, "T": star})
        assert list(running.items({})) == []
        operations.append(running.operations)
    assert operations[1] / operations[0] < 4**1.5


def test_an_unknown_strategy_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(PlanError, match="no strategy 'magic'; choose one of view-tree, marks, skew, factorised"):
        plan_with("magic", parse_rule("Q(A) = R(A)"))


@EVERY
def test_a_closure_is_refused(strategy: str) -> None:
    with pytest.raises(PlanError, match=f"'{strategy}' cannot maintain a closure"):
        plan_with(strategy, parse_rule("Q(A, B) = closure(E)(A, B)"))


def test_only_fractured_strategies_rename_inputs() -> None:
    query = parse_rule("Q(.|A,B,C) = R(A,B), S(B,C), T(C,A)")
    assert plan_with("view-tree", query).program.source("R").schema == ("A_1", "B_1")
    assert plan_with("factorised", query).program.source("R").schema == ("A", "B")
    assert plan_with("classical", query).program.source("R").schema == ("A", "B")


def test_only_fractured_trees_have_indicators() -> None:
    query = parse_rule("Q(B, C | A) = R(A, B), S(B, C), T(C, A)")
    with_indicator = [name for name in COUNTING if any(tree.indicators for tree in plan_with(name, query).trees)]
    assert with_indicator == ["view-tree", "recompute"]


def test_each_ordered_variable_that_is_not_free_gets_a_tree_of_its_own() -> None:
    query = parse_rule("Q(A, MIN(X), MAX(X), MAX(Y), MIN(A)) = R(A, B, X), S(B, Y)")
    plan = plan_with("view-tree", query)
    assert 2 == len(plan.orders) == len(plan.trees)
    reading = plan.program.enumeration
    assert [(e.function, e.variable) for e in reading.extremes] == [("min", "X"), ("max", "X"), ("max", "Y")]


def test_trees_of_several_ordered_variables_do_not_share_view_names() -> None:
    query = parse_rule("Q(A, MIN(X), MAX(Y)) = R(A, B, X), S(B, Y)")
    names = [declared.name for declared in plan_with("view-tree", query).program.maps]
    assert len(names) == len(set(names))
    assert any(name.endswith(".2") and name.startswith("V") for name in names)


def test_a_table_that_is_known_to_be_small_breaks_ties() -> None:
    """The triangle count has the same widths whichever relation is joined last; sizes decide which is looked up."""
    query = parse_rule("Q(. | .) = R(A, B), S(B, C), T(C, A)")
    orders = set()
    for small in ("R", "S", "T"):
        tables = [replace(t, rows=10 if t.name == small else 10_000) for t in query.tables]
        orders.add(str(plan_with("view-tree", query.with_tables(tables)).orders[0]))
    assert len(orders) > 1


def hints(query: Query, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The dependencies and the sizes by label that the search for an order is given."""
    given: list[tuple[Any, Any]] = []

    def recorded(structure: Cqap, sizes: Any, *, dependencies: Any, **_: Any) -> OrderChoice:
        given.append(([str(each) for each in dependencies.all], sizes))
        return best_order(structure, sizes, dependencies=dependencies)

    monkeypatch.setattr(orders, "best_order", recorded)
    plan_with("view-tree", query)
    return given[0]


def test_the_search_knows_the_keys_that_an_atom_reads_under_the_names_of_the_fracture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """T's key is a constant here, and U is read without its key."""
    tables = [
        table("R", {"a": "int", "b": "int"}, primary_key="a", rows=7),
        table("S", {"a": "int", "b": "int"}),
        table("T", {"a": "int", "b": "int"}, primary_key="b"),
        table("U", {"a": "int", "b": "int"}, primary_key=["a", "b"]),
    ]
    query = parse_rule("Q(B, C, D | A) = R(A, B), S(A, C), T(D, 3), U(D, D)", tables)
    assert (["R: A_1 -> B", "T: ∅ -> D"], {"R": 7}) == hints(query, monkeypatch)


def test_a_key_that_the_query_does_not_mention_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [table("r", {"a": "int", "k": "int"}, primary_key="k")]
    assert hints(parse_sql("SELECT a FROM r", tables), monkeypatch) == ([], {})


def test_the_widths_of_a_tree_plan_are_what_its_program_costs() -> None:
    for text in ("Q(B, C | A) = R(A, B), S(B, C), T(C, A)", "Q(C, D | E) = R(A, B, C), S(A, B, D), T(A, E)"):
        plan = plan_with("view-tree", parse_rule(text))
        assert plan.widths is not None
        assert (str(plan.widths.dynamic), str(plan.widths.static)) == (
            str(plan.update.exponent),
            str(plan.preprocessing.exponent),
        )


@EVERY
def test_a_plan_is_the_same_each_time(strategy: str) -> None:
    query = parse_rule("Q(A, D) = E(A, B), E(B, C), F(C, D), E(D, A)")
    assert str(plan_with(strategy, query).program) == str(plan_with(strategy, query).program)
