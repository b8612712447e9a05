"""The changes of a view's result, for its followers.

A view tree keeps its result factorised, so the change of a result is not the change of any one view. It is computed
on the way: the delta of a leaf is joined with what hangs beside its path to the root, each sibling unfolded to the
free variables below it as an enumeration would (source 003, section 4.2). Views reduce one another, so every step
but sums over bound variables leads to a change of the result. Only followed views pay for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ivme.plan.assemble.blueprint import (
    Blueprint,
    IndicatorLeaf,
    Leaf,
    Node,
    Propagation,
    Reference,
    Rule,
    StoredView,
    referred,
)
from ivme.plan.assemble.leaves import Leaves
from ivme.plan.assemble.tree_blueprint import Trees, factors, iterations, paths
from ivme.plan.order.view_tree import ViewNode
from ivme.structure.hypergraph import Cqap


def followed_trees(
    blueprint: Blueprint, roots: tuple[ViewNode, ...], cqap: Cqap, leaves: Leaves, suffix: str = ""
) -> Blueprint:
    """The blueprint of view trees with the rules for the changes of its result."""
    ordered = tuple(sorted(cqap.ordered))
    opened = Cqap(cqap.hypergraph, cqap.output | cqap.ordered, cqap.input)
    trees = Trees(roots, opened, dict(leaves.sources), suffix)
    inputs = tuple(dict.fromkeys(original for _, original in leaves.inputs))
    labels = tuple(label for label, _ in leaves.sources)
    changes = StoredView("changes" + suffix, (*inputs, *leaves.outputs, *ordered), "changes", labels)
    names = dict(leaves.inputs)
    extra = {use: tuple(_rules(trees, changes, use, names)) for use in (p.use for p in blueprint.propagations)}
    propagations = tuple(Propagation(p.use, p.rules + extra[p.use]) for p in blueprint.propagations)
    return replace(blueprint, propagations=propagations, changes=(changes,))


def followed_result(
    blueprint: Blueprint, result: Leaf | StoredView, schema: tuple[str, ...], suffix: str = ""
) -> Blueprint:
    """The blueprint of a strategy that stores its result flat: the changes are those of the result itself."""
    labels = tuple(label for label, _ in blueprint.leaves.sources)
    changes = StoredView("changes" + suffix, schema, "changes", labels)
    rule = Rule(changes, result, ())
    propagations = tuple(Propagation(p.use, (*p.rules, rule)) for p in blueprint.propagations)
    return replace(blueprint, propagations=propagations, changes=(changes,))


def _rules(trees: Trees, changes: StoredView, use: Leaf | IndicatorLeaf, names: dict[str, str]) -> Iterator[Rule]:
    """One rule for each place of the leaf or indicator in the trees."""
    kind = "indicator" if isinstance(use, IndicatorLeaf) else "atom"
    for root in trees.roots:
        others = [tree for tree in trees.roots if tree is not root]
        for above, place in paths(root):
            if (place.label, place.kind) == (use.label, kind) and (kind == "atom" or place.schema == use.schema):
                stages = list(_beside(trees, (*above, place)))
                stages += [stage for tree in others for stage in _unfolded(trees, tree)]
                named = tuple(tuple(_named(node, names) for node in stage) for stage in stages)
                yield Rule(changes, _named(use, names), named)


def _beside(trees: Trees, path: tuple[ViewNode, ...]) -> Iterator[tuple[Node, ...]]:
    """What hangs beside the path, from the bottom up."""
    for parent, child in zip(reversed(path[:-1]), reversed(path), strict=False):
        for sibling in parent.children:
            if sibling is not child:
                yield from _unfolded(trees, sibling)


def _unfolded(trees: Trees, tree: ViewNode) -> Iterator[tuple[Node, ...]]:
    """A tree, opened down to the free variables below it; each stage narrows the next."""
    inside = {variable for node in tree.walk() for variable in node.schema}.difference(tree.schema)
    if not any(trees.is_free(variable) for variable in inside):
        yield (trees.node(tree),)
        return
    product = list(factors(trees, tree))
    for iteration in iterations(trees, tree):
        if iteration.node in product:
            product.remove(iteration.node)
            yield (iteration.node,)
        else:
            yield (Reference(referred(iteration.node), iteration.node.schema, payload=False),)
    for factor in product:
        yield (factor,)


def _named(node: Node, names: dict[str, str]) -> Reference:
    """The node under the query's own names for its inputs."""
    payload = not isinstance(node, Reference) or node.payload
    return Reference(referred(node), tuple(names.get(variable, variable) for variable in node.schema), payload)
