"""Join trees with a root of one's choice, and what hangs below a set of variables (source 002, section 2.2).

GYO finds some join tree; any of its nodes can be made the root, as being a join tree does not depend on it. Below a set
of variables, which need not be an edge, hang the trees of which each holds its own part of the set in its root.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from ivme.structure.hypergraph import Edge, Hypergraph, JoinTree, gyo

TOP = "⊤"
"""The label of the edge that stands for the set; no relation has it."""


def rerooted(tree: JoinTree, label: str) -> JoinTree:
    """The same tree with another root; children keep their order, and the old parent comes last.

    >>> from ivme.structure.hypergraph import JoinTree
    >>> str(rerooted(JoinTree("R", (JoinTree("S", (JoinTree("T"),)), JoinTree("U"))), "S"))
    'S(T, R(U))'
    """
    path = _path(tree, label)
    if path is None:
        raise KeyError(label)
    above: tuple[JoinTree, ...] = ()
    for parent, child in pairwise(path):
        rest = tuple(other for other in parent.children if other is not child)
        above = (JoinTree(parent.label, rest + above),)
    return JoinTree(path[-1].label, path[-1].children + above)


def height(tree: JoinTree) -> int:
    """How many edges lead from the root to the lowest leaf."""
    return max((1 + height(child) for child in tree.children), default=0)


def hanging(edges: Iterable[Edge], top: frozenset[str]) -> tuple[JoinTree, ...] | None:
    """Join trees of all edges: what a tree has of `top`, and what two trees share, lies in their roots and in `top`.

    None if there are no such trees: the edges together with `top` form a cycle. Of several possible roots the one with
    the lowest tree is taken, the first of those that are equal.
    """
    trees: list[JoinTree] = []
    for component in Hypergraph(tuple(edges)).components():
        wanted = top & component.vertices
        roots = [edge.label for edge in component.edges if wanted <= edge.variables]
        whole = component if roots else Hypergraph((*component.edges, Edge(TOP, wanted)))
        tree = gyo(whole).join_tree
        if tree is None:
            return None
        if roots:
            trees.append(min((rerooted(tree, root) for root in roots), key=height))
        else:
            trees += rerooted(tree, TOP).children
    return tuple(trees)


def _path(tree: JoinTree, label: str) -> list[JoinTree] | None:
    if tree.label == label:
        return [tree]
    for child in tree.children:
        below = _path(child, label)
        if below is not None:
            return [tree, *below]
    return None
