"""Classes of queries (source 003, sections 2.3, 3.2, 5.6 and chapter 7)."""

from __future__ import annotations

import pytest

from ivme.plan.order.search import best_order
from ivme.structure.classify import (
    classify,
    dominates,
    is_almost_free_dominant,
    is_almost_input_dominant,
    is_cqap1,
    is_free_connex,
    is_free_dominant,
    is_hierarchical,
    is_input_dominant,
    is_q_hierarchical,
)
from ivme.structure.fracture import fracture
from tests.brute_force import cqap


def test_nested_and_disjoint_atoms_are_hierarchical_and_crossed_ones_are_not() -> None:
    """Example 2.6."""
    assert is_hierarchical(cqap("Q(.|.) = R(A,B), S(B,C)").hypergraph)
    assert not is_hierarchical(cqap("Q(.|.) = R(A,B), S(B,C), T(C,D)").hypergraph)


def test_dominance_is_strict() -> None:
    hypergraph = cqap("Q(.|.) = R(A,B,C), S(B,C)").hypergraph
    assert dominates(hypergraph, "B", "A")
    assert not dominates(hypergraph, "A", "B")
    assert not dominates(hypergraph, "B", "C")


def test_the_four_cycle_with_opposite_inputs_is_in_cqap1() -> None:
    """Example 3.9, the query Q_1."""
    query = cqap("Q(A, C | B, D) = R(A,B), S(B,C), T(C,D), U(A,D)")
    assert is_input_dominant(query)
    assert is_free_dominant(query)
    assert not is_hierarchical(query.hypergraph)
    whole = fracture(query).whole
    assert is_hierarchical(whole.hypergraph)
    assert not is_input_dominant(whole)
    assert is_almost_input_dominant(whole)
    found = classify(query)
    assert (found.cqap0, found.cqap1, found.query_class) == (False, True, "CQAP1")


def test_an_input_below_an_output_is_in_cqap0_when_the_fracture_parts_them() -> None:
    """Example 3.9, the queries Q_2 and Q_3."""
    assert classify(cqap("Q(A | B) = S(A,B), T(B)")).query_class == "CQAP0"
    assert classify(cqap("Q(B | A) = S(A,B), T(B)")).query_class == "CQAP1"


@pytest.mark.parametrize("head", ["Q(A | .)", "Q(B | A)", "Q(. | A)"])
def test_the_smallest_queries_outside_cqap0_with_a_hierarchical_fracture_are_in_cqap1(head: str) -> None:
    assert classify(cqap(f"{head} = R(A,B), S(B)")).query_class == "CQAP1"


@pytest.mark.parametrize(
    ("text", "kind", "why"),
    [
        (
            "Q(A | .) = R(A), S(A,B), T(B)",
            "not hierarchical",
            "A and B are crossed: R has A but not B, S has both, T has B but not A",
        ),
        ("Q(A | .) = R(A,B), S(B)", "not free-dominant", "B dominates A, A is free and B is bound"),
        ("Q(. | A) = R(A,B), S(B)", "not free-dominant", "B dominates A, A is free and B is bound"),
        ("Q(B | A) = R(A,B), S(B)", "not input-dominant", "B dominates A, A is input and B is not"),
    ],
)
def test_the_smallest_hard_queries_show_their_obstacle(text: str, kind: str, why: str) -> None:
    """Chapter 7. Its Q_3 is not input-dominant and, since its B is bound, not free-dominant either."""
    found = classify(cqap(text))
    assert not found.cqap0
    assert found.obstacle is not None
    assert (kind, why) == (found.obstacle.kind, found.obstacle.text)


def test_an_obstacle_in_the_fracture_has_the_names_of_the_query() -> None:
    found = classify(cqap("Q(C, D | A) = R(A,C), S(C), T(A,D)"))
    assert found.obstacle is not None
    assert found.obstacle.variables == ("A", "C")
    assert found.obstacle.edges == ("R", "S")
    assert found.obstacle.text == "C dominates A, A is input and C is not"


def test_a_query_in_cqap0_has_no_obstacle() -> None:
    assert classify(cqap("Q(B, C, D, E | A) = R(A,B,C), S(A,B,D), T(A,E)")).obstacle is None


def test_almost_dominance_on_one_side_does_not_make_up_for_the_other() -> None:
    """Definition 3.8 read alone admits this query ("or"); its dynamic width is 2, and Proposition 5.30 says 1.

    The part over X and Y is almost free-dominant. An update of R leaves B and C, which take two atoms to cover.
    """
    query = cqap("Q(Z, X | A, B, C) = R(Z,A), S(Z,B), T(Z,C), U(X,Y), V(Y)")
    assert is_almost_free_dominant(query)
    assert not is_almost_input_dominant(query)
    assert not is_cqap1(query)
    assert best_order(query).widths.dynamic == 2


def test_both_sides_may_be_almost_dominant() -> None:
    query = cqap("Q(Z, X | A, B) = R(Z,A), S(Z,B), U(X,Y), V(Y)")
    assert is_almost_free_dominant(query)
    assert is_almost_input_dominant(query)
    assert is_cqap1(query)
    assert best_order(query).widths.dynamic == 1


def test_an_ordered_variable_that_dominates_a_group_keeps_the_query_out_of_cqap0() -> None:
    """MIN(B) per A in R(A,B), S(B): an update of S may change every group."""
    found = classify(cqap("Q(A | .) = R(A,B), S(B)", ordered="B"))
    assert (found.cqap0, found.cqap1) == (False, True)
    assert found.obstacle is not None
    assert found.obstacle.text == "B dominates A, A is grouped by and B is ordered within the groups"
    assert classify(cqap("Q(A | .) = R(A,B), S(A)", ordered="B")).cqap0


def test_q_hierarchical_is_hierarchical_and_free_dominant() -> None:
    assert is_q_hierarchical(cqap("Q(B | .) = R(A,B), S(B)"))
    assert not is_q_hierarchical(cqap("Q(A | .) = R(A,B), S(B)"))


def test_the_free_ends_of_a_path_are_not_free_connex() -> None:
    assert is_free_connex(cqap("Q(A, B | .) = R(A,B), S(B,C)"))
    assert is_free_connex(cqap("Q(. | .) = R(A,B), S(B,C)"))
    assert not is_free_connex(cqap("Q(A, C | .) = R(A,B), S(B,C)"))
    assert not is_free_connex(cqap("Q(A, B, C | .) = R(A,B), S(B,C), T(C,A)"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Q(A | A1) = R(A,A1)", "CQAP0"),
        ("Q(. | .) = R(A,B), S(B,C), T(C,A)", "triangle/C_count"),
        ("Q(. | A, B) = R(A,B), S(B,C), T(C,A)", "triangle/C2"),
        ("Q(. | A, B, C) = R(A,B), S(B,C), T(C,A)", "CQAP0"),
        ("Q(C, D | E) = R(A,B,C), S(A,B,D), T(A,E)", "hierarchical"),
        ("Q(A | .) = R(A,B,C), S(B,C,D), T(C,D,A), U(D,A,B)", "loomis-whitney"),
        ("Q(. | .) = R(A,B), S(B,C), T(C,D), U(D,E)", "path-4"),
        ("Q(. | .) = R(A,B), S(B,C), T(C,D), U(D,A)", "cycle-4"),
        ("Q(. | .) = R(A,B), S(B,C), T(C,D)", "free-connex"),
        ("Q(A, D | .) = R(A,B), S(B,C), T(C,D)", "acyclic"),
        ("Q(. | .) = R(A,B), S(B,C), T(C,D), U(D,E), V(E,A)", "cyclic"),
    ],
)
def test_the_class_of_a_query_is_the_first_that_holds(text: str, name: str) -> None:
    assert name == classify(cqap(text)).query_class
