"""The strategy `marks`: what it maintains, at what price, and when the chooser takes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ivme.errors import PlanError
from ivme.plan.assemble.plan import Plan
from ivme.plan.ir.exponent import bound
from ivme.plan.ir.program import Exists
from ivme.plan.strategy import choose as chooser
from ivme.plan.strategy.choose import COMPARED_ATOMS, Choice, choose
from ivme.plan.strategy.options import Options
from ivme.plan.strategy.strategies import plan_with
from ivme.query.model import Query
from ivme.query.rule import parse_rule
from ivme.structure.analysis import analyse

PATH = "Q(A, B, C, D) = R(A, B), S(B, C), T(C, D)"
LONG = "Q(A, B, C, D, E) = R(A, B), S(B, C), T(C, D), U(D, E)"


def query(text: str, *, distinct: bool = False, growing: str = "", static: str = "") -> Query:
    parsed = parse_rule(text)
    tables = (replace(t, append_only=t.name in growing.split(), static=t.name in static.split()) for t in parsed.tables)
    return replace(parsed.with_tables(tables), distinct=distinct)


def chosen(asked: Query, options: Options | None = None) -> Choice:
    return choose(analyse(asked), options or Options())


def plan(asked: Query) -> Plan:
    made = chosen(asked).plan
    assert made is not None
    return made


def test_append_only_tables_give_constant_amortised_updates() -> None:
    made = plan(query(PATH, growing="R S T"))
    assert (made.strategy, made.update, made.delay) == ("marks", bound(0, amortised=True), bound(0))
    assert (made.preprocessing, made.space) == (bound(1), bound(1))
    assert "view-tree would have update O(N)" in chosen(query(PATH, growing="R S T")).reason


def test_a_table_with_deletes_makes_the_bound_that_of_a_single_update() -> None:
    assert plan_with("marks", query(PATH, growing="R S")).update == bound(1)
    assert plan(query(LONG, growing="R S T")).strategy == "view-tree"


def test_static_tables_may_stand_beside_append_only_ones() -> None:
    made = plan(query(LONG, growing="R T U", static="S"))
    assert (made.strategy, made.update) == ("marks", bound(0, amortised=True))


def test_view_trees_win_ties() -> None:
    assert plan(query(LONG, distinct=True)).strategy == "view-tree"
    assert plan(query("Q(A, B, C) = R(A, B), S(A, C)", growing="R S")).strategy == "view-tree"


@pytest.mark.parametrize(("distinct", "exponent", "taken"), [(True, 2, True), (True, 1, False), (False, 2, False)])
def test_with_deletes_marks_are_for_sets_whose_view_tree_costs_more(distinct: bool, exponent: int, taken: bool) -> None:
    asked = query(PATH, distinct=distinct)
    trees = replace(plan_with("view-tree", asked), update=bound(exponent))
    assert taken == bool(list(chooser._marked(analyse(asked), trees)))


def test_triangles_of_append_only_tables_cost_the_root_of_n() -> None:
    """N^(3/2) triangles in all, over N inserts."""
    made = plan(query("Q(A, B, C) = R(A, B), S(B, C), T(C, A)", growing="R S T"))
    assert (made.strategy, str(made.update), str(made.space)) == ("marks", "O(N^(1/2)) amortised", "O(N^(3/2))")


def test_a_template_that_is_only_passed_through_costs_as_much() -> None:
    made = plan(query("Q(A) = R(A, B), S(B, C), T(C, A)", distinct=True, growing="R S T"))
    assert (made.strategy, str(made.update), str(made.space)) == ("marks", "O(N^(1/2)) amortised", "O(N)")


def test_templates_are_compared_by_their_width() -> None:
    text = "Q(A, B, C, D) = R(A, B), S(B, C), T(C, D), U(D, A)"
    assert str(plan_with("marks", query(text, growing="R S T U")).update) == "O(N) amortised"
    assert plan(query(text, growing="R S T U")).strategy == "view-tree"
    pairs = "Q(A, D) = R(A, B), S(B, C), T(C, D)"
    assert plan(query(pairs, distinct=True, growing="R S T")).strategy == "marks"


@pytest.mark.parametrize("text", ["Q(A, COUNT) = R(A, B)", "Q(MIN(A)) = R(A, B)", "Q(A, SUM(C)) = R(A, B), S(B, C)"])
def test_aggregates_never_use_marks(text: str) -> None:
    with pytest.raises(PlanError, match="needs every multiplicity"):
        plan_with("marks", query(text))
    assert plan(query(text, growing="R S")).strategy != "marks"


def test_a_bag_with_a_joined_bound_variable_is_refused_and_a_set_is_not() -> None:
    text = "Q(A, C) = R(A, B), S(B, C)"
    with pytest.raises(PlanError, match=r"it joins on B, not in the result.*SELECT DISTINCT"):
        plan_with("marks", query(text))
    assert plan(query(text, growing="R S")).strategy != "marks"
    assert plan_with("marks", query(text, distinct=True)).strategy == "marks"


def test_a_bound_variable_of_one_relation_alone_is_summed_away() -> None:
    program = plan_with("marks", query("Q(A, B, C) = R(A, B, X), S(B, C)")).program
    assert any(factor.variables == ("A", "B") for factor in program.enumeration.factors)


def test_under_ring_semantics_marks_are_not_chosen() -> None:
    choice = chosen(query(PATH, growing="R S T"), Options(semantics="ring"))
    assert choice.plan is not None
    assert choice.plan.strategy != "marks"


def test_large_queries_are_compared_with_marks_too() -> None:
    atoms = [f"R{i}(A{i}, A{i + 1})" for i in range(COMPARED_ATOMS + 2)]
    text = f"Q({', '.join(f'A{i}' for i in range(len(atoms) + 1))}) = {', '.join(atoms)}"
    made = plan(query(text, growing=" ".join(f"R{i}" for i in range(len(atoms)))))
    assert (made.strategy, made.update) == ("marks", bound(0, amortised=True))


def test_presence_alone_travels_up() -> None:
    """Each step to a parent is behind an exists edge."""
    steps = plan_with("marks", query("Q(A) = R(A, B), S(B, C), T(C, D)", distinct=True)).program.trigger("T").steps
    assert [str(step.map) for step in steps if isinstance(step, Exists)] == ["T", "∃T", "support S"]


def test_the_join_tree_and_the_templates_are_told() -> None:
    notes = plan_with("marks", query("Q(A, B, C) = R(A, B), S(B, C), T(C, A), U(C)", distinct=True)).notes
    assert any(note.startswith("join tree: ") for note in notes)
    assert any(note.endswith("∃R(A, B) ⋈ ∃S(B, C) ⋈ ∃T(C, A) ⋈ ∃U(C)") for note in notes)


def test_the_same_tree_of_two_views_is_stored_once() -> None:
    from ivme.plan.assemble.assemble import Assembly
    from ivme.plan.assemble.catalog import catalog_of

    made = plan_with("marks", query("Q(A, B, C, D) = R(A, B), S(B, C), T(C, D)"))
    other = plan_with("marks", query("P(X, Y, Z, W) = R(X, Y), S(Y, Z), T(Z, W)"))
    assembly = Assembly(catalog_of({"one": made.blueprint, "two": other.blueprint}))
    for relation in assembly.relations:
        assembly.trigger(relation)
    for view in ("one", "two"):
        assembly.enumeration(view)
    assert len(made.program.maps) == len(assembly.storage.maps())
