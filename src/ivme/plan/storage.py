"""Which maps a program has, and how its nodes are read from them.

Leaves and supports are stored once: two atoms that read the same columns of a relation in the same way share a
map, whatever they call their variables. Indexes are declared as reads turn up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from ivme.plan import program as ir
from ivme.plan.blueprint import Blueprint, IndicatorLeaf, Leaf, Node, View
from ivme.structure.hypergraph import Edge, Hypergraph
from ivme.structure.width import EdgeCovers

MapKey = tuple[object, ...]
"""What makes two nodes the same map."""


@dataclass(slots=True)
class _Draft:
    """A map under construction."""

    declared: ir.Map
    indexes: dict[ir.Index, None] = field(default_factory=dict)
    sorted_by: dict[ir.Index, None] = field(default_factory=dict)


class Storage:
    """The maps of one program under construction."""

    def __init__(self, blueprint: Blueprint) -> None:
        self.blueprint = blueprint
        self._drafts: dict[MapKey, _Draft] = {}
        self._covers: dict[frozenset[Edge], EdgeCovers] = {}

    def maps(self) -> tuple[ir.Map, ...]:
        """The declared maps with all the indexes that reads asked for."""
        return tuple(
            replace(draft.declared, indexes=tuple(draft.indexes), sorted_by=tuple(draft.sorted_by))
            for draft in self._drafts.values()
        )

    def source_key(self, label: str) -> MapKey:
        """What two atoms must have in common to share a leaf: everything but the names of their variables."""
        source = self.blueprint.source(label)
        atom = source.atom
        terms = tuple(atom.variables.index(t) if isinstance(t, str) else t for t in atom.terms)
        return (atom.relation, atom.closure, atom.columns, terms, atom.where, source.not_null, source.lifts)

    def key(self, node: Node) -> MapKey:
        """The identity of the node's map; an indicator on all variables of its atom reads the atom's own leaf."""
        if isinstance(node, View):
            return ("view", node.name)
        columns = self._columns(node)
        whole = len(columns) == len(self.blueprint.source(node.label).schema)
        kind = "leaf" if isinstance(node, Leaf) or whole else "support"
        return (kind, self.source_key(node.label), columns)

    def _columns(self, node: Leaf | IndicatorLeaf) -> tuple[int, ...]:
        schema = self.blueprint.source(node.label).schema
        return tuple(sorted(schema.index(variable) for variable in node.schema))

    def variables(self, node: Node) -> tuple[str, ...]:
        """The node's variables in the order of its map's columns."""
        if isinstance(node, View):
            return node.schema
        schema = self.blueprint.source(node.label).schema
        return tuple(schema[column] for column in self._columns(node))

    def declare(self, node: Node) -> str:
        """The name of the node's map, which is declared if it was not."""
        key = self.key(node)
        if key not in self._drafts:
            self._drafts[key] = _Draft(self._new_map(node, str(key[0])))
        return self._drafts[key].declared.name

    def _new_map(self, node: Node, kind: str) -> ir.Map:
        if isinstance(node, View):
            name, role, atoms, indicators = node.name, node.role, node.atoms, node.indicators
        else:
            relation = self.blueprint.source(node.label).atom.relation
            name, role, atoms, indicators = ("∃" if kind == "support" else "") + relation, kind, (node.label,), ()
        sums = role != "support" and any(self.blueprint.source(label).lifts for label in atoms)
        exponent = self.exponent(self.edges(node), node.schema)
        return ir.Map(
            self._unused(name), self.variables(node), role, exponent, sums, atoms=atoms, indicators=indicators
        )

    def _unused(self, name: str) -> str:
        taken = {draft.declared.name for draft in self._drafts.values()}
        if name not in taken:
            return name
        return next(f"{name}.{i}" for i in range(2, len(taken) + 3) if f"{name}.{i}" not in taken)

    def edges(self, node: Node) -> frozenset[Edge]:
        """What bounds the node's size: its atoms, and its indicators as edges of their own."""
        if isinstance(node, View):
            atoms, indicators = node.atoms, node.indicators
        elif isinstance(node, Leaf):
            atoms, indicators = (node.label,), ()
        else:
            atoms, indicators = (), ((node.label, node.schema),)
        return frozenset(
            {Edge(label, frozenset(self.blueprint.source(label).schema)) for label in atoms}
            | {Edge(f"∃{label}({','.join(sorted(schema))})", frozenset(schema)) for label, schema in indicators}
        )

    def exponent(self, edges: frozenset[Edge], variables: Iterable[str]) -> Fraction:
        """ρ* of the variables under these edges."""
        if edges not in self._covers:
            ordered = sorted(edges, key=lambda edge: (edge.label, sorted(edge.variables)))
            self._covers[edges] = EdgeCovers(Hypergraph(tuple(ordered)))
        covers = self._covers[edges]
        return covers.number(covers.mask(variables))

    def read(self, node: Node, known: Iterable[str], new: tuple[str, ...], pending: str | None = None) -> ir.Read:
        """A read that takes the `known` variables as its key and yields the `new` ones."""
        name = self.declare(node)
        seen = {*known, *new}
        variables = tuple(v if v in seen else None for v in self.variables(node))
        key = tuple(i for i, v in enumerate(variables) if v is not None and v not in new)
        values = tuple(i for i, v in enumerate(variables) if v in new)
        if new and (key or len(values) < len(variables)):
            self._drafts[self.key(node)].indexes.setdefault(ir.Index(key, values))
        payload = not isinstance(node, IndicatorLeaf) and None not in variables
        return ir.Read(name, variables, payload, pending)

    def extreme(self, function: str, variable: str, node: Node) -> ir.Extreme:
        """The read of an ordered group: all other variables of the node are its key."""
        name, variables = self.declare(node), self.variables(node)
        value = variables.index(variable)
        index = ir.Index(tuple(i for i in range(len(variables)) if i != value), (value,))
        draft = self._drafts[self.key(node)]
        (draft.indexes if function == "count_distinct" else draft.sorted_by).setdefault(index)
        return ir.Extreme(function, variable, ir.Read(name, variables, payload=False))
