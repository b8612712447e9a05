"""The blueprint of view trees: how changes climb them and how rows are read off them.

A change climbs from its leaf to the root, joining the siblings on its way (Figure 4.11). Rows are read by nested
iterators over the views of the free variables (Figure 4.9), and a row's payload is the product of the views that
hold it (Figure 4.10). A view whose only child is the view of another free variable needs no iterator of its own:
the child's iterates over both variables at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ivme.plan.assemble.blueprint import (
    Blueprint,
    Definition,
    IndicatorLeaf,
    Iteration,
    Leaf,
    Node,
    Propagation,
    Reading,
    Rule,
    StoredView,
)
from ivme.plan.assemble.leaves import Leaves
from ivme.plan.ir.program import Source
from ivme.plan.order.view_tree import ViewNode
from ivme.structure.hypergraph import Cqap, Hypergraph

PART = ".part"
"""What the names of views end with that are read at requests: the same view may be a tree of its own while its changes
are followed, and a map is known by its name."""


@dataclass(frozen=True, slots=True)
class Trees:
    """View trees together with what is needed to read them."""

    roots: tuple[ViewNode, ...]
    cqap: Cqap
    sources: Mapping[str, Source]
    suffix: str

    def node(self, tree: ViewNode) -> Node:
        """The blueprint's node: a tree over a single atom is just that atom, summed."""
        if tree.kind == "indicator" and tree.label is not None:
            return IndicatorLeaf(tree.label, tree.schema)
        if len(tree.atoms) == 1 and not tree.indicators:
            return self.leaf(tree.atoms[0], frozenset(tree.schema))
        return StoredView(tree.name + self.suffix, tree.schema, tree.kind, tree.atoms, tree.indicators)

    def leaf(self, label: str, variables: frozenset[str]) -> Leaf:
        return Leaf(label, tuple([variable for variable in self.sources[label].schema if variable in variables]))

    def is_free(self, variable: str) -> bool:
        return variable in self.cqap.output or variable in self.cqap.input


def tree_blueprint(
    roots: tuple[ViewNode, ...],
    cqap: Cqap,
    leaves: Leaves,
    extremes: tuple[str, ...] = (),
    suffix: str = "",
) -> Blueprint:
    """The blueprint of the trees of one fracture; `extremes` are aggregates over its ordered variable."""
    trees = Trees(roots, cqap, dict(leaves.sources), suffix)
    return Blueprint(
        leaves,
        tuple(_propagations(trees)),
        tuple(definition for root in roots for definition in _definitions(trees, root)),
        _reading(trees, extremes),
    )


def part_rules(
    roots: tuple[ViewNode, ...], leaves: Leaves
) -> tuple[tuple[Propagation, ...], tuple[Definition, ...], tuple[Node, ...]]:
    """How trees that are not read row by row are maintained and built, and the nodes of their roots."""
    nothing_is_free = Cqap(Hypergraph(()), frozenset(), frozenset())
    trees = Trees(roots, nothing_is_free, dict(leaves.sources), PART)
    definitions = tuple(definition for root in roots for definition in _definitions(trees, root))
    return tuple(_propagations(trees)), definitions, tuple(map(trees.node, roots))


def _propagations(trees: Trees) -> Iterator[Propagation]:
    """One propagation for each atom, followed by those of its indicators."""
    found = [each for root in trees.roots for each in paths(root)]
    for label in trees.sources:
        uses = [(path, node) for path, node in found if node.label == label]
        uses.sort(key=lambda use: use[1].kind == "indicator")
        merged: dict[Leaf | IndicatorLeaf, tuple[Rule, ...]] = {}
        for path, node in uses:
            whole = trees.leaf(label, frozenset(trees.sources[label].schema))
            use = whole if node.kind == "atom" else IndicatorLeaf(label, node.schema)
            merged[use] = merged.get(use, ()) + tuple(_climb(trees, (*path, node)))
        for use, rules in merged.items():
            yield Propagation(use, rules)


def paths(tree: ViewNode) -> list[tuple[tuple[ViewNode, ...], ViewNode]]:
    """The atoms and indicators of a tree, each with the path from the root down to it."""
    found = []
    waiting: list[tuple[tuple[ViewNode, ...], ViewNode]] = [((), tree)]
    while waiting:
        above, node = waiting.pop()
        if node.label is not None:
            found.append((above, node))
        waiting += [((*above, node), child) for child in reversed(node.children)]
    return found


def _climb(trees: Trees, path: tuple[ViewNode, ...]) -> Iterator[Rule]:
    """The rules from the last node of the path up to its first."""
    for parent, child in zip(reversed(path[:-1]), reversed(path), strict=False):
        view = trees.node(parent)
        if isinstance(view, StoredView):
            siblings = tuple(trees.node(other) for other in parent.children if other is not child)
            yield Rule(view, trees.node(child), (siblings,) if siblings else ())


def _definitions(trees: Trees, tree: ViewNode) -> Iterator[Definition]:
    view = trees.node(tree)
    if isinstance(view, StoredView):
        for child in tree.children:
            yield from _definitions(trees, child)
        yield Definition(view, tuple(trees.node(child) for child in tree.children))


def _reading(trees: Trees, extremes: tuple[str, ...]) -> Reading:
    product = tuple(factor for root in trees.roots for factor in factors(trees, root))
    components = [
        tuple(each for each in iterations(trees, root) if each.new or each.node not in product) for root in trees.roots
    ]
    needed, guards = in_turn(components, product, trees.cqap)
    groups = [n for root in trees.roots for n in root.walk() if n.kind == "view" and n.variable in trees.cqap.ordered]
    ordered = tuple((f, n.variable, trees.node(n)) for f in extremes for n in groups if n.variable is not None)
    return Reading(needed, product, ordered, guards)


def in_turn(
    components: Sequence[tuple[Iteration, ...]], product: Sequence[Node], cqap: Cqap
) -> tuple[tuple[Iteration, ...], tuple[tuple[Iteration, ...], ...]]:
    """The iterators of several components, one after the other, so none is tried for nothing: what the inputs alone
    decide comes first, and components that find something come with guards."""
    nested = [each for component in components for each in component]
    finding = [component for component in components if any(each.new for each in component)]
    if len(components) < 2 or not finding:
        return tuple(nested), ()
    known = [node for node in product if cqap.input.issuperset(node.schema)]
    checks = tuple(Iteration(node, ()) for node in known if Iteration(node, ()) not in nested)
    return checks + tuple(nested), tuple(finding[1:])


def iterations(trees: Trees, tree: ViewNode, carried: tuple[str, ...] = ()) -> Iterator[Iteration]:
    """BUILDITERATORS of Figure 4.9; `carried` are the variables of parents that need no iterator of their own."""
    if tree.kind == "auxiliary":
        yield from iterations(trees, tree.children[0], carried)
    elif tree.kind == "view" and tree.variable is not None and trees.is_free(tree.variable):
        new = (*carried, tree.variable) if tree.variable in trees.cqap.output else carried
        only = tree.children[0] if len(tree.children) == 1 else None
        if only is not None and only.kind == "view" and only.variable is not None and trees.is_free(only.variable):
            yield from iterations(trees, only, new)
            return
        yield Iteration(trees.node(tree), new)
        for child in tree.children:
            yield from iterations(trees, child)


def factors(trees: Trees, tree: ViewNode) -> Iterator[Node]:
    """COMPUTEM of Figure 4.10: the highest views that hold all free variables below them, and no others."""
    if tree.kind == "indicator":
        return
    free = trees.cqap.output | trees.cqap.input
    below = {variable for node in tree.walk() for variable in node.schema}
    if free.issuperset(tree.schema) and not (below & free).difference(tree.schema):
        yield trees.node(tree)
    else:
        for child in tree.children:
            yield from factors(trees, child)
