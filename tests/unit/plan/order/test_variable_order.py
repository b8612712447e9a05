"""Variable orders, ACC-TOP, indicators and widths (source 003, sections 2.4, 4.1, 4.3 and 5.2)."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from ivme.errors import PlanError
from ivme.plan.order.variable_order import (
    Indicator,
    VariableOrder,
    acc_top,
    canonical,
    is_access_top,
    is_canonical,
    is_valid,
    order_of,
)
from ivme.plan.order.widths import Widths, widths, with_indicators
from ivme.structure.fracture import fracture
from ivme.structure.hypergraph import Cqap
from tests.brute_force import cqap

TRIANGLE = cqap("Q(A, B | .) = R(A,B), S(B,C), T(A,C)")
STAR = cqap("Q(B | A) = R(A,B,C), S(A,B,D), T(A,E)")
TAILED = cqap(
    "Q(A, B, C, D, E, F, G, H, J | .) = R1(A,B), R2(B,C), R3(C,A), R4(A,D), R5(D,E), R6(B,F), R7(F,G), R8(C,H), R9(H,J)"
)


def order(query: Cqap, *paths: str) -> VariableOrder:
    """The order whose root-to-leaf paths are given, as in `order(query, "ABC", "ABD")`."""
    above = {low: high for path in paths for high, low in itertools.pairwise(path)}
    return order_of(query, {variable: above.get(variable) for path in paths for variable in path})


def dependencies(of: VariableOrder) -> dict[str, str]:
    return {node.variable: "".join(sorted(node.dependency)) for node in of.walk()}


def test_dependency_sets_are_the_ancestors_that_the_subtree_depends_on() -> None:
    """Example 2.8. Its text swaps A and B of the first order, which has the path C, A, B (Example 2.12)."""
    assert dependencies(order(TRIANGLE, "CAB")) == {"C": "", "A": "C", "B": "AC"}
    expected = {"A": "", "B": "A", "C": "AB", "D": "AB", "E": "A"}
    assert expected == dependencies(order(STAR, "ABC", "ABD", "AE"))


def test_each_atom_hangs_below_its_lowest_variable() -> None:
    """Example 2.24."""
    atoms = {node.variable: node.atoms for node in order(STAR, "ABC", "ABD", "AE").walk()}
    assert atoms == {"A": (), "B": (), "C": ("R",), "D": ("S",), "E": ("T",)}


def test_an_order_whose_paths_are_the_atoms_is_canonical() -> None:
    """Example 2.14."""
    assert not is_canonical(order(TRIANGLE, "CAB"), TRIANGLE.hypergraph)
    assert is_canonical(order(STAR, "ABC", "ABD", "AE"), STAR.hypergraph)
    assert order(STAR, "ABC", "ABD", "AE") == canonical(STAR)


def test_access_top_orders_have_inputs_over_outputs_over_bound_variables() -> None:
    """Example 2.16."""
    assert not is_access_top(order(TRIANGLE, "CAB"), TRIANGLE)
    assert is_access_top(order(TRIANGLE, "ABC"), TRIANGLE)
    assert is_access_top(order(STAR, "ABC", "ABD", "AE"), STAR)


def test_ordered_variables_lie_below_the_other_free_ones() -> None:
    query = cqap("Q(A | .) = R(A,B,C)", ordered="B")
    assert is_access_top(order(query, "ABC"), query)
    assert not is_access_top(order(query, "BAC"), query)
    assert not is_access_top(order(query, "ACB"), query)


def test_static_widths_are_the_greatest_cover_numbers_of_bags() -> None:
    """Example 2.21."""
    assert Fraction(3, 2) == widths(order(TRIANGLE, "CAB"), TRIANGLE).static
    assert widths(order(STAR, "ABC", "ABD", "AE"), STAR).static == 1


def test_a_query_in_cqap0_has_an_order_of_dynamic_width_zero() -> None:
    """Examples 4.1, 4.2 and 5.2: the canonical order of the fracture is access-top and has no indicators."""
    whole = fracture(cqap("Q(B, C, D, E | A) = R(A,B,C), S(A,B,D), T(A,E)")).whole
    found = with_indicators(canonical(whole), whole)
    assert is_access_top(found, whole)
    assert canonical(whole) == found == acc_top(found, whole)
    assert Widths(Fraction(0), Fraction(1)) == widths(found, whole)
    assert [root.variable for root in found.roots] == ["A_1", "A_2"]


def test_an_input_below_a_bound_variable_costs_a_quadratic_view() -> None:
    """Example 4.3, with B bound as in its query: A_1 and C are inputs, D is output."""
    query = cqap("Q(D | A, C) = R(A,B,C), S(A,B,D)")
    found = order(query, "ACDB")
    assert is_access_top(found, query)
    assert Widths(Fraction(1), Fraction(2)) == widths(found, query)


def test_the_relation_above_a_cycle_becomes_an_indicator_within_it() -> None:
    """Examples 4.4, 4.6 and 4.10."""
    query = cqap("Q(B, C | A) = R(A,B), S(B,C), T(C,A)")
    found = with_indicators(order(query, "ABC"), query)
    assert (Indicator("R", frozenset("AB")),) == found.node("C").indicators
    assert () == found.node("A").indicators == found.node("B").indicators
    assert Widths(Fraction(1), Fraction(3, 2)) == widths(found, query)


def test_a_diagonal_is_an_indicator_in_both_of_its_triangles() -> None:
    """The query Q_square of section 4.1.3 with the diagonal W(A, C) of erratum 4."""
    query = cqap("Q(A, B, C, D | .) = R(A,B), S(B,C), T(C,D), U(D,A), W(A,C)")
    found = with_indicators(order(query, "ACB", "ACD"), query)
    diagonal = (Indicator("W", frozenset("AC")),)
    assert diagonal == found.node("B").indicators == found.node("D").indicators


def test_an_indicator_saves_half_an_exponent_in_the_triangle_with_tails() -> None:
    """Example 4.11. Without the indicator, the view at C is covered by R2 and R3 alone, which takes 2."""
    plain = order(TAILED, "ABCHJ", "ABFG", "ADE")
    found = with_indicators(plain, TAILED)
    assert (Indicator("R1", frozenset("AB")),) == found.node("C").indicators
    assert Widths(Fraction(3, 2), Fraction(3, 2)) == widths(found, TAILED)
    assert found.node("C").subtree_atoms == ("R2", "R3", "R8", "R9")


def test_an_indicator_is_not_repeated_further_up() -> None:
    query = cqap("Q(A, B, C, D | .) = R(A,B), S(B,C,D), T(C,D,A)")
    found = with_indicators(order(query, "ABCD"), query)
    assert found.node("C").indicators == ()
    assert (Indicator("R", frozenset("AB")),) == found.node("D").indicators == found.node("C").subtree_indicators


def test_a_schema_is_projected_from_one_relation_only() -> None:
    query = cqap("Q(A, B, C | .) = P(A,B), R(A,B), S(B,C), T(C,A)")
    found = with_indicators(order(query, "ABC"), query)
    assert (Indicator("P", frozenset("AB")),) == found.node("C").indicators


def test_an_update_of_an_indicator_counts_for_the_dynamic_width() -> None:
    """At D, S leaves A and E to U, and U leaves C and F to S; the indicator T(A,F) leaves C, D and E to both."""
    query = cqap("Q(.|.) = R(C,F), S(C,D,F), T(A,F), U(A,D,E)")
    plain = order(query, "ACFED")
    found = with_indicators(plain, query)
    assert (Indicator("T", frozenset("AF")),) == found.node("D").indicators
    assert widths(plain, query).dynamic == 1
    assert widths(found, query).dynamic == 2


def test_acc_top_puts_free_variables_over_bound_ones_and_inputs_first() -> None:
    """Example 5.3."""
    query = cqap("Q(C, D | E) = R(A,B,C), S(A,B,D), T(A,E)")
    assert order(query, "ABC", "ABD", "AE") == canonical(query)
    assert order(query, "ECDAB") == acc_top(canonical(query), query)


def test_twins_come_by_tier_in_a_canonical_order() -> None:
    query = cqap("Q(C | D) = R(A,B,C,D), S(A,B,C,D)")
    assert order(query, "DCAB") == canonical(query)


def test_only_hierarchical_queries_have_a_canonical_order() -> None:
    with pytest.raises(PlanError, match="hierarchical"):
        canonical(TRIANGLE)


def test_atoms_without_variables_are_kept_beside_the_trees() -> None:
    query = cqap("Q(A | .) = R(A), S()")
    assert order(query, "A").nullary == ("S",)
    assert is_valid(order(query, "A"), query)


def test_an_order_that_parts_an_atom_is_refused() -> None:
    with pytest.raises(PlanError, match=r"R\(A, B, C\) are not on one path"):
        order(STAR, "AB", "AC", "AD", "AE")


def test_an_order_with_a_missing_variable_is_refused() -> None:
    with pytest.raises(PlanError, match="not so for E"):
        order(STAR, "ABC", "ABD")


def test_a_circle_of_parents_is_refused() -> None:
    with pytest.raises(PlanError, match="not a forest"):
        order_of(TRIANGLE, {"A": "B", "B": "A", "C": None})


def test_an_order_for_another_query_is_not_valid() -> None:
    assert is_valid(order(TRIANGLE, "ABC"), TRIANGLE)
    assert not is_valid(order(TRIANGLE, "ABC"), cqap("Q(A, B | .) = R(A,B), S(B,C)"))
    assert not is_valid(order(TRIANGLE, "ABC"), STAR)


def test_an_order_draws_itself_with_dependency_sets_atoms_and_indicators() -> None:
    query = cqap("Q(B, C | A) = R(A,B), S(B,C), T(C,A), U(A,D), V()")
    expected = """\
A {}
├─ B {A} R
│  └─ C {A, B} S, T, ∃R(A, B)
└─ D {A} U
V"""
    assert expected == str(with_indicators(order(query, "ABC", "AD"), query))
