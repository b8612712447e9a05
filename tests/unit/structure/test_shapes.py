"""Triangles, Loomis-Whitney bodies, paths and cycles."""

from __future__ import annotations

import pytest

from ivme.structure.shapes import is_four_cycle, is_four_path, is_three_path, loomis_whitney_degree, triangle_class
from tests.brute_force import cqap


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (". | A, B, C", "C_lookup"),
        (". | .", "C_count"),
        ("A | .", "C1"),
        (". | A", "C1"),
        ("B | A", "C1"),
        ("B, C | A", "C1"),
        ("A, B | .", "C2"),
        (". | A, B", "C2"),
        ("C | A, B", "C2"),
        ("A, B, C | .", "C3"),
    ],
)
def test_triangles_are_named_by_their_access_pattern(pattern: str, name: str) -> None:
    """The table of section 3.2.2, complete up to renaming."""
    assert name == triangle_class(cqap(f"Q({pattern}) = R(A,B), S(B,C), T(C,A)"))


def test_the_order_and_names_of_a_triangles_atoms_do_not_matter() -> None:
    assert triangle_class(cqap("Q(Y | .) = P(X,Z), Q(Z,Y), R(Y,X)")) == "C1"


@pytest.mark.parametrize(
    "body", ["R(A,B), S(B,C)", "R(A,B), S(B,C), T(A,B)", "R(A,B), S(B,C), T(C,A), U(A)", "R(A,B,C)"]
)
def test_other_bodies_are_no_triangles(body: str) -> None:
    assert triangle_class(cqap(f"Q(.|.) = {body}")) is None


def test_loomis_whitney_bodies_have_all_but_one_variable_in_each_atom() -> None:
    assert loomis_whitney_degree(cqap("Q(.|.) = R(A,B), S(B,C), T(C,A)").hypergraph) == 3
    assert loomis_whitney_degree(cqap("Q(.|.) = R(A,B,C), S(B,C,D), T(C,D,A), U(D,A,B)").hypergraph) == 4
    assert loomis_whitney_degree(cqap("Q(.|.) = R(A,B,C), S(B,C,D), T(C,D,A)").hypergraph) is None
    assert loomis_whitney_degree(cqap("Q(.|.) = R(A,B,C), S(B,C,D), T(C,D,A), U(C,D,A)").hypergraph) is None
    assert loomis_whitney_degree(cqap("Q(.|.) = R(A), S(B)").hypergraph) is None


def test_paths_are_recognised_in_any_order_of_atoms() -> None:
    assert is_four_path(cqap("Q(.|.) = T(C,D), R(A,B), U(D,E), S(B,C)").hypergraph)
    assert is_three_path(cqap("Q(.|.) = R(A,B), T(C,D), S(B,C)").hypergraph)
    assert not is_four_path(cqap("Q(.|.) = R(A,B), S(B,C), T(C,D)").hypergraph)
    assert not is_four_path(cqap("Q(.|.) = R(A,B), S(B,C), T(C,D), U(B,E)").hypergraph)


def test_a_triangle_beside_an_edge_is_no_path() -> None:
    """Its degrees are those of no path, but those of a path are also met by parts that hang apart."""
    assert not is_four_path(cqap("Q(.|.) = R(A,B), S(B,C), T(C,A), U(D,E)").hypergraph)


def test_two_double_edges_are_no_four_cycle() -> None:
    assert is_four_cycle(cqap("Q(.|.) = R(A,B), S(C,D), T(C,B), U(D,A)").hypergraph)
    assert not is_four_cycle(cqap("Q(.|.) = R(A,B), S(A,B), T(C,D), U(C,D)").hypergraph)
    assert not is_four_cycle(cqap("Q(.|.) = R(A,B), S(B,C), T(C,A), U(A,D)").hypergraph)
