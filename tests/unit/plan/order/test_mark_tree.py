"""The mark trees of queries: roots, filters and what is read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ivme.plan.order.mark_tree import MarkForest, MarkNode
from ivme.plan.strategy.marks import plan_marks
from ivme.query.rule import parse_rule
from ivme.structure.analysis import analyse


def forest(text: str, *, distinct: bool = True) -> MarkForest:
    return plan_marks(analyse(replace(parse_rule(text), distinct=distinct))).forest


def only_root(text: str) -> MarkNode:
    ((root, _),) = forest(text).roots
    return root


def test_the_root_is_a_relation_that_covers_the_output() -> None:
    root = only_root("Q(A, B) = R(A, B), S(B, C), T(C, D)")
    assert str(root) == "R(S(T))"
    assert root.children == ()


def test_a_full_join_is_rooted_where_its_tree_is_lowest() -> None:
    root = only_root("Q(A, B, C, D, E) = R(A, B), S(B, C), T(C, D), U(D, E)")
    assert str(root) == "S(R, T(U))"
    assert root.filters == ()


def test_bound_variables_are_left_behind_in_filters() -> None:
    root = only_root("Q(A, B, C) = R(A, B), S(B, C), T(C, D), U(D)")
    assert {("S", ("B", "C")), ("R", ("A", "B")), ("T[C]", ("C",))} == {(n.name, n.schema) for n in root.walk()}
    (projected,) = (node.base for node in root.walk() if isinstance(node.base, MarkNode))
    assert str(projected) == "T(U)"


def test_a_node_with_bound_variables_is_read_through_its_projection() -> None:
    root = only_root("Q(A) = R(A, B), S(B, C)")
    assert (root.schema, str(root)) == (("A",), "R(S)")
    assert isinstance(root.base, MarkNode)


def test_inputs_are_in_the_root() -> None:
    ((root, key),) = forest("Q(A, B, C | D) = R(A, B), S(B, C), T(C, D)").roots
    assert (root.name, key) == ("T", ("D",))


def test_components_are_trees_of_their_own() -> None:
    assert [str(root) for root, _ in forest("Q(A, C) = R(A, B), S(C, D)").roots] == ["R", "S"]


def test_a_relation_within_a_template_is_no_node_of_its_own() -> None:
    found = forest("Q(A, B, C, D) = R(A, B), S(B, C), T(C, A), U(C, D)")
    ((root, _),) = found.roots
    assert {node.name for node in root.walk()} == {found.templates[0].name, "U"}


@pytest.mark.parametrize("distinct", [True, False])
def test_variables_that_one_relation_alone_has_do_not_matter_to_a_bag(distinct: bool) -> None:
    ((root, _),) = forest("Q(A, B) = R(A, B, X), S(B, Y)", distinct=distinct).roots
    assert (root.schema, isinstance(root.base, MarkNode)) == (("A", "B"), distinct)


def test_a_template_takes_in_the_relations_that_it_has_whole_and_leaves_those_of_which_it_has_a_part() -> None:
    assert "template 1" == str(forest("Q(A, B, C) = R(A, B), S(B, C), T(C, A)"))
    root = only_root("Q(A, B, C, D) = R(A, B, D), S(B, C), T(C, A)")
    assert {("template 1", ("A", "B", "C")), ("R", ("A", "B", "D"))} == {(n.name, n.schema) for n in root.walk()}
