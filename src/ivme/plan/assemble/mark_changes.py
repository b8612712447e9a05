"""The changes of a result that mark trees maintain, for its followers.

As a set, the result is the join of what the nodes that are read say about free variables. A change of one part of one
of them is joined with the rest of its tree from there outwards: the good tuples of all that hangs beside the way up,
and the bare tuples of the nodes on it, whose goodness depends on the change itself. As a bag, it is the change of an
atom, with its multiplicity, that goes the same way. Where there are templates it is joined with the other atoms
directly: a template that the atom helps to generate is as much out of date as the result.
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
from ivme.plan.assemble.mark_blueprint import Marks, Parents, shared, summed
from ivme.plan.order.mark_tree import MarkNode, Relation

Stages = list[tuple[Node, ...]]


def followed_marks(blueprint: Blueprint, marks: Marks, *, bag: bool) -> Blueprint:
    """The blueprint with the rules for the changes of its result."""
    leaves = blueprint.leaves
    inputs = tuple(dict.fromkeys(original for _, original in leaves.inputs))
    changes = StoredView("changes", (*inputs, *leaves.outputs), "changes", tuple(leaves.schemas))
    found = list(_bag_rules(marks, changes) if bag else _set_rules(marks, changes, blueprint))
    names = dict(leaves.inputs)
    extra: dict[Leaf | IndicatorLeaf, list[Rule]] = {use: [] for use in _read(marks)}
    for use, rule in found:
        stages = tuple(tuple(_named(node, names) for node in stage) for stage in rule.stages)
        extra.setdefault(use, []).append(Rule(changes, _named(rule.origin, names), stages))
    propagations = [Propagation(p.use, (*p.rules, *extra.pop(p.use, ()))) for p in blueprint.propagations]
    propagations += [Propagation(use, tuple(rules)) for use, rules in extra.items()]
    labels = blueprint.labels
    propagations.sort(key=lambda p: (labels.index(p.use.label), isinstance(p.use, IndicatorLeaf)))
    return replace(blueprint, propagations=tuple(propagations), changes=(changes,))


def _read(marks: Marks) -> Iterator[IndicatorLeaf]:
    """The atoms that rules read as they are: each needs its turn among the uses of its relation."""
    bases = (marks.base(node) for root, _ in marks.forest.roots for node in root.walk())
    return (base for base in bases if isinstance(base, IndicatorLeaf))


def _set_rules(marks: Marks, changes: StoredView, blueprint: Blueprint) -> Iterator[tuple[Leaf | IndicatorLeaf, Rule]]:
    """For each use of an atom, the part through which its changes reach the nodes that are read."""
    parents = dict(marks.nodes())
    read = {node for root, _ in marks.forest.roots for node in root.walk()}
    entries: dict[Node, MarkNode] = {}
    for node in read:
        entries[marks.base(node)] = node
        entries |= {marks.support(child, shared(node, child)): node for child in node.filters}
    passed = {p.use: [p.use, *(rule.view for rule in p.rules)] for p in blueprint.propagations}
    for use in dict.fromkeys([*passed, *_read(marks)]):
        entry = next((node for node in passed.get(use, [use]) if node in entries), None)
        if entry is not None:
            yield use, Rule(changes, entry, tuple(_outwards(marks, parents, entries[entry], entry)))


def _bag_rules(marks: Marks, changes: StoredView) -> Iterator[tuple[Leaf | IndicatorLeaf, Rule]]:
    """For each atom, what its tuples are joined with: presence first, to waste no work, then multiplicities."""
    parents = dict(marks.nodes())
    nodes = {node.base.label: node for node in parents if isinstance(node.base, Relation)}
    for label in marks.leaves.schemas:
        origin = summed(marks, label)
        others = tuple(summed(marks, other) for other in marks.leaves.schemas if other != label)
        if marks.forest.templates:
            yield origin, Rule(changes, origin, (others,) if others else ())
        else:
            stages = [*_outwards(marks, parents, nodes[label], marks.base(nodes[label]))]
            yield origin, Rule(changes, origin, (*stages, others) if others else tuple(stages))


def _outwards(marks: Marks, parents: Parents, node: MarkNode, part: Node) -> Iterator[tuple[Node, ...]]:
    """Everything but one part of a node: the rest of the node, what hangs below and above it, and other trees."""
    below: MarkNode | None = None
    here: MarkNode | None = node
    while here is not None:
        if below is not None or part != marks.base(here):
            yield (marks.base(here),)
        for child in here.filters:
            support = marks.support(child, shared(here, child))
            if child is not below and support != part:
                yield (support,)
        for child in here.children:
            if child is not below:
                yield from _unfolded(marks, child)
        below, here = here, parents[here]
    for root, _ in marks.forest.roots:
        if root is not below:
            yield from _unfolded(marks, root)


def _unfolded(marks: Marks, node: MarkNode) -> Iterator[tuple[Node, ...]]:
    """A tree opened down to all that is read of it."""
    for each in node.walk():
        yield (marks.good(each),)


def _named(node: Node, names: dict[str, str]) -> Reference:
    """The node under the query's own names for its inputs; only atoms have multiplicities."""
    schema = tuple(names.get(variable, variable) for variable in node.schema)
    return Reference(referred(node), schema, isinstance(referred(node), Leaf))
