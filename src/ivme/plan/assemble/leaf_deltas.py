"""The deltas of one relation's leaves: what a trigger knows before anything is propagated.

A change of a relation is loaded once for each way in which atoms read it. From it come the deltas of all leaves
(filtered to heavy and light parts, summed to fewer variables), of the supports (distinct tuples counted per
projection) and of the indicators (where a support leaves or reaches zero). Presence is judged against the maps as
they were, so all of this comes before any map of the relation takes its delta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from ivme.plan.assemble.blueprint import IndicatorLeaf, Leaf, Node, referred
from ivme.plan.assemble.storage import MapKey, Storage
from ivme.plan.ir import program as ir


class LeafDeltas:
    """The leaf deltas of one relation in one trigger, or in the bulk build, where some maps may be `filled` before."""

    def __init__(
        self,
        storage: Storage,
        nodes: Iterable[Leaf | IndicatorLeaf],
        register: Callable[[], str],
        filled: frozenset[str] = frozenset(),
    ) -> None:
        self._storage = storage
        self._filled = filled
        self._register = register
        self._nodes = tuple(nodes)
        self._change: dict[MapKey, str] = {}
        self._presence: dict[MapKey, str] = {}
        self._schema: dict[str, tuple[str, ...]] = {}
        self._renamed: dict[tuple[str, tuple[str, ...]], str] = {}
        self._uncommitted: dict[MapKey, str] = {}
        self._loaded: dict[MapKey, str] = {}
        self._routed: dict[tuple[str, ir.Read, bool], str] = {}
        self._splits = {split.name: split for split in storage.catalog.splits}

    def steps(self, stored: frozenset[MapKey]) -> Iterator[ir.Step]:
        """Computes every delta; deltas of stored maps wait for `commit`."""
        for node in self._nodes:
            if isinstance(node, Leaf):
                yield from self._load(node)
            else:
                yield from self._indicate(node)
            if self._storage.key(node) in stored:
                self._uncommitted.setdefault(self._storage.key(node), self._storage.declare(node))

    def commit(self, ready: Callable[[MapKey], bool]) -> Iterator[ir.Add]:
        """Adds the deltas of the maps that are ready, each once."""
        for key in [key for key in self._uncommitted if ready(key)]:
            yield ir.Add(self._change[key], self._uncommitted.pop(key))

    def change(self, node: Node) -> str:
        """The delta that the node's map takes."""
        return self._change[self._storage.key(node)]

    def origin(self, node: Node) -> tuple[str, list[ir.Step]]:
        """The delta that sets off the node's propagation, under the names of its own variables."""
        key = self._storage.key(node)
        name = self._change[key] if isinstance(referred(node), Leaf) else self._presence[key]
        schema = self._storage.variables(node)
        if self._schema[name] == schema:
            return name, []
        if (name, schema) in self._renamed:
            return self._renamed[name, schema], []
        self._renamed[name, schema], steps = self._keep(ir.Rename(self._register(), name, schema))
        return self._renamed[name, schema], steps

    def _keep(
        self, step: ir.Load | ir.Project | ir.Exists | ir.Rename | ir.Filter | ir.Join | ir.Scan
    ) -> tuple[str, list[ir.Step]]:
        self._schema[step.target] = step.schema
        return step.target, [step]

    def loaded(self, label: str) -> tuple[str, tuple[str, ...]]:
        """The delta of all rows of an atom, whatever their part, and its variables in the order of the atom's."""
        name = self._loaded[self._storage.whole_key(label)]
        return name, self._schema[name]

    def _load(self, node: Leaf) -> Iterator[ir.Step]:
        source = self._storage.catalog.sources[node.label]
        whole, key = self._storage.key(Leaf(node.label, source.schema)), self._storage.key(node)
        if whole not in self._change:
            every = self._storage.whole_key(node.label)
            if every not in self._loaded:
                self._loaded[every], steps = self._keep(ir.Load(self._register(), replace(source, part=())))
                yield from steps
            self._change[whole], steps = self._route(self._loaded[every], node.label, source.part)
            yield from steps
        if key not in self._change:
            yield from self._sum(key, self._change[whole], node)

    def _route(self, origin: str, label: str, sides: tuple[ir.Side, ...]) -> tuple[str, list[ir.Step]]:
        """The delta of a part: what passes the filters of its HL-signature, one after the other."""
        found: list[ir.Step] = []
        for side in sides:
            schema = self._schema[origin]
            key = tuple(schema[i] for i in self._storage.positions(label, side.key))
            heavy = self._storage.declare_heavy(self._splits[side.partition])
            read = ir.Read(heavy, key, payload=False)
            if (origin, read, side.heavy) not in self._routed:
                step = ir.Filter(self._register(), origin, read, side.heavy, schema)
                self._routed[origin, read, side.heavy], steps = self._keep(step)
                found += steps
            origin = self._routed[origin, read, side.heavy]
        return origin, found

    def _sum(self, key: MapKey, origin: str, node: Leaf | IndicatorLeaf) -> Iterator[ir.Step]:
        """Sums a delta over a whole atom to the columns of the node; the delta may bear another atom's names."""
        mine = self._storage.catalog.sources[node.label].schema
        theirs = dict(zip(mine, self._schema[origin], strict=True))
        schema = tuple(theirs[variable] for variable in self._storage.variables(node))
        self._change[key], steps = self._keep(ir.Project(self._register(), origin, schema))
        yield from steps

    def _indicate(self, node: IndicatorLeaf) -> Iterator[ir.Step]:
        whole_leaf = Leaf(node.label, self._storage.catalog.sources[node.label].schema)
        whole, key = self._storage.key(whole_leaf), self._storage.key(node)
        yield from self._load(whole_leaf)
        yield from self._present(whole, self._storage.declare(whole_leaf))
        if key not in self._change:
            yield from self._sum(key, self._presence[whole], node)
        yield from self._present(key, self._storage.declare(node))

    def _present(self, key: MapKey, name: str) -> Iterator[ir.Step]:
        """Where tuples appear or disappear; all that a map holds which was filled before, as nothing of it is added."""
        if key not in self._presence:
            change = self._change[key]
            target, schema = self._register(), self._schema[change]
            appears = ir.Scan(target, name, schema, True) if name in self._filled else None
            self._presence[key], steps = self._keep(appears or ir.Exists(target, change, name, schema))
            yield from steps
