"""Join trees with a chosen root, and what hangs below a set of variables."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.structure.classify import is_acyclic
from ivme.structure.hypergraph import Edge, Hypergraph, JoinTree, cqap_of, gyo
from ivme.structure.join_tree import hanging, height, rerooted
from tests.example_counts import examples
from tests.random_queries import queries


def edges(*schemas: str) -> list[Edge]:
    """Edges named by their variables, which are letters."""
    return [Edge(schema, frozenset(schema)) for schema in schemas]


def variables(tree: JoinTree) -> set[str]:
    return set(tree.label).union(*(variables(child) for child in tree.children))


def is_join_tree(tree: JoinTree) -> bool:
    """What a child's subtree shares with the rest of the tree lies in both ends of the edge between them."""
    for child in tree.children:
        others = [variables(other) for other in tree.children if other is not child]
        if not variables(child) & set(tree.label).union(*others) <= set(tree.label) & set(child.label):
            return False
    return all(is_join_tree(child) for child in tree.children)


def test_any_node_can_be_the_root() -> None:
    path = gyo(Hypergraph(tuple(edges("AB", "BC", "CD", "DE")))).join_tree
    assert path is not None
    for label in ("AB", "BC", "CD", "DE"):
        tree = rerooted(path, label)
        assert label == tree.label
        assert is_join_tree(tree)


def test_a_root_that_is_not_in_the_tree_is_an_error() -> None:
    with pytest.raises(KeyError, match="XY"):
        rerooted(JoinTree("AB"), "XY")


def test_the_root_covers_the_set_and_the_tree_is_low() -> None:
    (tree,) = hanging(edges("AB", "BC", "CD", "DE"), frozenset("")) or ()
    assert (tree.label, height(tree)) == ("BC", 2)
    (tree,) = hanging(edges("AB", "BC", "CD", "DE"), frozenset("E")) or ()
    assert (tree.label, height(tree)) == ("DE", 3)


def test_a_set_that_no_edge_covers_has_one_tree_for_each_part_of_it() -> None:
    trees = hanging(edges("AB", "BC", "CD"), frozenset("ABCD"))
    assert {"AB", "BC", "CD"} == {tree.label for tree in trees or ()}


def test_components_hang_beside_one_another() -> None:
    assert {"AB", "CD", ""} == {tree.label for tree in hanging(edges("AB", "CD", ""), frozenset("AC")) or ()}


@pytest.mark.parametrize(("schemas", "top"), [(("AB", "BC", "CA"), ""), (("AB", "BC"), "AC")])
def test_a_cycle_hangs_nowhere(schemas: tuple[str, ...], top: str) -> None:
    assert hanging(edges(*schemas), frozenset(top)) is None


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_trees_hang_below_a_set_unless_it_closes_a_cycle(data: st.DataObject) -> None:
    cqap = cqap_of(data.draw(queries()))
    with_top = Hypergraph((*cqap.hypergraph.edges, Edge("top", cqap.free)))
    assert is_acyclic(with_top) == (hanging(cqap.hypergraph.edges, cqap.free) is not None)
