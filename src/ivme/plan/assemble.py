"""From blueprints to a `Program`: triggers, the bulk build, the enumeration.

Within one trigger the occurrences of the changed relation are propagated one after the other; those before the
current one are read with their new contents and those after it with the old (SEEDS.md). A map that several of
them share takes its delta after the last read of its old contents; reads of the new contents before that see the
delta as `pending`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from ivme.plan import program as ir
from ivme.plan.blueprint import (
    Blueprint,
    Definition,
    IndicatorLeaf,
    Leaf,
    Node,
    Propagation,
    Reference,
    Rule,
    View,
    only_presence,
    referred,
)
from ivme.plan.catalog import Catalog, catalog_of
from ivme.plan.join import Extension, extensions
from ivme.plan.leaf_deltas import LeafDeltas
from ivme.plan.prune import without_dead_steps
from ivme.plan.storage import Existing, MapKey, Storage
from ivme.structure.hypergraph import Edge


def assemble(blueprint: Blueprint) -> ir.Program:
    """The program of one view; what nobody reads is neither stored nor computed."""
    assembly = Assembly(catalog_of({"": blueprint}))
    triggers = tuple(ir.Trigger(relation, assembly.trigger(relation)) for relation in assembly.relations)
    build = assembly.build("") if blueprint.lazy else assembly.fill(frozenset()) + assembly.build("")
    enumeration = assembly.enumeration("")
    maps = assembly.storage.maps()
    return ir.Program(blueprint.leaves.sources, maps, triggers, build, enumeration, lazy=blueprint.lazy)


@dataclass(slots=True)
class _Delta:
    """A delta on its way up: its register, its variables, the edges that bound its size, what the update fixed."""

    name: str
    schema: tuple[str, ...]
    edges: frozenset[Edge]
    fixed: frozenset[str]


class Assembly:
    """The programs of a catalog under construction. `existing` are maps that are there already, by key."""

    def __init__(self, catalog: Catalog, existing: Existing | None = None, prefix: str = "") -> None:
        self.catalog = catalog
        self.storage = Storage(catalog, existing, prefix)
        alive = catalog.liveness()
        self._live = alive.views
        self.stored = self._with_supports(alive.stored)
        self._stored_keys = frozenset(self.storage.key(node) for node in self.stored)
        self._registers = 0

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that some view reads."""
        return tuple(dict.fromkeys(source.atom.relation for source in self.catalog.sources.values()))

    def _with_supports(self, stored: frozenset[Node]) -> tuple[Node, ...]:
        """Indicators judge presence in the whole leaf and in their support, so both are stored."""
        propagations = [p for b in self.catalog.blueprints.values() if not b.lazy for p in b.propagations]
        propagated = {p.use for p in propagations if any(rule.view in self._live for rule in p.rules)}
        indicators = {node for node in stored | propagated if isinstance(node, IndicatorLeaf)}
        leaves = {Leaf(i.label, self.catalog.source(i.label).schema) for i in indicators}
        return tuple(sorted(stored | indicators | leaves, key=_rank))

    def _register(self) -> str:
        self._registers += 1
        return f"d{self._registers}"

    def _relation(self, node: Leaf | IndicatorLeaf) -> str:
        return self.catalog.source(node.label).atom.relation

    def _leaf_deltas(self, relation: str, origins: Iterable[Node] = ()) -> LeafDeltas:
        """The deltas of the leaves that are stored or that set off a propagation."""
        used = {referred(node) for node in (*self.stored, *origins)}
        nodes = [n for n in used if not isinstance(n, View) and self._relation(n) == relation]
        labels = self.catalog.labels
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

    def trigger(self, relation: str) -> tuple[ir.Step, ...]:
        """The steps of a relation's trigger."""
        return without_dead_steps(list(self._trigger(relation)))

    def _trigger(self, relation: str) -> Iterator[ir.Step]:
        affected = [
            Propagation(p.use, tuple(rule for rule in p.rules if rule.view in self._live))
            for p in self.catalog.propagations(relation)
        ]
        leaves = self._leaf_deltas(relation, [rule.origin for p in affected for rule in p.rules])
        yield from leaves.steps(self._stored_keys)
        versions = _Versions(self.storage, affected)
        shared: dict[MapKey, _Delta] = {}
        for k, propagation in enumerate(affected):
            yield from leaves.commit(partial(versions.is_new, at=k))
            yield from self._propagate(propagation, k, versions, leaves, shared)
        yield from leaves.commit(lambda _: True)

    def _propagate(
        self,
        use: Propagation,
        k: int,
        versions: _Versions,
        leaves: LeafDeltas,
        shared: dict[MapKey, _Delta],
    ) -> Iterator[ir.Step]:
        """Runs the rules of one use. A shared view has no indicators and one occurrence of the relation below it, so
        the first of its owners to come brings it up to date, and the others take the same delta."""
        deltas: dict[Node, _Delta] = {}
        for rule in use.rules:
            key = self.storage.key(rule.view)
            if key in shared:
                delta = self._again(shared[key], rule.view)
                yield ir.Rename(delta.name, shared[key].name, delta.schema)
            else:
                delta, steps = self._origin(rule, deltas, leaves, use)
                yield from steps
                pending = {sibling: leaves.change(sibling) for sibling in versions.pending(rule, k)}
                yield from self._apply(rule, delta, pending)
                shared.update({} if self.storage.is_private(rule.view) else {key: delta})
            deltas[rule.view] = delta
            yield from self._emitted(rule.view, delta)

    def _again(self, delta: _Delta, view: View | Reference) -> _Delta:
        """The delta of an equal view, or of the view that is referred to, under this one's names."""
        names = dict(zip(delta.schema, self.storage.variables(view), strict=True))
        edges = frozenset(Edge(e.label, frozenset(names.get(v, v) for v in e.variables)) for e in delta.edges)
        fixed = frozenset(names.get(variable, variable) for variable in delta.fixed)
        return _Delta(self._register(), self.storage.variables(view), edges | self.storage.edges(view), fixed)

    def _origin(
        self, rule: Rule, deltas: Mapping[Node, _Delta], leaves: LeafDeltas, use: Propagation
    ) -> tuple[_Delta, list[ir.Step]]:
        node = referred(rule.origin)
        if isinstance(node, View):
            delta = deltas[node]
            if isinstance(rule.origin, Reference):
                renamed = self._again(delta, rule.origin)
                return renamed, [ir.Rename(renamed.name, delta.name, renamed.schema)]
            return _Delta(delta.name, delta.schema, delta.edges, delta.fixed), []
        name, steps = leaves.origin(rule.origin)
        fixed = self.catalog.source(node.label).schema if isinstance(use.use, Leaf) else use.use.schema
        if isinstance(rule.origin, Reference):
            names = dict(zip(node.schema, rule.origin.schema, strict=True))
            fixed = tuple(names.get(variable, variable) for variable in fixed)
        variables = self.storage.variables(rule.origin)
        return _Delta(name, variables, self.storage.edges(rule.origin), frozenset(fixed)), steps

    def _apply(self, rule: Rule, delta: _Delta, pending: Mapping[Node, str]) -> Iterator[ir.Step]:
        for i, stage in enumerate(rule.stages):
            yield from self._join(delta, stage, pending)
            later = {variable for rest in rule.stages[i + 1 :] for node in rest for variable in node.schema}
            if later:
                keep = later.union(rule.view.schema)
                yield from self._project(delta, tuple(variable for variable in delta.schema if variable in keep))
        yield from self._project(delta, self.storage.variables(rule.view))
        if self.storage.key(rule.view) in self._stored_keys:
            change, name = delta.name, self.storage.declare(rule.view)
            if rule.view.is_support:
                delta.name = self._register()
                yield ir.Exists(delta.name, change, name, delta.schema)
            yield ir.Add(change, name)

    def _emitted(self, view: View, delta: _Delta) -> Iterator[ir.Step]:
        for name, blueprint in self.catalog.blueprints.items():
            if view in blueprint.changes:
                yield ir.Emit(delta.name, name)

    # Bulk build

    def fill(self, filled: frozenset[str]) -> tuple[ir.Step, ...]:
        """Fills the leaves from whole tables, but for the maps that are filled already."""
        steps: list[ir.Step] = []
        for relation in self.relations:
            leaves = self._leaf_deltas(relation)
            steps += leaves.steps(self._stored_keys)
            steps += [step for step in leaves.commit(lambda _: True) if step.map not in filled]
        return without_dead_steps(steps)

    def build(self, name: str, filled: frozenset[str] = frozenset()) -> tuple[ir.Step, ...]:
        """Materialises each stored view of a blueprint once, bottom-up, but for the maps that are filled already."""
        steps: list[ir.Step] = []
        done = set(filled)
        for definition in self.catalog.blueprints[name].definitions:
            if self.storage.key(definition.view) in self._stored_keys:
                stored = self.storage.declare(definition.view)
                if stored not in done:
                    done.add(stored)
                    delta, construction = self._construct(definition)
                    steps += [*construction, ir.Add(delta.name, stored)]
        return without_dead_steps(steps)

    def _construct(self, definition: Definition) -> tuple[_Delta, list[ir.Step]]:
        """Steps that compute a view from its children, beginning with the widest."""
        first, *rest = sorted(definition.children, key=lambda node: -len(node.schema))
        delta, steps = self._start(first)
        steps += self._join(delta, tuple(rest), {})
        steps += self._project(delta, self.storage.variables(definition.view))
        return delta, steps

    def _start(self, node: Node) -> tuple[_Delta, list[ir.Step]]:
        """All tuples of a node: from its map if it has one, else computed."""
        variables = self.storage.variables(node)
        delta = _Delta(self._register(), variables, self.storage.edges(node), frozenset())
        if self.storage.key(node) in self._stored_keys:
            map_name = self.storage.declare(node)
            return delta, [ir.Scan(delta.name, map_name, variables, only_presence(node))]
        if isinstance(node, View):
            return self._construct(self.catalog.definitions[node])
        assert not isinstance(node, Reference), "definitions join nodes under their own names"
        source = self.catalog.source(node.label)
        delta.schema = source.schema
        steps: list[ir.Step] = [ir.Load(delta.name, source)]
        return delta, steps + list(self._project(delta, variables))

    # Reading

    def enumeration(self, name: str) -> ir.Enumeration:
        """The nested loops, the factors of the payload, and the ordered groups of a view."""
        blueprint = self.catalog.blueprints[name]
        leaves, reading = blueprint.leaves, blueprint.reading
        known = [variable for variable, _ in leaves.inputs]
        loops: list[ir.Loop] = []
        for iteration in reading.iterations:
            loops.append(ir.Loop(self.storage.read(iteration.node, known, iteration.new), iteration.new))
            known += iteration.new
        factors = tuple(self.storage.read(node, known, ()) for node in reading.factors)
        extremes = tuple(self.storage.extreme(*extreme) for extreme in reading.extremes)
        return ir.Enumeration(leaves.inputs, leaves.outputs, leaves.slots, tuple(loops), factors, extremes)


def _rank(node: Node) -> tuple[str, ...]:
    node = referred(node)
    return ("view", node.name) if isinstance(node, View) else (type(node).__name__, node.label, *node.schema)


class _Versions:
    """Which contents of the changed relation's shared maps each propagation must see."""

    def __init__(self, storage: Storage, propagations: list[Propagation]) -> None:
        self._storage = storage
        self._order = {propagation.use: k for k, propagation in enumerate(propagations)}
        self._bases = {use.label: k for use, k in self._order.items() if isinstance(use, Leaf)}
        self._last_old: dict[MapKey, int] = {}
        for k, propagation in enumerate(propagations):
            for rule in propagation.rules:
                for sibling in rule.siblings:
                    if self._position(sibling, k) > k:
                        self._last_old[storage.key(sibling)] = k

    def _position(self, node: Node, current: int) -> int:
        """The sibling's place among the uses of the changed relation; `current` if it does not change."""
        node = referred(node)
        if isinstance(node, View):
            return current
        if isinstance(node, IndicatorLeaf):
            return self._order.get(node, current)
        return self._bases.get(node.label, current)

    def is_new(self, key: MapKey, at: int) -> bool:
        """Whether the map may hold its new contents from propagation `at` on."""
        return self._last_old.get(key, -1) < at

    def pending(self, rule: Rule, k: int) -> list[Node]:
        """Siblings whose new contents the rule wants while their map holds the old."""
        new = [sibling for sibling in rule.siblings if self._position(sibling, k) < k]
        return [sibling for sibling in new if not self.is_new(self._storage.key(sibling), k)]
