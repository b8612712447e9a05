"""The leaves of a plan: sources under the fracture's names, NULLs that never join, slots of the payload."""

from __future__ import annotations

from ivme.plan.assemble.leaves import Leaves, leaves_of
from ivme.plan.ir.program import Lift
from ivme.query.aggregates import payload_slots
from ivme.query.rule import parse_rule
from ivme.structure.fracture import fracture
from ivme.structure.hypergraph import cqap_of


def leaves(text: str) -> Leaves:
    query = parse_rule(text)
    return leaves_of(query, fracture(cqap_of(query)))


def test_variables_bear_the_names_of_the_fracture_in_the_order_of_the_atom() -> None:
    """Example 4.1: A falls apart into A_1 and A_2."""
    found = leaves("Q(B, C, D, E | A) = R(C, B, A), S(A, B, D), T(A, E)")
    assert found.schemas == {"R": ("C", "B", "A_1"), "S": ("A_1", "B", "D"), "T": ("A_2", "E")}
    assert found.inputs == (("A_1", "A"), ("A_2", "A"))
    assert found.outputs == ("B", "C", "D", "E")


def test_occurrences_of_a_relation_have_labels_of_their_own() -> None:
    assert list(leaves("Q(A, B) = E(A, B), E(B, A)").schemas) == ["E#1", "E#2"]


def test_a_variable_that_joins_or_is_an_input_is_never_null() -> None:
    found = leaves("Q(A, D | C) = R(A, B, C), S(B, D)")
    assert found.source("R").not_null == (1, 2)
    assert found.source("S").not_null == (0,)


def test_a_variable_that_repeats_in_one_atom_is_never_null() -> None:
    assert leaves("Q(A, B) = R(A, A, B)").source("R").not_null == (0,)


def test_a_variable_that_occurs_once_and_is_no_input_may_be_null() -> None:
    assert leaves("Q(A, B) = R(A, B)").source("R").not_null == ()


def test_sums_and_averages_share_a_slot_for_the_count_of_values() -> None:
    query = parse_rule("Q(A, SUM(X), AVG(X), COUNT(Y), MIN(Z), COUNT) = R(A, X, Y, Z)")
    assert payload_slots(query) == (("count", "X"), ("sum", "X"), ("count", "Y"))


def test_a_plain_count_and_ordered_aggregates_need_no_slot() -> None:
    assert payload_slots(parse_rule("Q(A, COUNT, MIN(X), COUNT(DISTINCT X)) = R(A, X)")) == ()


def test_each_slot_is_lifted_by_the_first_atom_with_its_variable_only() -> None:
    found = leaves("Q(A, SUM(X), SUM(Y)) = R(A, X), S(X, Y), T(Y)")
    assert (Lift("count", 1), Lift("sum", 1), None, None) == found.source("R").lifts
    assert (None, None, Lift("count", 1), Lift("sum", 1)) == found.source("S").lifts
    assert found.source("T").lifts == ()
    assert found.slots == (("count", "X"), ("sum", "X"), ("count", "Y"), ("sum", "Y"))


def test_a_lift_counts_columns_among_the_variables_of_the_atom() -> None:
    """X is the third term of R but its second variable."""
    assert (Lift("count", 1), Lift("sum", 1)) == leaves("Q(A, SUM(X)) = R(A, 7, X)").source("R").lifts


def test_a_source_prints_as_its_atom() -> None:
    assert str(leaves("Q(A) = R(A, 7)").source("R")) == "R(A, 7)"
