"""The blueprint of mark trees: good tuples, their supports, and how a change climbs (source 002, section 3).

Each node of a mark tree has *parts*: its base, whose tuples it sorts into good and bad ones, and a support for each
node below. A support says how many good tuples of that node there are for each value of what the two nodes share: the
good-counter of the source. A tuple bears a mark for each part in which it finds nothing.

A change goes from a part of a node to its good tuples, from there to the support in the parent, and on to the parent's
good tuples only where the support leaves or reaches zero: Insert and Delete of the source (errata 6 and 7), a batch at
a time. When a tuple loses a mark, its others are looked up one by one; no marks are stored.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from ivme.plan.order.mark_tree import MarkForest, MarkNode, Relation
from ivme.plan.order.templates import Template

Parents = dict[MarkNode, MarkNode | None]
"""The node above each node, None for a root."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Mark trees as nodes of a blueprint."""

    forest: MarkForest
    leaves: Leaves

    def base(self, node: MarkNode) -> Node:
        """Where the tuples of a node come from."""
        if isinstance(node.base, Relation):
            return IndicatorLeaf(node.base.label, node.schema)
        if isinstance(node.base, Template):
            return self.template(node.base)
        return self.support(node.base, node.schema)

    def template(self, template: Template) -> StoredView:
        whole = [label for label, schema in template.generators if self._is_whole(label, schema)]
        parts = [(label, schema) for label, schema in template.generators if not self._is_whole(label, schema)]
        return StoredView(template.name, template.schema, "template", tuple(whole), tuple(parts), template.schema)

    def generators(self, template: Template) -> list[IndicatorLeaf]:
        """The projections that fill a template; they are uses of their own beside those in the tree."""
        place = 1 + self.forest.templates.index(template)
        return [IndicatorLeaf(label, schema, place) for label, schema in template.generators]

    def _is_whole(self, label: str, schema: tuple[str, ...]) -> bool:
        return len(schema) == len(self.leaves.source(label).schema)

    def parts(self, node: MarkNode) -> list[Node]:
        """The base and the supports in a node: its good tuples are their join."""
        below = [self.support(child, shared(node, child)) for child in node.supports]
        return [self.base(node), *below]

    def good(self, node: MarkNode) -> Node:
        """The good tuples of a node; if it has nothing below, all its tuples are."""
        if not node.supports:
            return self.base(node)
        atoms, indicators = self._below(node)
        return StoredView(f"good {node.name}", node.schema, "good", atoms, indicators, node.schema)

    def support(self, node: MarkNode, schema: tuple[str, ...]) -> Node:
        """How many good tuples a node has for each value of the schema: what it shares with the node above, if any."""
        good = self.good(node)
        if set(schema) == set(good.schema):
            return good
        if isinstance(good, IndicatorLeaf):
            return IndicatorLeaf(good.label, schema)
        atoms, indicators = self._below(node)
        return StoredView(f"support {node.name}", schema, "support", atoms, indicators, good.schema)

    def _below(self, node: MarkNode) -> tuple[tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]:
        """The atoms below a node, and those that are only there as projections."""
        atoms: list[str] = []
        indicators: list[tuple[str, tuple[str, ...]]] = []
        if isinstance(node.base, Relation):
            atoms.append(node.base.label)
        elif isinstance(node.base, Template):
            view = self.template(node.base)
            atoms += view.atoms
            indicators += view.indicators
        below = [node.base] if isinstance(node.base, MarkNode) else []
        for each in [*below, *node.supports]:
            more_atoms, more_indicators = self._below(each)
            atoms += more_atoms
            indicators += more_indicators
        return tuple(dict.fromkeys(atoms)), tuple(dict.fromkeys(indicators))

    def nodes(self) -> Iterator[tuple[MarkNode, MarkNode | None]]:
        """All nodes, each with the one above it, parents first."""
        waiting: list[tuple[MarkNode, MarkNode | None]] = [(root, None) for root, _ in self.forest.roots]
        while waiting:
            node, parent = waiting.pop()
            yield node, parent
            waiting += [(child, node) for child in node.supports]
            waiting += [(node.base, node)] if isinstance(node.base, MarkNode) else []


def shared(node: MarkNode, child: MarkNode) -> tuple[str, ...]:
    """What a node and one below it have in common, in the order of the child."""
    return tuple(variable for variable in child.schema if variable in node.schema)


def mark_blueprint(forest: MarkForest, leaves: Leaves, *, bag: bool) -> Blueprint:
    """The blueprint of mark trees; with `bag`, the multiplicity of a row is the product of its tuples'."""
    marks = Marks(forest, leaves)
    factors = tuple(summed(marks, label) for label in leaves.schemas) if bag else ()
    reading = Reading(tuple(_iterations(marks)), factors)
    return Blueprint(leaves, tuple(_propagations(marks)), tuple(_definitions(marks)), reading)


def summed(marks: Marks, label: str) -> Leaf:
    """An atom with its multiplicities, summed to the variables that are read."""
    free = set(marks.leaves.outputs).union(name for name, _ in marks.leaves.inputs)
    return Leaf(label, tuple(variable for variable in marks.leaves.schemas[label] if variable in free))


def _propagations(marks: Marks) -> Iterator[Propagation]:
    """What a change of each atom sets off, by the places where the atom is used: first templates, then nodes."""
    parents = dict(marks.nodes())
    uses: dict[IndicatorLeaf, list[Rule]] = {}
    for node in parents:
        if isinstance(node.base, Template):
            for use in marks.generators(node.base):
                others = tuple(other for other in marks.generators(node.base) if other != use)
                rule = Rule(marks.template(node.base), use, (others,) if others else ())
                uses[use] = [rule, *climb(marks, parents, node)]
        elif isinstance(node.base, Relation):
            rules = list(climb(marks, parents, node))
            if rules and isinstance(rules[0].origin, IndicatorLeaf):
                uses[rules[0].origin] = rules
    labels = tuple(marks.leaves.schemas)
    for use in sorted(uses, key=lambda use: (labels.index(use.label), -use.place)):
        yield Propagation(use, tuple(uses[use]))


def climb(marks: Marks, parents: Parents, node: MarkNode) -> Iterator[Rule]:
    """The rules from the base of a node up to the root."""
    if node.supports:
        yield into(marks, node, marks.base(node))
    parent = parents[node]
    while parent is not None:
        support = marks.base(parent) if parent.base is node else marks.support(node, shared(parent, node))
        if isinstance(support, StoredView) and support != marks.good(node):
            yield Rule(support, marks.good(node), ())
        if parent.supports:
            yield into(marks, parent, support)
        node, parent = parent, parents[parent]
    key = next(key for root, key in marks.forest.roots if root is node)
    check = marks.support(node, key)
    if isinstance(check, StoredView) and check != marks.good(node):
        yield Rule(check, marks.good(node), ())


def into(marks: Marks, node: MarkNode, part: Node) -> Rule:
    """How a change of one part makes tuples of a node good or bad: first the tuples it concerns, then their marks."""
    good = marks.good(node)
    assert isinstance(good, StoredView)
    base, *supports = marks.parts(node)
    if part == base:
        return Rule(good, part, (tuple(supports),))
    others = tuple(other for other in supports if other != part)
    return Rule(good, part, ((base,), others) if others else ((base,),))


def _definitions(marks: Marks) -> Iterator[Definition]:
    """Every view from those below it, bottom-up."""
    found: dict[StoredView, Definition] = {}
    for node, parent in reversed(list(marks.nodes())):
        if isinstance(node.base, Template):
            template = marks.template(node.base)
            found.setdefault(template, Definition(template, tuple(marks.generators(node.base))))
        good = marks.good(node)
        if node.supports and isinstance(good, StoredView):
            found.setdefault(good, Definition(good, tuple(marks.parts(node))))
        keys = [key for root, key in marks.forest.roots if root is node]
        keys += [] if parent is None else [parent.schema if parent.base is node else shared(parent, node)]
        for key in keys:
            support = marks.support(node, key)
            if isinstance(support, StoredView) and support != good:
                found.setdefault(support, Definition(support, (good,)))
    yield from found.values()


def _iterations(marks: Marks) -> Iterator[Iteration]:
    """Roots that are given whole are checked; of several others each must have an answer before any is read.

    Without that question a product with an empty side would be searched for nothing, and the delay not constant.
    """
    roots = marks.forest.roots
    given = [root for root, key in roots if len(key) == len(_variables(root))]
    for root in given:
        yield Iteration(marks.good(root), ())
    read = [(root, key) for root, key in roots if root not in given]
    for i, (root, key) in enumerate(read):
        if i or len(key) == len(root.schema):
            yield Iteration(marks.support(root, key), ())
    for root, key in read:
        known = set(key)
        for node in root.walk():
            new = tuple(variable for variable in node.schema if variable not in known)
            known.update(new)
            if new:
                yield Iteration(marks.good(node), new)


def _variables(root: MarkNode) -> set[str]:
    return {variable for node in root.walk() for variable in node.schema}
