"""Fractional edge covers (source 003, section 2.5)."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest

from ivme.structure.hypergraph import Edge, Hypergraph
from ivme.structure.width import EdgeCovers, edge_cover, edge_cover_number
from tests.brute_force import cqap


def body(text: str) -> Hypergraph:
    return cqap(f"Q(.|.) = {text}").hypergraph


def test_three_halves_cover_the_triangle() -> None:
    """Example 2.21."""
    triangle = body("R(A,B), S(B,C), T(A,C)")
    half = Fraction(1, 2)
    assert Fraction(3, 2) == edge_cover_number(triangle, "ABC")
    assert {"R": half, "S": half, "T": half} == edge_cover(triangle, "ABC")


def test_without_the_third_edge_two_are_needed() -> None:
    """Example 4.11: what the indicator under C saves."""
    assert edge_cover_number(body("R2(B,C), R3(C,A)"), "ABC") == 2
    assert edge_cover_number(body("R2(B,C), R3(C,A)"), "BC") == 1


def test_the_empty_set_needs_no_edge() -> None:
    assert edge_cover_number(body("R(A)"), "") == 0
    assert edge_cover(body("R(A)"), "") == {}


def test_a_variable_in_no_edge_cannot_be_covered() -> None:
    with pytest.raises(ValueError, match="no edge covers Z"):
        edge_cover_number(body("R(A)"), "AZ")


@pytest.mark.parametrize("degree", [3, 4, 5, 6])
def test_loomis_whitney_bodies_have_cover_number_n_over_n_minus_one(degree: int) -> None:
    """Chapter 9: the result of the full query has size N^(n/(n-1))."""
    names = "ABCDEF"[:degree]
    edges = tuple(Edge(missing, frozenset(names) - {missing}) for missing in names)
    assert Fraction(degree, degree - 1) == edge_cover_number(Hypergraph(edges), names)


@pytest.mark.parametrize("size", [4, 5, 9, 10])
def test_half_of_a_clique_covers_it(size: int) -> None:
    names = "ABCDEFGHIJ"[:size]
    edges = tuple(Edge(f"R{i}", frozenset(pair)) for i, pair in enumerate(combinations(names, 2)))
    assert Fraction(size, 2) == edge_cover_number(Hypergraph(edges), names)


def test_odd_cycles_need_half_an_edge_more_than_even_ones() -> None:
    assert edge_cover_number(body("R(A,B), S(B,C), T(C,D), U(D,A)"), "ABCD") == 2
    assert Fraction(5, 2) == edge_cover_number(body("R(A,B), S(B,C), T(C,D), U(D,E), V(E,A)"), "ABCDE")


def test_covers_of_parts_that_hang_apart_add_up() -> None:
    assert Fraction(5, 2) == edge_cover_number(body("R(A,B), S(B,C), T(C,A), U(D,E)"), "ABCDE")


def test_the_fano_plane_has_cover_number_seven_thirds() -> None:
    """Seven lines of three points each: a third of every line, and no edge covers more than three points."""
    fano = body("R1(A,B,C), R2(A,D,E), R3(A,F,G), R4(B,D,F), R5(B,E,G), R6(C,D,G), R7(C,E,F)")
    assert Fraction(7, 3) == edge_cover_number(fano, "ABCDEFG")


def test_masks_and_names_translate_both_ways() -> None:
    covers = EdgeCovers(body("R(B,A), S(C)"))
    assert covers.mask("CA") == 0b101
    assert frozenset("AC") == covers.variables(0b101)
