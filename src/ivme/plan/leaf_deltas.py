"""The deltas of one relation's leaves: what a trigger knows before anything is propagated.

A change of a relation is loaded once for each way in which atoms read it. From it come the deltas of all leaves
(sums to fewer variables), of the supports (distinct tuples counted per projection) and of the indicators (where
a support leaves or reaches zero). Presence is judged against the maps as they were, so all of this comes before
any map of the relation takes its delta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ivme.plan import program as ir
from ivme.plan.blueprint import IndicatorLeaf, Leaf, Node, referred
from ivme.plan.storage import MapKey, Storage


class LeafDeltas:
    """The leaf deltas of one relation in one trigger, or in the bulk build."""

    def __init__(self, storage: Storage, nodes: Iterable[Leaf | IndicatorLeaf], register: Callable[[], str]) -> None:
        self._storage = storage
        self._register = register
        self._nodes = tuple(nodes)
        self._change: dict[MapKey, str] = {}
        self._presence: dict[MapKey, str] = {}
        self._schema: dict[str, tuple[str, ...]] = {}
        self._renamed: dict[tuple[str, tuple[str, ...]], str] = {}
        self._uncommitted: dict[MapKey, str] = {}

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

    def _keep(self, step: ir.Load | ir.Project | ir.Exists | ir.Rename) -> tuple[str, list[ir.Step]]:
        self._schema[step.target] = step.schema
        return step.target, [step]

    def _load(self, node: Leaf) -> Iterator[ir.Step]:
        source = self._storage.catalog.source(node.label)
        whole = self._storage.key(Leaf(node.label, source.schema))
        if whole not in self._change:
            self._change[whole], steps = self._keep(ir.Load(self._register(), source))
            yield from steps
        key = self._storage.key(node)
        if key not in self._change:
            yield from self._sum(key, self._change[whole], node)

    def _sum(self, key: MapKey, origin: str, node: Leaf | IndicatorLeaf) -> Iterator[ir.Step]:
        """Sums a delta over a whole atom to the columns of the node; the delta may bear another atom's names."""
        mine = self._storage.catalog.source(node.label).schema
        theirs = dict(zip(mine, self._schema[origin], strict=True))
        schema = tuple(theirs[variable] for variable in self._storage.variables(node))
        self._change[key], steps = self._keep(ir.Project(self._register(), origin, schema))
        yield from steps

    def _indicate(self, node: IndicatorLeaf) -> Iterator[ir.Step]:
        whole_leaf = Leaf(node.label, self._storage.catalog.source(node.label).schema)
        whole, key = self._storage.key(whole_leaf), self._storage.key(node)
        yield from self._load(whole_leaf)
        yield from self._present(whole, self._storage.declare(whole_leaf))
        if key not in self._change:
            yield from self._sum(key, self._presence[whole], node)
        yield from self._present(key, self._storage.declare(node))

    def _present(self, key: MapKey, name: str) -> Iterator[ir.Step]:
        if key not in self._presence:
            change = self._change[key]
            self._presence[key], steps = self._keep(ir.Exists(self._register(), change, name, self._schema[change]))
            yield from steps
