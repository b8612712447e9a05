"""From a `Blueprint` to a `Program`: triggers, the bulk build, the enumeration.

Within one trigger the occurrences of the changed relation are propagated one after the other; those before the
current one are read with their new contents and those after it with the old (SEEDS.md). A map that several of
them share takes its delta after the last read of its old contents; reads of the new contents before that see the
delta as `pending`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from ivme.plan import program as ir
from ivme.plan.blueprint import Blueprint, Definition, IndicatorLeaf, Leaf, Node, Propagation, Rule, View, liveness
from ivme.plan.join import Extension, extensions
from ivme.plan.leaf_deltas import LeafDeltas
from ivme.plan.storage import MapKey, Storage
from ivme.structure.hypergraph import Edge

_Definitions = Mapping[View, Definition]


def assemble(blueprint: Blueprint) -> ir.Program:
    """The program of a blueprint; what nobody reads is neither stored nor computed."""
    assembly = _Assembly(blueprint)
    relations = dict.fromkeys(source.atom.relation for _, source in blueprint.leaves.sources)
    triggers = tuple(ir.Trigger(relation, _used(list(assembly.trigger(relation)))) for relation in relations)
    build = _used(list(assembly.build(relations)))
    enumeration = assembly.enumeration()
    maps = assembly.storage.maps()
    return ir.Program(blueprint.leaves.sources, maps, triggers, build, enumeration, lazy=blueprint.lazy)


def _used(steps: list[ir.Step]) -> tuple[ir.Step, ...]:
    """The steps without those whose result nobody uses; a sum of a sum is taken in one step."""
    sums = {step.target: step.origin for step in steps if isinstance(step, ir.Project)}
    kept: list[ir.Step] = []
    wanted: set[str] = set()
    uses = Counter(step.origin for step in steps if not isinstance(step, ir.Load | ir.Scan))
    for step in reversed(steps):
        if isinstance(step, ir.Project) and uses[step.origin] == 1 and step.origin in sums:
            step = replace(step, origin=sums[step.origin])
        if isinstance(step, ir.Add) or step.target in wanted:
            kept.append(step)
            wanted.update([] if isinstance(step, ir.Load | ir.Scan) else [step.origin])
            wanted.update(read.pending for read in (step.reads if isinstance(step, ir.Join) else ()) if read.pending)
    return tuple(reversed(kept))


@dataclass(slots=True)
class _Delta:
    """A delta on its way up: its register, its variables, the edges that bound its size, what the update fixed."""

    name: str
    schema: tuple[str, ...]
    edges: frozenset[Edge]
    fixed: frozenset[str]


class _Assembly:
    """The state of one assembly: registers, maps, and memoised exponents."""

    def __init__(self, blueprint: Blueprint) -> None:
        self.blueprint = blueprint
        self.storage = Storage(blueprint)
        alive = liveness(blueprint)
        self.live, self.stored = alive.views, self._with_supported_leaves(alive.stored, alive.views)
        self._registers = 0

    def _with_supported_leaves(self, stored: frozenset[Node], live: frozenset[View]) -> frozenset[Node]:
        """Indicators judge presence in the whole leaf and in their support, so both are stored."""
        propagated = {p.use for p in self.blueprint.propagations if any(rule.view in live for rule in p.rules)}
        indicators = {node for node in stored | propagated if isinstance(node, IndicatorLeaf)}
        return stored | indicators | {Leaf(i.label, self.blueprint.source(i.label).schema) for i in indicators}

    def _register(self) -> str:
        self._registers += 1
        return f"d{self._registers}"

    def _relation(self, node: Leaf | IndicatorLeaf) -> str:
        return self.blueprint.source(node.label).atom.relation

    def _leaf_deltas(self, relation: str) -> LeafDeltas:
        """The deltas of the leaves that are stored or that set off a propagation."""
        origins = [r.origin for p in self.blueprint.propagations for r in p.rules if r.view in self.live]
        used = set(self.stored) | set(origins)
        nodes = [n for n in used if not isinstance(n, View) and self._relation(n) == relation]
        labels = self.blueprint.labels
        nodes.sort(key=lambda n: (isinstance(n, IndicatorLeaf), labels.index(n.label), -len(n.schema), n.schema))
        return LeafDeltas(self.storage, nodes, self._register)

    # Joins

    def _join(self, delta: _Delta, nodes: tuple[Node, ...], pending: Mapping[Node, str]) -> Iterator[ir.Step]:
        for extension in extensions(frozenset(delta.schema), nodes):
            yield self._extend(delta, extension, pending)

    def _extend(self, delta: _Delta, extension: Extension, pending: Mapping[Node, str]) -> ir.Join:
        nodes = extension.full + extension.partial
        reads = tuple(self.storage.read(node, delta.schema, extension.new, pending.get(node)) for node in nodes)
        delta.edges = delta.edges.union(*(self.storage.edges(node) for node in nodes))
        delta.schema += extension.new
        origin, delta.name = delta.name, self._register()
        exponent = self.storage.exponent(delta.edges, set(delta.schema) - delta.fixed)
        return ir.Join(delta.name, origin, reads, delta.schema, exponent)

    def _project(self, delta: _Delta, schema: tuple[str, ...]) -> Iterator[ir.Step]:
        if schema != delta.schema:
            origin, delta.name, delta.schema = delta.name, self._register(), schema
            yield ir.Project(delta.name, origin, schema)

    # Triggers

    def trigger(self, relation: str) -> Iterator[ir.Step]:
        """The steps of a relation's trigger."""
        leaves = self._leaf_deltas(relation)
        yield from leaves.steps(self.stored)
        if self.blueprint.lazy:
            yield from leaves.commit(lambda _: True)
            return
        affected = [p for p in self.blueprint.propagations if self._relation(p.use) == relation]
        affected = [Propagation(p.use, tuple(r for r in p.rules if r.view in self.live)) for p in affected]
        versions = _Versions(self.storage, affected)
        for k, propagation in enumerate(affected):
            yield from leaves.commit(partial(versions.is_new, at=k))
            yield from self._propagate(propagation, k, versions, leaves)
        yield from leaves.commit(lambda _: True)

    def _propagate(self, use: Propagation, k: int, versions: _Versions, leaves: LeafDeltas) -> Iterator[ir.Step]:
        deltas: dict[Node, _Delta] = {}
        for rule in use.rules:
            if isinstance(rule.origin, View):
                origin = deltas[rule.origin]
                delta = _Delta(origin.name, origin.schema, origin.edges, origin.fixed)
            else:
                name, steps = leaves.origin(rule.origin)
                yield from steps
                delta = _Delta(
                    name, self.storage.variables(rule.origin), self.storage.edges(rule.origin), self._fixed(use)
                )
            pending = {sibling: leaves.change(sibling) for sibling in versions.pending(rule, k)}
            yield from self._apply(rule, delta, pending)
            deltas[rule.view] = delta

    def _fixed(self, use: Propagation) -> frozenset[str]:
        """The variables whose values an update of this use fixes."""
        node = use.use
        return frozenset(self.blueprint.source(node.label).schema if isinstance(node, Leaf) else node.schema)

    def _apply(self, rule: Rule, delta: _Delta, pending: Mapping[Node, str]) -> Iterator[ir.Step]:
        for i, stage in enumerate(rule.stages):
            yield from self._join(delta, stage, pending)
            later = {variable for rest in rule.stages[i + 1 :] for node in rest for variable in node.schema}
            if later:
                keep = later.union(rule.view.schema)
                yield from self._project(delta, tuple(variable for variable in delta.schema if variable in keep))
        yield from self._project(delta, rule.view.schema)
        if rule.view in self.stored:
            yield ir.Add(delta.name, self.storage.declare(rule.view))

    # Bulk build

    def build(self, relations: Mapping[str, None]) -> Iterator[ir.Step]:
        """Fills the leaves, then materialises each stored view once, bottom-up."""
        if not self.blueprint.lazy:
            for relation in relations:
                leaves = self._leaf_deltas(relation)
                yield from leaves.steps(self.stored)
                yield from leaves.commit(lambda _: True)
        definitions = {definition.view: definition for definition in self.blueprint.definitions}
        for definition in self.blueprint.definitions:
            if definition.view in self.stored:
                delta, steps = self._construct(definition, definitions)
                yield from steps
                yield ir.Add(delta.name, self.storage.declare(definition.view))

    def _construct(
        self, definition: Definition, definitions: Mapping[View, Definition]
    ) -> tuple[_Delta, list[ir.Step]]:
        """Steps that compute a view from its children, beginning with the widest."""
        first, *rest = sorted(definition.children, key=lambda node: -len(node.schema))
        delta, steps = self._start(first, definitions)
        steps += self._join(delta, tuple(rest), {})
        steps += self._project(delta, definition.view.schema)
        return delta, steps

    def _start(self, node: Node, definitions: _Definitions) -> tuple[_Delta, list[ir.Step]]:
        """All tuples of a node: from its map if it has one, else computed."""
        variables = self.storage.variables(node)
        delta = _Delta(self._register(), variables, self.storage.edges(node), frozenset())
        if node in self.stored:
            map_name = self.storage.declare(node)
            return delta, [ir.Scan(delta.name, map_name, variables, isinstance(node, IndicatorLeaf))]
        if isinstance(node, View):
            return self._construct(definitions[node], definitions)
        delta.schema = self.blueprint.source(node.label).schema
        steps: list[ir.Step] = [ir.Load(delta.name, self.blueprint.source(node.label))]
        return delta, steps + list(self._project(delta, variables))

    # Reading

    def enumeration(self) -> ir.Enumeration:
        """The nested loops, the factors of the payload, and the ordered groups."""
        leaves = self.blueprint.leaves
        known = [variable for variable, _ in leaves.inputs]
        loops: list[ir.Loop] = []
        for iteration in self.blueprint.reading.iterations:
            loops.append(ir.Loop(self.storage.read(iteration.node, known, iteration.new), iteration.new))
            known += iteration.new
        factors = tuple(self.storage.read(node, known, ()) for node in self.blueprint.reading.factors)
        extremes = tuple(self.storage.extreme(*extreme) for extreme in self.blueprint.reading.extremes)
        return ir.Enumeration(leaves.inputs, leaves.outputs, leaves.slots, tuple(loops), factors, extremes)


class _Versions:
    """Which contents of the changed relation's shared maps each propagation must see."""

    def __init__(self, storage: Storage, propagations: list[Propagation]) -> None:
        self._storage = storage
        self._order = {propagation.use: k for k, propagation in enumerate(propagations)}
        self._last_old: dict[MapKey, int] = {}
        for k, propagation in enumerate(propagations):
            for rule in propagation.rules:
                for sibling in rule.siblings:
                    if self._position(sibling, k) > k:
                        self._last_old[storage.key(sibling)] = k

    def _position(self, node: Node, current: int) -> int:
        """The sibling's place among the uses of the changed relation; `current` if it does not change."""
        if isinstance(node, View):
            return current
        bases = {use.label: k for use, k in self._order.items() if isinstance(use, Leaf)}
        return self._order.get(node, current) if isinstance(node, IndicatorLeaf) else bases.get(node.label, current)

    def is_new(self, key: MapKey, at: int) -> bool:
        """Whether the map may hold its new contents from propagation `at` on."""
        return self._last_old.get(key, -1) < at

    def pending(self, rule: Rule, k: int) -> list[Node]:
        """Siblings whose new contents the rule wants while their map holds the old."""
        new = [sibling for sibling in rule.siblings if self._position(sibling, k) < k]
        return [sibling for sibling in new if not self.is_new(self._storage.key(sibling), k)]
