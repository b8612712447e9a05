"""Fractures (source 003, section 3.1.1)."""

from __future__ import annotations

from ivme.structure.fracture import fracture
from tests.brute_force import cqap


def test_the_four_cycle_with_opposite_inputs_falls_in_two() -> None:
    """Example 3.2, with the inputs that its figure has."""
    broken = fracture(cqap("Q(B, D | A, C) = R(A,B), S(B,C), T(C,D), U(A,D)"))
    assert cqap("Q(B, D | A_1, A_2, C_1, C_2) = R(A_1,B), S(B,C_1), T(C_2,D), U(A_2,D)") == broken.whole
    assert ["".join(edge.label for edge in part.hypergraph.edges) for part in broken.components] == ["RS", "TU"]
    assert [broken.original(variable) for variable in ("A_1", "A_2", "B", "C_2")] == ["A", "A", "B", "C"]


def test_copies_that_meet_in_one_component_are_merged_again() -> None:
    """Example 3.3: the triangle with one input is its own fracture."""
    triangle = cqap("Q(B, C | A) = R(A,B), S(B,C), T(C,A)")
    assert triangle == fracture(triangle).whole
    assert (triangle,) == fracture(triangle).components


def test_an_input_in_two_components_gets_a_copy_in_each() -> None:
    """Example 4.2."""
    broken = fracture(cqap("Q(B, C, D, E | A) = R(A,B,C), S(A,B,D), T(A,E)"))
    expected = (
        cqap("Q(B, C, D | A_1) = R(A_1,B,C), S(A_1,B,D)"),
        cqap("Q(E | A_2) = T(A_2,E)"),
    )
    assert expected == broken.components


def test_an_atom_of_inputs_alone_is_a_component() -> None:
    """Example 3.9, the query Q_2."""
    assert cqap("Q(A | B_1, B_2) = S(A,B_1), T(B_2)") == fracture(cqap("Q(A | B) = S(A,B), T(B)")).whole


def test_a_query_without_inputs_is_its_own_fracture() -> None:
    query = cqap("Q(A | .) = R(A,B), S(B), T(C), U()")
    assert query == fracture(query).whole
    assert len(fracture(query).components) == 3


def test_copies_do_not_clash_with_variables_of_the_query() -> None:
    broken = fracture(cqap("Q(A_2, B | A) = R(A,A_2), S(A,B)"))
    assert frozenset({"A__1", "A__2"}) == broken.whole.input
    assert frozenset({"A_2", "B"}) == broken.whole.output


def test_copies_of_two_inputs_do_not_clash_with_each_other() -> None:
    broken = fracture(cqap("Q(. | A, A_) = R(A,A_), S(A,A_)"))
    assert len(broken.whole.input) == 4


def test_ordered_variables_stay_ordered() -> None:
    assert frozenset("B") == fracture(cqap("Q(. | A) = R(A,B), S(A)", ordered="B")).whole.ordered
