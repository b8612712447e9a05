"""Hypergraphs, access patterns and the GYO reduction."""

from __future__ import annotations

import pytest

from ivme.query.rule import parse_rule
from ivme.structure.hypergraph import Edge, Hypergraph, cqap_of, gyo, reduce_edges
from tests.brute_force import cqap


def body(text: str) -> Hypergraph:
    return cqap(f"Q(.|.) = {text}").hypergraph


def test_a_relation_that_occurs_twice_gets_a_label_for_each_occurrence() -> None:
    structure = cqap_of(parse_rule("Q(A, C) = E(A, B), E(B, C), F(C)"))
    assert [edge.label for edge in structure.hypergraph.edges] == ["E#1", "E#2", "F"]


def test_constants_contribute_no_variables_and_a_repeated_variable_is_one_vertex() -> None:
    structure = cqap_of(parse_rule("Q(A) = R(A, 3, A), S(1)"))
    assert (Edge("R", frozenset("A")), Edge("S", frozenset())) == structure.hypergraph.edges


def test_a_closure_is_an_edge_like_any_other() -> None:
    structure = cqap_of(parse_rule("Q(X, Y) = closure(edge)(X, Y)"))
    assert frozenset("XY") == structure.hypergraph.edge("edge").variables


def test_the_tiers_are_input_output_ordered_bound() -> None:
    structure = cqap_of(parse_rule("Q(B | A) = R(A, B, C, D)"), frozenset("BC"))
    assert [structure.tier(variable) for variable in "ABCD"] == [0, 1, 2, 3]
    assert frozenset("ABC") == structure.free
    assert frozenset("D") == structure.bound


def test_a_variable_cannot_be_of_two_tiers() -> None:
    with pytest.raises(ValueError, match="two of"):
        cqap("Q(A | A) = R(A)")


def test_a_free_variable_needs_an_atom() -> None:
    with pytest.raises(ValueError, match="without an atom"):
        cqap("Q(Z | .) = R(A)")


def test_two_edges_cannot_share_a_label() -> None:
    with pytest.raises(ValueError, match="share a label"):
        body("R(A), R(B)")


def test_neighbours_are_outside_the_set_and_share_an_edge_with_it() -> None:
    assert frozenset("AD") == body("R(A,B), S(B,C), T(C,D), U(D,E)").neighbours("BC")


def test_components_are_connected_and_an_edge_without_variables_is_one_of_its_own() -> None:
    components = body("R(A), S(), T(B,C), U(A,D), V()").components()
    assert [[edge.label for edge in part.edges] for part in components] == [["R", "U"], ["S"], ["T"], ["V"]]


def test_a_chain_of_late_links_makes_one_component() -> None:
    assert len(body("R(A), S(B), T(C), U(A,B), V(B,C)").components()) == 1


def test_a_path_reduces_to_a_join_tree() -> None:
    reduction = gyo(body("R(A,B), S(B,C), T(C,D)"))
    assert reduction.acyclic
    assert str(reduction.join_tree) == "S(R, T)"


def test_a_disconnected_hypergraph_reduces_to_a_forest() -> None:
    reduction = gyo(body("R(A,B), S(B), T(C), U()"))
    assert [str(tree) for tree in reduction.join_trees] == ["R(S)", "T", "U"]
    assert reduction.join_tree is None


def test_a_triangle_with_a_tail_leaves_the_triangle() -> None:
    reduction = gyo(body("R(A,B), S(B,C,X), T(C,A), U(C,D), V(D,E)"))
    assert not reduction.acyclic
    assert reduction.join_tree is None
    triangle = [("R", frozenset("AB")), ("S", frozenset("BC")), ("T", frozenset("AC"))]
    assert triangle == [(edge.label, edge.variables) for edge in reduction.residue]


def test_a_triangle_within_an_edge_is_acyclic() -> None:
    assert gyo(body("R(A,B), S(B,C), T(C,A), U(A,B,C)")).acyclic


def test_of_equal_edges_the_first_stays() -> None:
    _, left = reduce_edges([0b011, 0b110, 0b101, 0b011, 0b110])
    assert left == {0: 0b011, 1: 0b110, 2: 0b101}
