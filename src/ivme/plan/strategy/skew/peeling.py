"""Ears are peeled off before relations are split.

An *ear* is an atom with outputs that no other atom has, whose other variables are free. Which of its values go with a
row of the rest is known as soon as the row is, so the rest, the *core*, needs to know only whether there are any: the
ear becomes an indicator on its shared variables, and its own are looked up inside each row of the core. The path
Q(A, B, C, D) = R(A, B), S(B, C), T(C, D) has the core Q(B, C) = ∃R(B), S(B, C), ∃T(C), which is maintained in N^½ with
constant delay, where the path itself would take N.

A plan of the core is made first, with the ears' own outputs bound; then the ears' leaves are replaced by indicators,
and its readers get a loop and a factor for each ear. Every row of the core has rows of all ears, so the delay stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ivme.errors import PlanError
from ivme.plan.assemble.blueprint import (
    Blueprint,
    Definition,
    IndicatorLeaf,
    Iteration,
    Leaf,
    Node,
    Propagation,
    Reading,
    Reference,
    Rule,
    StoredView,
)
from ivme.plan.assemble.leaves import Leaves
from ivme.plan.strategy.skew.parts import Role, part_label, sides_of, signatures
from ivme.structure.hypergraph import Cqap


@dataclass(frozen=True, slots=True)
class Ear:
    """The variables of an ear that other atoms have, too, and the outputs of its own."""

    shared: tuple[str, ...]
    own: tuple[str, ...]


Ears = Mapping[str, Ear]
"""The ears of a query by label."""


def ears_of(cqap: Cqap, leaves: Leaves) -> Ears:
    """The atoms that can be peeled; their bound variables are summed away as always.

    An atom with an input of its own is not among them: it decides which rows a request has.
    """
    uses = Counter(variable for _, source in leaves.sources for variable in source.schema)
    found = {}
    for label, source in leaves.sources:
        shared = tuple(variable for variable in source.schema if uses[variable] > 1)
        private = [variable for variable in source.schema if uses[variable] == 1]
        own = tuple(variable for variable in private if variable in cqap.output)
        if shared and own and cqap.free.issuperset(shared) and cqap.input.isdisjoint(private):
            found[label] = Ear(shared, own)
    return found


def core_of(cqap: Cqap, leaves: Leaves, ears: Ears) -> tuple[Cqap, Leaves]:
    """The query with the ears' own outputs bound."""
    own = {variable for ear in ears.values() for variable in ear.own}
    outputs = tuple(variable for variable in leaves.outputs if variable not in own)
    return Cqap(cqap.hypergraph, cqap.output - own, cqap.input), replace(leaves, outputs=outputs)


def without_ears(roles: tuple[Role, ...], ears: Ears) -> tuple[Role, ...]:
    """The roles, each without the ears in which its key has no degree: all of their shared variables are in it."""
    kept = [
        replace(role, labels=tuple(x for x in role.labels if x not in ears or set(ears[x].shared) - set(role.key)))
        for role in roles
    ]
    return tuple(role for role in kept if role.labels)


def ear_parts(leaves: Leaves, ears: Ears, roles: tuple[Role, ...]) -> Ears:
    """The ears by the labels of their parts."""
    return {
        part_label(label, sides_of(leaves, label, signature)): ear
        for label, ear in ears.items()
        for signature in signatures(roles)
    }


def peeled(
    blueprint: Blueprint, parts: Ears, outputs: tuple[str, ...], branches: Sequence[tuple[str, ...]]
) -> Blueprint:
    """A plan of the core as one of the whole query, which has these outputs; `parts` are those of the ears, and
    `branches` the parts that each branch joins."""
    peeling = _Peeling(parts)
    return replace(
        blueprint,
        leaves=replace(blueprint.leaves, outputs=outputs),
        propagations=tuple(map(peeling.propagation, blueprint.propagations)),
        definitions=tuple(map(peeling.definition, blueprint.definitions)),
        reading=blueprint.reading if blueprint.branches else peeling.reading(blueprint.reading, branches[0]),
        branches=tuple(
            peeling.reading(reading, labels) for reading, labels in zip(blueprint.branches, branches, strict=False)
        ),
    )


class _Peeling:
    """Replaces the leaves of ears, or of their parts, by indicators; `ears` has them by the labels of parts."""

    def __init__(self, ears: Ears) -> None:
        self._ears = ears

    def node(self, node: Node) -> Node:
        if isinstance(node, Reference):
            raise PlanError("strategy 'skew' peels atoms under their own names only")
        if isinstance(node, Leaf) and node.label in self._ears:
            return self._indicator(node)
        return self._view(node) if isinstance(node, StoredView) else node

    def _indicator(self, leaf: Leaf) -> IndicatorLeaf:
        shared = self._ears[leaf.label].shared
        if not set(shared).issubset(leaf.schema):
            raise PlanError("strategy 'skew' peels atoms of which all shared variables are joined at one place")
        return IndicatorLeaf(leaf.label, shared)

    def _view(self, view: StoredView) -> StoredView:
        present = [(label, self._ears[label].shared) for label in view.atoms if label in self._ears]
        atoms = tuple(label for label in view.atoms if label not in self._ears)
        return replace(view, atoms=atoms, indicators=(*view.indicators, *present)) if present else view

    def rule(self, rule: Rule) -> Rule:
        stages = tuple(tuple(map(self.node, stage)) for stage in rule.stages)
        return Rule(self._view(rule.view), self.node(rule.origin), stages)

    def propagation(self, propagation: Propagation) -> Propagation:
        use, rules = propagation.use, tuple(map(self.rule, propagation.rules))
        if use.label not in self._ears:
            return Propagation(use, rules)
        return Propagation(IndicatorLeaf(use.label, self._ears[use.label].shared), rules)

    def definition(self, definition: Definition) -> Definition:
        stages = tuple(tuple(map(self.node, stage)) for stage in definition.stages)
        return Definition(self._view(definition.view), tuple(map(self.node, definition.children)), stages)

    def reading(self, reading: Reading, labels: tuple[str, ...]) -> Reading:
        """The reading of the core, and within each of its rows those of the ears; what an ear has for a row is a factor
        of the row's payload, and no longer that of its leaf in the core."""
        mine = {label: ear for label, ear in self._ears.items() if label in labels}
        wholes = {label: Leaf(label, (*ear.shared, *ear.own)) for label, ear in mine.items()}
        factors = [factor for factor in map(self.node, reading.factors) if not isinstance(factor, IndicatorLeaf)]
        guards = tuple(tuple(map(self._iteration, guard)) for guard in reading.guards)
        found = [Iteration(wholes[label], ear.own) for label, ear in mine.items()]
        return Reading(
            (*map(self._iteration, reading.iterations), *found),
            (*factors, *wholes.values()),
            reading.extremes,
            guards,
        )

    def _iteration(self, iteration: Iteration) -> Iteration:
        return Iteration(self.node(iteration.node), iteration.new)
