"""Which maps a program has, and how its nodes are read from them.

A map is known by what it holds: two atoms that read the same columns of a relation in the same way share a leaf,
whatever they call their variables, and two views that join equal children in the same way are one, unless a
relation below them repeats in their query or they contain an indicator: the occurrences of a relation are propagated
one after the other, and a view above them must change exactly when its own occurrence is.
Indexes are declared as reads turn up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ivme.plan.assemble.blueprint import (
    IndicatorLeaf,
    Leaf,
    Node,
    Reference,
    Split,
    StoredView,
    only_presence,
    referred,
)
from ivme.plan.assemble.catalog import MapCatalog
from ivme.plan.assemble.join_size import JoinSizes
from ivme.plan.ir import program as ir
from ivme.query.expression import ColumnRef
from ivme.query.percentile import read_percentile
from ivme.structure.hypergraph import Edge

MapKey = tuple[object, ...]
"""What makes two nodes the same map."""

Existing = dict[MapKey, tuple[str, tuple[int, ...]]]
"""Maps by key: their names, and for a view that queries may share the order of its columns, as places among its
variables in their canonical order."""


@dataclass(slots=True)
class _Draft:
    """A map under construction."""

    declared: ir.Map
    indexes: dict[ir.Index, None] = field(default_factory=dict)
    sorted_by: dict[ir.Index, None] = field(default_factory=dict)
    ranked_by: dict[ir.Index, None] = field(default_factory=dict)

    def indexed(self) -> ir.Map:
        """The map with all the indexes that reads need."""
        if not (self.indexes or self.sorted_by or self.ranked_by):
            return self.declared
        indexes, ordered, ranked = tuple(self.indexes), tuple(self.sorted_by), tuple(self.ranked_by)
        return replace(self.declared, indexes=indexes, sorted_by=ordered, ranked_by=ranked)

    def indexes_for(self, function: str) -> dict[ir.Index, None]:
        """The indexes that answer such a read of a group."""
        if function in ("min", "max"):
            return self.sorted_by
        return self.indexes if read_percentile(function) is None else self.ranked_by


@dataclass(frozen=True, slots=True)
class _Canonical:
    """The key of a view, and its variables in an order that views of one key agree on, whatever they call them."""

    key: MapKey
    variables: tuple[str, ...]


class Storage:
    """The maps of one program under construction.

    `existing` are maps that are there already, by key; new names of leaves start with the prefix.
    """

    def __init__(
        self, catalog: MapCatalog, existing: Existing | None = None, prefix: str = "", *, exponents: bool = True
    ) -> None:
        self.catalog = catalog
        self._prefix = prefix
        self._existing = existing or {}
        self._orders = {key: order for key, (_, order) in self._existing.items()}
        self._taken = {name for name, _ in self._existing.values()}
        self._drafts: dict[MapKey, _Draft] = {}
        self._nodes: dict[int, tuple[Node, MapKey, tuple[str, ...]]] = {}
        self._views: dict[StoredView, _Canonical] = {}
        self._whole_keys: dict[str, MapKey] = {}
        self._leaves: dict[Leaf | IndicatorLeaf, tuple[MapKey, tuple[str, ...]]] = {}
        self._source_keys: dict[str, MapKey] = {}
        self._atoms = {label: Edge(label, frozenset(source.schema)) for label, source in catalog.sources.items()}
        self._edges: dict[Node, frozenset[Edge]] = {}
        epsilons = {split.epsilon for split in catalog.splits}
        own = {split.name: split.epsilon for split in catalog.splits}
        self.sizes = JoinSizes(catalog.sources, epsilons.pop() if len(epsilons) == 1 else own, exponents=exponents)

    def maps(self) -> tuple[ir.Map, ...]:
        """The declared maps with all the indexes that reads need."""
        return tuple([draft.indexed() for draft in self._drafts.values()])

    def declared(self) -> Existing:
        """The declared maps by key, for the next assembly."""
        return {key: (draft.declared.name, self._orders.get(key, ())) for key, draft in self._drafts.items()}

    def names(self, nodes: Iterable[Node], splits: Iterable[Split]) -> list[str]:
        """The maps of some nodes and partitions, each once: those that were declared."""
        keys = dict.fromkeys([*(("heavy", split.name) for split in splits), *(self.key(node) for node in nodes)])
        return [self._drafts[key].declared.name for key in keys if key in self._drafts]

    def identities(self) -> dict[str, str]:
        """For each map by its name, a text: maps of one text hold the same over the same tables, in every process.

        A map that queries may share is told by its key and the order of its columns, any other by its definition, too.
        """
        return {draft.declared.name: repr(self._identity(key, draft.declared)) for key, draft in self._drafts.items()}

    def _identity(self, key: MapKey, declared: ir.Map) -> tuple[object, ...]:
        if not _is_private(key):
            return key, declared.sums, self._orders.get(key, ())
        labels = (*declared.atoms, *(label for label, _ in declared.indicators))
        definition = declared.schema, declared.role, declared.indicators, declared.counted
        return key, declared.sums, definition, tuple(self.catalog.sources[label] for label in labels)

    def whole_key(self, label: str) -> MapKey:
        """What two atoms must have in common to be loaded together: everything but the names of their variables."""
        if label not in self._whole_keys:
            self._whole_keys[label] = loaded_as(self.catalog.sources[label])
        return self._whole_keys[label]

    def source_key(self, label: str) -> MapKey:
        """What two atoms must have in common to share a leaf: they are loaded together, and are the same part, in
        whatever order its sides are named."""
        if label not in self._source_keys:
            self._source_keys[label] = self._source_key(label)
        return self._source_keys[label]

    def _source_key(self, label: str) -> MapKey:
        source = self.catalog.sources[label]
        sides = tuple(sorted((side.partition, self.positions(label, side.key), side.heavy) for side in source.part))
        return (*self.whole_key(label), sides) if sides else self.whole_key(label)

    def positions(self, label: str, variables: Iterable[str]) -> tuple[int, ...]:
        """Where variables of an atom are among its own."""
        schema = self.catalog.sources[label].schema
        return tuple(map(schema.index, variables))

    def key(self, node: Node) -> MapKey:
        """The identity of the node's map; an indicator on all variables of its atom reads the atom's own leaf."""
        found = self._nodes.get(id(node))
        return (self._look_up(node) if found is None else found)[1]

    def variables(self, node: Node) -> tuple[str, ...]:
        """The node's variables in the order of its map's columns."""
        found = self._nodes.get(id(node))
        return (self._look_up(node) if found is None else found)[2]

    def _look_up(self, node: Node) -> tuple[Node, MapKey, tuple[str, ...]]:
        """The node, which is held so that no other has its id, with its key and its variables."""
        if isinstance(node, Reference):
            names = dict(zip(node.node.schema, node.schema, strict=True))
            key, variables = self.key(node.node), tuple([names[variable] for variable in self.variables(node.node)])
        else:
            key, variables = self._view(node) if isinstance(node, StoredView) else self._leaf(node)
        found = self._nodes[id(node)] = node, key, variables
        return found

    def _leaf(self, node: Leaf | IndicatorLeaf) -> tuple[MapKey, tuple[str, ...]]:
        """The key of a leaf and its variables in the order of its map's columns."""
        found = self._leaves.get(node)
        if found is None:
            schema = self.catalog.sources[node.label].schema
            columns = tuple(sorted(map(schema.index, node.schema)))
            whole = len(columns) == len(schema)
            kind = "leaf" if isinstance(node, Leaf) or whole else "support"
            key = (kind, self.source_key(node.label), columns)
            found = self._leaves[node] = key, tuple(map(schema.__getitem__, columns))
        return found

    def is_private(self, view: StoredView) -> bool:
        """Whether the view's map belongs to one query only."""
        return _is_private(self.key(view))

    def _view(self, view: StoredView) -> tuple[MapKey, tuple[str, ...]]:
        """The key of a view and the order of its columns: where maps are shared, that of the first to be stored."""
        found = self._canonical(view)
        if _is_private(found.key):
            return found.key, view.schema
        order = self._orders.setdefault(found.key, tuple(map(found.variables.index, view.schema)))
        return found.key, tuple(map(found.variables.__getitem__, order))

    def _canonical(self, view: StoredView) -> _Canonical:
        found = self._views.get(view)
        if found is None:
            found = self._views[view] = self._canonical_view(view)
        return found

    def _canonical_view(self, view: StoredView) -> _Canonical:
        """Numbers the variables as the children, in the order of their keys, bring them in.

        Nothing here depends on the columns of a child's map: those of a view that is passed through are chosen again
        in each assembly.
        """
        definition = self.catalog.definitions.get(view)
        if definition is None or view.indicators or not self.catalog.unrepeated.issuperset(view.atoms):
            return _Canonical(("view", view.name), view.schema)
        children = sorted(definition.children, key=lambda child: repr((self.key(child), only_presence(child))))
        numbers: dict[str, int] = {}
        parts: list[object] = []
        for child in children:
            columns = tuple(numbers.setdefault(v, len(numbers)) for v in self._canonical_variables(child))
            parts.append((self.key(child), only_presence(child), columns))
        kept = tuple(sorted(view.schema, key=numbers.__getitem__))
        key = ("view" if view.counted is None else "marks", tuple(parts), tuple(map(numbers.__getitem__, kept)))
        return _Canonical(key, kept)

    def _canonical_variables(self, node: Node) -> tuple[str, ...]:
        """The node's variables in an order that follows from its definition alone."""
        if isinstance(node, StoredView):
            return self._canonical(node).variables
        if not isinstance(node, Reference):
            return self._leaf(node)[1]
        names = dict(zip(node.node.schema, node.schema, strict=True))
        return tuple(map(names.__getitem__, self._canonical_variables(node.node)))

    def declare(self, node: Node) -> str:
        """The name of the node's map, which is declared if it was not."""
        key = self.key(node)
        if key not in self._drafts:
            self._drafts[key] = _Draft(self._new_map(referred(node), key))
        return self._drafts[key].declared.name

    def _new_map(self, node: Node, key: MapKey) -> ir.Map:
        if isinstance(node, StoredView):
            name, role, atoms, indicators = node.name, node.role, node.atoms, node.indicators
        else:
            assert isinstance(node, Leaf | IndicatorLeaf)
            kind = str(key[0])
            relation = self.catalog.sources[node.label].atom.relation
            part = self.catalog.sources[node.label].part
            name = self._prefix + ("∃" if kind == "support" else "") + relation
            name += f"[{', '.join(map(str, part))}]" if part else ""
            role, atoms, indicators = kind, (node.label,), ()
        sums = role != "support" and any(self.catalog.sources[label].lifts for label in atoms)
        exponent = self.sizes.exponent(self.edges(node), node.schema)
        chosen = self._existing[key][0] if key in self._existing else self._unused(name)
        counted = node.counted if isinstance(node, StoredView) else None
        hashed = self._primary_key(node) if role == "leaf" else ()
        return ir.Map(
            chosen, self.variables(node), role, exponent, sums, (), (), atoms, indicators, counted, key=hashed
        )

    def _primary_key(self, node: Node) -> tuple[int, ...]:
        """Which columns of a leaf's map are the primary key of its relation. Heavy and light parts have none: their
        degrees are counted by group."""
        assert isinstance(node, Leaf | IndicatorLeaf)
        source, variables = self.catalog.sources[node.label], self.variables(node)
        key = [source.schema[place] for place in source.key]
        return () if self.catalog.splits or not set(key) <= set(variables) else tuple(map(variables.index, key))

    def declare_heavy(self, split: Split) -> str:
        """The name of the map of a partition's heavy keys."""
        key = ("heavy", split.name)
        if key not in self._drafts:
            name = f"{self._prefix}H_{''.join(split.key)}"
            chosen = self._existing[key][0] if key in self._existing else self._unused(name)
            self._drafts[key] = _Draft(ir.Map(chosen, split.key, "heavy", 1 - split.epsilon))
        return self._drafts[key].declared.name

    def _unused(self, name: str) -> str:
        free = name
        if name in self._taken:
            numbers = range(2, len(self._taken) + 3)
            free = next(f"{name}.{i}" for i in numbers if f"{name}.{i}" not in self._taken)
        self._taken.add(free)
        return free

    def edges(self, node: Node) -> frozenset[Edge]:
        """What bounds the node's size: its atoms, and its indicators as edges of their own."""
        found = self._edges.get(node)
        if found is None:
            found = self._edges[node] = self._edges_of(node)
        return found

    def _edges_of(self, node: Node) -> frozenset[Edge]:
        if isinstance(node, Reference):
            names = dict(zip(node.node.schema, node.schema, strict=True))
            inner = self.edges(node.node)
            return frozenset(Edge(e.label, frozenset(names.get(v, v) for v in e.variables)) for e in inner)
        if isinstance(node, StoredView):
            atoms, indicators = node.atoms, node.indicators
        elif isinstance(node, Leaf):
            atoms, indicators = (node.label,), ()
        else:
            atoms, indicators = (), ((node.label, node.schema),)
        found = {self._atoms[label]: (label, None) for label in atoms} | {
            Edge(f"∃{label}({','.join(sorted(schema))})", frozenset(schema)): (label, frozenset(schema))
            for label, schema in indicators
        }
        for edge, (label, shown) in found.items():
            rules = self.catalog.dependencies.of(label, shown)
            self.sizes.rules.update({edge: rules} if rules else {})
            if shown is not None:
                self.sizes.projected[edge] = label
        return frozenset(found)

    def determined(self, node: Node, known: frozenset[str]) -> frozenset[str]:
        """The variables of a node that follow from those that are known."""
        return self.sizes.determined(self.edges(node), known.intersection(node.schema))

    def read(self, node: Node, known: Iterable[str], new: tuple[str, ...], pending: str | None = None) -> ir.Read:
        """A read that takes the `known` variables as its key and yields the `new` ones."""
        name = self.declare(node)
        seen = {*known, *new}
        variables = tuple([v if v in seen else None for v in self.variables(node)])
        key = tuple([i for i, v in enumerate(variables) if v is not None and v not in new])
        values = tuple([i for i, v in enumerate(variables) if v in new])
        if new and (key or len(values) < len(variables)):
            self._drafts[self.key(node)].indexes.setdefault(ir.Index(key, values))
        return ir.Read(name, variables, _multiplies(node) and None not in variables, pending)

    def declare_index(self, node: Node, index: ir.Index) -> str:
        """The name of the node's map, which gets the index if it is one."""
        name = self.declare(node)
        if index.values:
            self._drafts[self.key(node)].indexes.setdefault(index)
        return name

    def extreme(self, function: str, variable: str, node: Node) -> ir.Extreme:
        """The read of an ordered group: all other variables of the node are its key."""
        name, variables = self.declare(node), self.variables(node)
        value = variables.index(variable)
        index = ir.Index(tuple(i for i in range(len(variables)) if i != value), (value,))
        self._drafts[self.key(node)].indexes_for(function).setdefault(index)
        return ir.Extreme(function, variable, ir.Read(name, variables, payload=False))


def loaded_as(source: ir.Source) -> MapKey:
    """How the rows of an atom are read, whatever its variables are called. A column is told by its name: such keys are
    compared all the time, and texts are compared quickly."""
    atom = source.atom
    columns = tuple([each.name if isinstance(each, ColumnRef) else each for each in atom.columns])
    terms = tuple(atom.variables.index(t) if isinstance(t, str) else t for t in atom.terms)
    return (atom.relation, atom.closure, columns, terms, atom.where, source.not_null, source.lifts)


def _is_private(key: MapKey) -> bool:
    """Whether a map belongs to one query only, by whose name it is known."""
    return isinstance(key[1], str)


def _multiplies(node: Node) -> bool:
    """Whether a read of the node multiplies payloads; indicators, supports and references for presence only filter."""
    return not only_presence(node) and (not isinstance(node, Reference) or node.payload)
