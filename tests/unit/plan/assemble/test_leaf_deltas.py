"""The deltas of a relation's leaves: loaded once, judged against old contents, committed once."""

from __future__ import annotations

from itertools import count

from ivme.plan.assemble.blueprint import Blueprint, IndicatorLeaf, Leaf, Node, Reading
from ivme.plan.assemble.catalog import catalog_of
from ivme.plan.assemble.leaf_deltas import LeafDeltas
from ivme.plan.assemble.leaves import leaves_of
from ivme.plan.assemble.storage import Storage
from ivme.query.rule import parse_rule
from ivme.structure.fracture import fracture
from ivme.structure.hypergraph import cqap_of


def deltas(text: str, *nodes: Leaf | IndicatorLeaf) -> LeafDeltas:
    query = parse_rule(text)
    storage = Storage(catalog_of({"": Blueprint(leaves_of(query, fracture(cqap_of(query))), (), (), Reading((), ()))}))
    numbers = count(1)
    return LeafDeltas(storage, nodes, lambda: f"d{next(numbers)}")


def printed(found: LeafDeltas, *stored: Node) -> list[str]:
    return [str(step) for step in found.steps(frozenset(found._storage.key(node) for node in stored))]


def committed(found: LeafDeltas) -> list[str]:
    return [str(step) for step in found.commit(lambda _: True)]


WHOLE, SUMMED = Leaf("R", ("A", "B")), Leaf("R", ("A",))


def test_a_sum_is_taken_from_the_change_that_was_loaded() -> None:
    found = deltas("Q(A) = R(A, B)", WHOLE, SUMMED)
    assert printed(found, WHOLE, SUMMED) == ["d1(A, B) := load R(A, B)", "d2(A) := sum d1"]
    assert committed(found) == ["R += d1", "R.2 += d2"]


def test_a_sum_is_loaded_even_if_the_whole_leaf_is_not_stored() -> None:
    found = deltas("Q(A) = R(A, B)", SUMMED)
    assert printed(found, SUMMED) == ["d1(A, B) := load R(A, B)", "d2(A) := sum d1"]
    assert committed(found) == ["R += d2"]


def test_occurrences_that_read_alike_are_loaded_once_and_renamed() -> None:
    one, other = Leaf("E#1", ("A", "B")), Leaf("E#2", ("B", "A"))
    found = deltas("Q(.|.) = E(A, B), E(B, A)", one, other)
    assert printed(found, one, other) == ["d1(A, B) := load E(A, B)"]
    assert found.origin(one) == ("d1", [])
    name, steps = found.origin(other)
    assert [str(step) for step in steps] == ["d2(B, A) := d1"]
    assert ("d2", []) == found.origin(other) == (name, [])
    assert "d1" == found.change(one) == found.change(other)
    assert committed(found) == ["E += d1"]


def test_a_sum_for_another_occurrence_uses_the_names_of_the_loaded_delta() -> None:
    one, other = Leaf("E#1", ("A", "B")), Leaf("E#2", ("C",))
    found = deltas("Q(.|.) = E(A, B), E(C, D)", one, other)
    assert printed(found, one, other) == ["d1(A, B) := load E(A, B)", "d2(A) := sum d1"]
    assert [str(step) for step in found.origin(other)[1]] == ["d3(C) := d2"]


def test_a_whole_indicator_changes_where_a_tuple_appears_or_disappears() -> None:
    indicator = IndicatorLeaf("R", ("A", "B"))
    found = deltas("Q(A) = R(A, B)", WHOLE, indicator)
    assert printed(found, WHOLE, indicator) == ["d1(A, B) := load R(A, B)", "d2(A, B) := ∃-changes of R by d1"]
    assert found.origin(indicator) == ("d2", [])
    assert found.origin(WHOLE) == ("d1", [])
    assert committed(found) == ["R += d1"]


def test_a_partial_indicator_counts_distinct_tuples_and_changes_with_their_count() -> None:
    indicator = IndicatorLeaf("R", ("A",))
    found = deltas("Q(A) = R(A, B)", WHOLE, indicator)
    expected = [
        "d1(A, B) := load R(A, B)",
        "d2(A, B) := ∃-changes of R by d1",
        "d3(A) := sum d2",
        "d4(A) := ∃-changes of ∃R by d3",
    ]
    assert expected == printed(found, WHOLE, indicator)
    assert (found.origin(indicator)[0], found.change(indicator)) == ("d4", "d3")
    assert committed(found) == ["R += d1", "∃R += d3"]


def test_only_maps_that_are_ready_take_their_delta_and_each_takes_it_once() -> None:
    found = deltas("Q(A) = R(A, B)", WHOLE, SUMMED)
    printed(found, WHOLE, SUMMED)
    assert list(found.commit(lambda _: False)) == []
    assert [str(step) for step in found.commit(lambda key: key[-1] == (0,))] == ["R.2 += d2"]
    assert committed(found) == ["R += d1"]
    assert committed(found) == []


def test_the_delta_of_a_leaf_that_is_not_stored_is_never_added() -> None:
    found = deltas("Q(A) = R(A, B)", WHOLE)
    printed(found)
    assert committed(found) == []


def test_a_sum_keeps_the_order_of_the_columns_that_its_map_has() -> None:
    summed = Leaf("R", ("C", "B"))
    found = deltas("Q(B, C) = R(C, X, B)", summed)
    assert printed(found, summed) == ["d1(C, X, B) := load R(C, X, B)", "d2(C, B) := sum d1"]
