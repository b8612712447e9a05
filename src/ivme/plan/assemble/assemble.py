"""From blueprints to a `Program`: triggers, the bulk build, the enumeration.

Within one trigger the occurrences of the changed relation are propagated one after the other; those before the
current one are read with their new contents and those after it with the old. A map that several of
them share takes its delta after the last read of its old contents; reads of the new contents before that see the
delta as `pending`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from ivme.budget import spend
from ivme.plan.assemble.blueprint import (
    Blueprint,
    Definition,
    IndicatorLeaf,
    Leaf,
    Node,
    PieceRule,
    Propagation,
    Reference,
    Rule,
    StoredView,
    only_presence,
    referred,
)
from ivme.plan.assemble.catalog import MapCatalog, catalog_of
from ivme.plan.assemble.enumeration import enumeration_of
from ivme.plan.assemble.join import Extension, extensions
from ivme.plan.assemble.leaf_deltas import LeafDeltas
from ivme.plan.assemble.moves import pseudo_source
from ivme.plan.assemble.prune import without_dead_steps
from ivme.plan.assemble.rebalancing import measured_by, moves_of, partitions_of, watches
from ivme.plan.assemble.storage import Existing, MapKey, Storage
from ivme.plan.assemble.versions import Versions
from ivme.plan.ir import program as ir
from ivme.structure.hypergraph import Edge


def assemble(blueprint: Blueprint) -> ir.Program:
    """The program of one view; what is not read is neither stored nor computed."""
    return program_of(Assembly(catalog_of({"": blueprint})), "")


def program_of(assembly: Assembly, name: str) -> ir.Program:
    """The program of the only view of an assembly; its maps are in the same order whatever is there already."""
    blueprint = assembly.catalog.blueprints[name]
    triggers = tuple(ir.Trigger(relation, assembly.trigger(relation)) for relation in assembly.relations)
    fill = () if blueprint.lazy else assembly.fill(frozenset())
    build, enumeration = assembly.build(name), assembly.enumeration(name)
    moves, partitions, measured = moves_of(assembly), partitions_of(assembly), measured_by(assembly)
    maps = assembly.storage.maps()
    if not partitions:
        fill, build = (), fill + build
    sources = blueprint.leaves.sources
    return ir.Program(sources, maps, triggers, build, enumeration, blueprint.lazy, partitions, moves, fill, measured)


@dataclass(slots=True)
class _Delta:
    """A delta on its way up: its register, its variables, the edges that bound its size, what the update fixed."""

    name: str
    schema: tuple[str, ...]
    edges: frozenset[Edge]
    fixed: frozenset[str]


class Assembly:
    """The programs of a catalog under construction. `existing` are maps that are there already, by key."""

    def __init__(
        self, catalog: MapCatalog, existing: Existing | None = None, prefix: str = "", *, exponents: bool = True
    ) -> None:
        self.catalog = catalog
        self.storage = Storage(catalog, existing, prefix, exponents=exponents)
        alive = catalog.liveness()
        self._live = alive.views
        self.held = self._held(alive.stored) if catalog.splits else {}
        self.stored = self._with_supports(alive.stored | frozenset(self.held.values()))
        self.stored_keys = frozenset(self.storage.key(node) for node in self.stored)
        self._places = {label: place for place, label in enumerate(catalog.sources)}
        self._followed = frozenset(view for b in catalog.blueprints.values() for view in b.changes)
        self.registers = 0
        self.section = ""
        self.joins: dict[str, list[tuple[frozenset[Edge], frozenset[str], frozenset[str]]]] = {}

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that some view reads."""
        return tuple(dict.fromkeys(source.atom.relation for source in self.catalog.sources.values()))

    def _with_supports(self, stored: frozenset[Node]) -> tuple[Node, ...]:
        """Indicators judge presence in the whole leaf and in their support, so both are stored."""
        propagations = [p for b in self.catalog.blueprints.values() if not b.lazy for p in b.propagations]
        propagated = {p.use for p in propagations if any(rule.view in self._live for rule in p.rules)}
        indicators = {node for node in stored | propagated if isinstance(node, IndicatorLeaf)}
        leaves = {Leaf(i.label, self.catalog.sources[i.label].schema) for i in indicators}
        return tuple(sorted(stored | indicators | leaves, key=_rank))

    def _held(self, stored: frozenset[Node]) -> dict[str, Leaf]:
        """The leaf that holds the rows of each atom: all that rules read of it, so that they can move."""
        variables: dict[str, set[str]] = {}
        rules = [rule for b in self.catalog.blueprints.values() for p in b.propagations for rule in p.rules]
        used = [node for rule in rules if rule.view in self._live for node in (rule.origin, *rule.siblings)]
        for node in map(referred, (*sorted(stored, key=_rank), *used)):
            if isinstance(node, Leaf):
                variables.setdefault(node.label, set()).update(node.schema)
        for label, seen in variables.items():
            seen.update(variable for side in self.catalog.sources[label].part for variable in side.key)
        return {
            label: Leaf(label, tuple(v for v in self.catalog.sources[label].schema if v in seen))
            for label, seen in variables.items()
        }

    def maps_of(self, name: str) -> list[str]:
        """The maps that a view needs, those that it shares included; once its program has been assembled."""
        blueprint = self.catalog.blueprints[name]
        labels = frozenset(blueprint.labels)
        mine = [node for node in self.stored if labels.issuperset(_labels(node)[:1])]
        return self.storage.names(mine, blueprint.splits)

    def register(self) -> str:
        self.registers += 1
        return f"d{self.registers}"

    def relation_of(self, node: Leaf | IndicatorLeaf) -> str:
        return self.catalog.sources[node.label].atom.relation

    def _leaf_deltas(
        self, relation: str, origins: Iterable[Node] = (), filled: frozenset[str] = frozenset()
    ) -> LeafDeltas:
        """The deltas of the leaves that are stored or that set off a propagation."""
        used = {referred(node) for node in (*self.stored, *origins)}
        nodes = [n for n in used if not isinstance(n, StoredView) and self.relation_of(n) == relation]
        places = self._places
        nodes.sort(key=lambda n: (isinstance(n, IndicatorLeaf), places[n.label], -len(n.schema), n.schema))
        return LeafDeltas(self.storage, nodes, self.register, filled)

    # Joins

    def _join(self, delta: _Delta, nodes: tuple[Node, ...], pending: Mapping[Node, str]) -> Iterator[ir.Step]:
        for extension in extensions(frozenset(delta.schema), nodes, self.storage.determined):
            yield self._extend(delta, extension, pending)

    def _extend(self, delta: _Delta, extension: Extension, pending: Mapping[Node, str]) -> ir.Join:
        nodes = extension.full + extension.partial
        spend(10 + 2 * len(nodes))
        reads = tuple(self.storage.read(node, delta.schema, extension.new, pending.get(node)) for node in nodes)
        edges = [self.storage.edges(node) for node in nodes]
        delta.schema += extension.new
        origin, delta.name = delta.name, self.register()
        sizes = self.storage.sizes
        exponent = sizes.work(delta.edges, edges, delta.schema, delta.fixed, grows=bool(extension.new))
        delta.edges = delta.edges.union(*edges)
        self.joins.setdefault(self.section, []).append((delta.edges, frozenset(delta.schema), delta.fixed))
        return ir.Join(delta.name, origin, reads, delta.schema, exponent)

    def _project(self, delta: _Delta, schema: tuple[str, ...]) -> Iterator[ir.Step]:
        if schema != delta.schema:
            origin, delta.name, delta.schema = delta.name, self.register(), schema
            yield ir.Project(delta.name, origin, schema)

    # Triggers

    def trigger(self, relation: str) -> tuple[ir.Step, ...]:
        """The steps of a relation's trigger."""
        self.section = "update"
        return without_dead_steps(list(self._trigger(relation)))

    def _trigger(self, relation: str) -> Iterator[ir.Step]:
        affected = self.affected(relation)
        leaves = self._leaf_deltas(relation, [rule.origin for p in affected for rule in p.rules])
        yield from leaves.steps(self.stored_keys)
        yield from self.propagated(affected, leaves)
        yield from watches(self, relation, leaves)

    def affected(self, relation: str) -> list[Propagation]:
        """What a change of the relation sets off, without what is not needed."""
        return [
            Propagation(p.use, tuple(rule for rule in p.rules if rule.view in self._live))
            for p in self.catalog.propagations(relation)
        ]

    def propagated(self, affected: list[Propagation], leaves: LeafDeltas) -> Iterator[ir.Step]:
        """Takes the deltas of the leaves up, one leaf after the other."""
        versions = Versions(self.storage, affected)
        shared: dict[MapKey, _Delta] = {}
        for k, propagation in enumerate(affected):
            yield from leaves.commit(partial(versions.is_new, at=k))
            yield from self._propagate(propagation, k, versions, leaves, shared)
        yield from leaves.commit(lambda _: True)

    def _propagate(
        self,
        use: Propagation,
        k: int,
        versions: Versions,
        leaves: LeafDeltas,
        shared: dict[MapKey, _Delta],
    ) -> Iterator[ir.Step]:
        """Runs the rules of one use. A shared view has no indicators and one occurrence of the relation below it, so
        the first of its owners to come brings it up to date, and the others take the same delta."""
        deltas: dict[Node, _Delta] = {}
        for rule in use.rules:
            spend(5)
            key = self.storage.key(rule.view)
            if key in shared:
                delta = self._reload(shared[key], rule.view)
                yield ir.Rename(delta.name, shared[key].name, delta.schema)
            else:
                delta, steps = self._origin(rule, deltas, leaves, use)
                yield from steps
                pending = {sibling: leaves.change(sibling) for sibling in versions.pending(rule, k)}
                yield from self._apply(rule, delta, pending)
                shared.update({} if self.storage.is_private(rule.view) else {key: delta})
            deltas[rule.view] = delta
            yield from self._emitted(rule.view, delta)

    def _reload(self, delta: _Delta, view: StoredView | Reference) -> _Delta:
        """The delta of an equal view, or of the view that is referred to, under this one's names."""
        names = dict(zip(delta.schema, self.storage.variables(view), strict=True))
        edges = frozenset(Edge(e.label, frozenset(names.get(v, v) for v in e.variables)) for e in delta.edges)
        fixed = frozenset(names.get(variable, variable) for variable in delta.fixed)
        return _Delta(self.register(), self.storage.variables(view), edges | self.storage.edges(view), fixed)

    def _origin(
        self, rule: Rule, deltas: Mapping[Node, _Delta], leaves: LeafDeltas, use: Propagation
    ) -> tuple[_Delta, list[ir.Step]]:
        node = referred(rule.origin)
        if isinstance(node, StoredView):
            delta = deltas[node]
            if isinstance(rule.origin, Reference):
                renamed = self._reload(delta, rule.origin)
                return renamed, [ir.Rename(renamed.name, delta.name, renamed.schema)]
            return _Delta(delta.name, delta.schema, delta.edges, delta.fixed), []
        name, steps = leaves.origin(rule.origin)
        fixed = self.catalog.sources[node.label].schema if isinstance(use.use, Leaf) else use.use.schema
        if isinstance(rule.origin, Reference):
            names = dict(zip(node.schema, rule.origin.schema, strict=True))
            fixed = tuple(names.get(variable, variable) for variable in fixed)
        variables = self.storage.variables(rule.origin)
        return _Delta(name, variables, self.storage.edges(rule.origin), frozenset(fixed)), steps

    def _apply(self, rule: Rule, delta: _Delta, pending: Mapping[Node, str]) -> Iterator[ir.Step]:
        yield from self._staged(delta, rule.stages, rule.view, pending)
        if self.storage.key(rule.view) in self.stored_keys:
            change, name = delta.name, self.storage.declare(rule.view)
            if rule.view.is_support:
                delta.name = self.register()
                yield ir.Exists(delta.name, change, name, delta.schema)
            yield ir.Add(change, name)

    def _staged(
        self, delta: _Delta, stages: tuple[tuple[Node, ...], ...], view: StoredView, pending: Mapping[Node, str]
    ) -> Iterator[ir.Step]:
        """Joins stage by stage, and sums to what is needed after each."""
        for i, stage in enumerate(stages):
            yield from self._join(delta, stage, pending)
            later = {variable for rest in stages[i + 1 :] for node in rest for variable in node.schema}
            if later:
                keep = later.union(view.schema)
                yield from self._project(delta, tuple(variable for variable in delta.schema if variable in keep))
        yield from self._project(delta, self.storage.variables(view))

    def _emitted(self, view: StoredView, delta: _Delta) -> Iterator[ir.Step]:
        for name, blueprint in self.catalog.blueprints.items() if view in self._followed else ():
            if view in blueprint.changes:
                yield ir.Emit(delta.name, name)

    # Bulk build

    def fill(self, filled: frozenset[str]) -> tuple[ir.Step, ...]:
        """Fills the leaves from whole tables, but for the maps that are filled already."""
        steps: list[ir.Step] = []
        for relation in self.relations:
            leaves = self._leaf_deltas(relation, filled=filled)
            steps += leaves.steps(self.stored_keys)
            steps += [step for step in leaves.commit(lambda _: True) if step.map not in filled]
        return without_dead_steps(steps)

    def build(self, name: str, filled: frozenset[str] = frozenset()) -> tuple[ir.Step, ...]:
        """Materialises each stored view of a blueprint once, bottom-up, but for the maps that are filled already."""
        self.section = "build"
        steps: list[ir.Step] = []
        owners: dict[str, StoredView] = {}
        for definition in self.catalog.blueprints[name].definitions:
            if self.storage.key(definition.view) in self.stored_keys:
                stored = self.storage.declare(definition.view)
                if stored not in filled and owners.setdefault(stored, definition.view) == definition.view:
                    delta, construction = self._construct(definition)
                    steps += [*construction, ir.Add(delta.name, stored)]
        return without_dead_steps(steps)

    def _construct(self, definition: Definition) -> tuple[_Delta, list[ir.Step]]:
        """Steps that compute a view from its children, beginning with the widest, or with the first of its stages."""
        widest = tuple(sorted(definition.children, key=lambda node: -len(node.schema)))
        (first, *rest), *stages = definition.stages or (widest,)
        delta, steps = self._start(first)
        steps += self._staged(delta, (tuple(rest), *stages), definition.view, {})
        return delta, steps

    def _start(self, node: Node) -> tuple[_Delta, list[ir.Step]]:
        """All tuples of a node: from its map if it has one, else computed."""
        variables = self.storage.variables(node)
        delta = _Delta(self.register(), variables, self.storage.edges(node), frozenset())
        if self.storage.key(node) in self.stored_keys:
            map_name = self.storage.declare(node)
            return delta, [ir.Scan(delta.name, map_name, variables, only_presence(node))]
        if isinstance(node, StoredView):
            return self._construct(self.catalog.definitions[node])
        assert not isinstance(node, Reference), "definitions join nodes under their own names"
        source = self.catalog.sources[node.label]
        delta.schema = source.schema
        steps: list[ir.Step] = [ir.Load(delta.name, source)]
        return delta, steps + list(self._project(delta, variables))

    # Reading

    def enumeration(self, name: str) -> ir.Enumeration:
        """How the rows of a view are read."""
        self.section = "read"
        return enumeration_of(self, self.catalog.blueprints[name])

    def asked(
        self, schema: tuple[str, ...], stages: tuple[tuple[Node, ...], ...], wanted: tuple[str, ...]
    ) -> tuple[ir.Step, ...]:
        """Steps from given tuples to payloads: joined stage by stage, summed to the wanted variables, and emitted."""
        load = ir.Load(self.register(), pseudo_source(ir.ROWS, schema, schema))
        delta = _Delta(load.target, schema, frozenset(), frozenset(schema))
        steps = list(self._staged(delta, stages, _answer(wanted), {}))
        return without_dead_steps([load, *steps, ir.Emit(delta.name, "answer")])

    def asked_pieces(self, inputs: tuple[str, ...], pieces: tuple[PieceRule, ...]) -> tuple[ir.Step, ...]:
        """Steps from the inputs of requests to the pieces of their rows, each of which is emitted."""
        load = ir.Load(self.register(), pseudo_source(ir.ROWS, inputs, inputs))
        steps: list[ir.Step] = [load]
        found: list[_Delta] = []
        for piece in pieces:
            delta = _Delta(load.target, inputs, frozenset(), frozenset(inputs))
            if piece.follows:
                above = found[piece.parent]
                key = tuple(variable for variable in above.schema if variable in (*inputs, *piece.schema))
                delta = _Delta(self.register(), key, above.edges, above.fixed)
                steps.append(ir.Distinct(delta.name, above.name, key))
            steps += self._staged(delta, piece.stages, _answer((*inputs, *piece.schema)), {})
            steps.append(ir.Emit(delta.name, "answer"))
            found.append(delta)
        return without_dead_steps(steps)


def _answer(schema: tuple[str, ...]) -> StoredView:
    """What requests are summed to, as a view that nothing stores."""
    return StoredView("answer", schema, "changes", ())


def _labels(node: Node) -> tuple[str, ...]:
    """The atoms below a node; all of them are of one view."""
    node = referred(node)
    return (*node.atoms, *(label for label, _ in node.indicators)) if isinstance(node, StoredView) else (node.label,)


def _rank(node: Node) -> tuple[str, ...]:
    node = referred(node)
    return ("view", node.name) if isinstance(node, StoredView) else (type(node).__name__, node.label, *node.schema)
