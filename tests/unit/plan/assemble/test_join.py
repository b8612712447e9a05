"""Joins are lists of extensions: look-ups first, then block by block, through projections where they must."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ivme.plan.assemble.blueprint import Leaf
from ivme.plan.assemble.join import Extension, extensions


def leaf(text: str) -> Leaf:
    """`S:BC` is the leaf of S over B and C."""
    label, _, schema = text.partition(":")
    return Leaf(label, tuple(schema))


def joined(known: str, *nodes: str) -> list[tuple[str, list[str], list[str]]]:
    """The extensions as (new variables, labels read in full, labels read by projection)."""
    steps = extensions(frozenset(known), tuple(map(leaf, nodes)))
    return [("".join(s.new), [n.label for n in s.full if isinstance(n, Leaf)], _labels(s)) for s in steps]


def _labels(step: Extension) -> list[str]:
    return [node.label for node in step.partial if isinstance(node, Leaf)]


def test_nodes_whose_variables_are_known_are_looked_up_together() -> None:
    assert joined("AB", "S:A", "T:AB") == [("", ["S", "T"], [])]


def test_look_ups_come_before_anything_that_makes_the_delta_grow() -> None:
    assert joined("A", "S:AC", "T:A") == [("", ["T"], []), ("C", ["S"], [])]


def test_nodes_that_share_their_unknown_variables_are_intersected_in_one_step() -> None:
    """The triangle: C comes from both S and T."""
    assert joined("AB", "S:BC", "T:CA") == [("C", ["S", "T"], [])]


def test_variables_of_the_same_nodes_form_one_block() -> None:
    assert joined("A", "S:ACD", "T:CD") == [("CD", ["S", "T"], [])]


def test_nodes_that_share_nothing_unknown_are_read_one_after_the_other() -> None:
    assert joined("AB", "S:AC", "T:BD") == [("C", ["S"], []), ("D", ["T"], [])]


def test_a_node_with_unknown_variables_in_two_blocks_is_first_read_by_projection() -> None:
    """C is in S and T; S has D as well, so that only its projection to the known variables and C takes part."""
    assert joined("AB", "S:ACD", "T:BC") == [("C", ["T"], ["S"]), ("D", ["S"], [])]


def test_a_cycle_of_blocks_starts_with_projections_only() -> None:
    steps = joined("A", "S:ABC", "T:BD", "U:CD")
    assert steps[0] == ("B", [], ["S", "T"])
    assert steps[-1] == ("D", ["T", "U"], [])


def test_the_block_with_fewest_projections_comes_first_then_the_one_that_most_nodes_narrow_down() -> None:
    """{C} is in two full nodes, {D} in one."""
    assert joined("AB", "S:AD", "T:BC", "U:AC")[0][0] == "C"


def test_nothing_to_join_takes_no_step() -> None:
    assert joined("A") == []


SCHEMAS = st.lists(st.text("ABCDE", min_size=1, max_size=3).map(lambda text: "".join(sorted(set(text)))), max_size=5)


@given(st.sets(st.sampled_from("ABCDE")), SCHEMAS)
def test_each_node_is_read_in_full_once_and_only_when_its_variables_are_known(
    known: set[str], schemas: list[str]
) -> None:
    nodes = tuple(Leaf(f"R{i}", tuple(schema)) for i, schema in enumerate(schemas))
    have = set(known)
    read: list[object] = []
    for step in extensions(frozenset(known), nodes):
        assert have.isdisjoint(step.new)
        have.update(step.new)
        assert all(have.issuperset(node.schema) for node in step.full)
        assert all(set(step.new) <= set(node.schema) for node in (*step.full, *step.partial))
        assert not any(have.issuperset(node.schema) for node in step.partial)
        read += step.full
    assert len(nodes) == len(read)
    assert set(nodes) == set(read)


@given(st.sets(st.sampled_from("ABCDE")), SCHEMAS)
def test_every_node_that_knows_a_block_narrows_it_down(known: set[str], schemas: list[str]) -> None:
    """Worst-case optimality needs it: no node that could filter a block sits out."""
    waiting = [Leaf(f"R{i}", tuple(schema)) for i, schema in enumerate(schemas)]
    for step in extensions(frozenset(known), tuple(waiting)):
        taking_part = {*step.full, *step.partial}
        assert not step.new or taking_part == {node for node in waiting if set(step.new) & set(node.schema)}
        waiting = [node for node in waiting if node not in step.full]
