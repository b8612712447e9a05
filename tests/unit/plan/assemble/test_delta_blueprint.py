"""First-order and higher-order deltas: what is joined, in which stages, and which views are stored."""

from __future__ import annotations

from itertools import combinations

import pytest

from ivme.errors import PlanError
from ivme.plan.assemble.blueprint import Blueprint, Leaf, Node, Reference, StoredView
from ivme.plan.assemble.delta_blueprint import MOST_VIEWS, classical_blueprint, recursive_blueprint
from ivme.plan.assemble.leaves import Leaves, leaves_of
from ivme.query.model import Query
from ivme.query.rule import parse_rule
from ivme.structure.fracture import Fracture
from ivme.structure.hypergraph import cqap_of

TRIANGLES = "Q(. | .) = R(A, B), S(B, C), T(C, A)"


def read(text: str) -> tuple[Query, Leaves]:
    query = parse_rule(text)
    whole = cqap_of(query)
    return query, leaves_of(query, Fracture(whole, (whole,), tuple((v, v) for v in sorted(whole.variables))))


def classical(text: str, ordered: str | None = None) -> Blueprint:
    return classical_blueprint(*read(text), ordered)


def recursive(text: str, ordered: str | None = None) -> Blueprint:
    return recursive_blueprint(*read(text), ordered)


def named(node: Node) -> str:
    assert not isinstance(node, Reference)
    return f"{node.name if isinstance(node, StoredView) else node.label}({','.join(node.schema)})"


def stages(blueprint: Blueprint, label: str) -> list[list[list[str]]]:
    """The stages of each rule that a change of the atom sets off."""
    (propagation,) = [p for p in blueprint.propagations if p.use.label == label]
    return [[[named(node) for node in stage] for stage in rule.stages] for rule in propagation.rules]


def test_a_first_order_delta_joins_the_change_with_all_other_tables() -> None:
    assert stages(classical(TRIANGLES), "R") == [[["S(B,C)", "T(C,A)"]]]


def test_parts_that_share_nothing_but_the_change_are_joined_in_stages() -> None:
    """Given δS, what is left of R and of T has no variable in common."""
    assert stages(classical("Q(.|.) = R(A, B), S(B, C), T(C, D)"), "S") == [[["R(A,B)"], ["T(C,D)"]]]


def test_parts_without_output_are_summed_away_first() -> None:
    """R brings A, which the result keeps; T brings nothing."""
    assert stages(classical("Q(A) = R(A, B), S(B, C), T(C, D)"), "S") == [[["T(C,D)"], ["R(A,B)"]]]


def test_the_result_keeps_inputs_before_outputs_and_is_all_that_is_read() -> None:
    found = classical("Q(C | A) = R(A, B), S(B, C)")
    assert [named(definition.view) for definition in found.definitions] == ["Q(A,C)"]
    assert [(named(i.node), i.new) for i in found.reading.iterations] == [("Q(A,C)", ("C",))]
    assert [named(node) for node in found.reading.factors] == ["Q(A,C)"]


def test_the_result_of_one_atom_is_its_leaf() -> None:
    for draw in (classical, recursive):
        found = draw("Q(A) = R(A, B)")
        assert (Leaf("R", ("A",)),) == found.reading.factors
        assert found.definitions == ()
        assert found.propagations[0].rules == ()


def test_an_ordered_variable_gets_a_result_of_its_own_that_only_groups_are_read_from() -> None:
    for draw in (classical, recursive):
        found = draw("Q(A, MIN(Y), COUNT(DISTINCT Y)) = R(A, B), S(B, Y)", "Y")
        assert (found.reading.iterations, found.reading.factors) == ((), ())
        groups = [(function, variable, named(node)) for function, variable, node in found.reading.extremes]
        assert groups == [("min", "Y", "Q[Y](A,Y)"), ("count_distinct", "Y", "Q[Y](A,Y)")]


def views(blueprint: Blueprint) -> set[str]:
    return {named(definition.view) for definition in blueprint.definitions}


def test_higher_order_deltas_of_the_triangle_store_the_three_pairwise_joins() -> None:
    """Source 000, section 3: the delta of each relation is one look-up in a view."""
    found = recursive(TRIANGLES)
    assert {"Q()", "V_ST(B,A)", "V_RT(B,C)", "V_RS(A,C)"} == views(found)
    assert [["V_ST(B,A)"]] in stages(found, "R")


def test_a_part_of_one_atom_is_a_leaf_and_no_view() -> None:
    assert {"Q()"} == views(recursive("Q(.|.) = R(A, B), S(B, C)"))


def test_definitions_of_smaller_views_come_first() -> None:
    sizes = [len(definition.view.atoms) for definition in recursive(TRIANGLES).definitions]
    assert sorted(sizes) == sizes
    assert sizes[-1] == 3


def test_a_view_has_a_rule_for_each_of_its_atoms_and_for_no_other() -> None:
    found = recursive(TRIANGLES)
    for definition in found.definitions:
        changed = [p.use.label for p in found.propagations for rule in p.rules if rule.view == definition.view]
        assert sorted(definition.view.atoms) == sorted(changed)


def test_views_over_the_same_atoms_with_other_variables_have_names_of_their_own() -> None:
    found = recursive("Q(A, D) = R(A, B), S(B, C), T(C, D), U(D, A)")
    names = [definition.view.name for definition in found.definitions]
    assert len(names) == len(set(names))


def clique(size: int) -> str:
    edges = combinations("ABCDEFGH"[:size], 2)
    return f"Q(. | .) = {', '.join(f'R{a}{b}({a}, {b})' for a, b in edges)}"


def test_recursive_is_refused_where_it_would_store_too_many_views() -> None:
    with pytest.raises(PlanError, match=f"more than {MOST_VIEWS} views.*use strategy 'view-tree'"):
        recursive(clique(5))
    assert len(views(recursive(clique(4)))) <= MOST_VIEWS


def test_the_limit_on_views_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """The triangle needs four."""
    monkeypatch.setattr("ivme.plan.assemble.delta_blueprint.MOST_VIEWS", 4)
    assert len(views(recursive(TRIANGLES))) == 4
    monkeypatch.setattr("ivme.plan.assemble.delta_blueprint.MOST_VIEWS", 3)
    with pytest.raises(PlanError, match="more than 3 views"):
        recursive(TRIANGLES)
