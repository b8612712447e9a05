"""The widths of a variable order, and the indicator projections that make good on them (source 003, chapter 4).

Where keys hold, a view is smaller, and a changed row fixes more than its own variables: all that they determine by the
dependencies of the atoms and indicators that the view joins, and by no others.

`Measure` does the arithmetic on bitmasks; the search for the best order asks it the same questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ivme.plan.order.variable_order import Indicator, OrderNode, VariableOrder
from ivme.structure.dependencies import Dependencies
from ivme.structure.hypergraph import Cqap, Hypergraph, reduce_edges
from ivme.structure.width import EdgeCovers


@dataclass(frozen=True, slots=True, order=True)
class Widths:
    """The widths of an order, compared as the source does: dynamic first (003, Definition 4.12)."""

    dynamic: Fraction
    static: Fraction


_Rule = tuple[int, int]
"""The variables that are given, and those that follow from them, as bitmasks."""

_NOTHING = Dependencies()
_ONE = Fraction(1)


class Joined:
    """The join of some atoms and indicators: what holds in it, and how large it can be."""

    __slots__ = ("_constants", "_covers", "_edges", "_rules")

    def __init__(self, covers: EdgeCovers, schemas: Iterable[int], rules: tuple[_Rule, ...]) -> None:
        self._covers = covers
        self._rules = rules
        self._edges = tuple(self.closure(schema) for schema in schemas) if rules else ()
        self._constants = self.closure(0)

    def closure(self, variables: int) -> int:
        """What some variables determine."""
        before = -1
        while variables != before:
            before = variables
            for given, determined in self._rules:
                if not given & ~variables:
                    variables |= determined
        return variables

    def number(self, variables: int) -> Fraction:
        """The exponent of the size on some variables: an edge covers what it determines.

        No cover is between 0 and 1, so that nothing is below one edge that covers all.
        """
        if not self._rules:
            return self._covers.number(variables)
        rest = variables & ~self._constants
        if rest and any(not rest & ~edge for edge in self._edges):
            return _ONE
        plain = self._covers.number(rest)
        return plain if plain <= 1 else min(plain, self._covers.number_by(self._edges, rest))

    def dynamic(self, bag: int, fixed: Iterable[int]) -> Fraction:
        """The greatest exponent of what remains of a bag when one of the given schemas is fixed."""
        remains = {bag & ~self.closure(schema) for schema in fixed}
        return max(map(self.number, remains), default=Fraction(0))


class Measure:
    """Edge cover numbers and indicators of one hypergraph, on bitmasks of variables."""

    __slots__ = ("_plain", "_rules", "covers")

    def __init__(self, hypergraph: Hypergraph, dependencies: Dependencies = _NOTHING) -> None:
        self.covers = EdgeCovers(hypergraph)
        self._rules = [
            [(self.covers.mask(given), self.covers.mask(determined)) for given, determined in dependencies.of(e.label)]
            for e in hypergraph.edges
        ]
        self._plain = Joined(self.covers, (), ())

    def joined(self, atoms: Iterable[int], indicators: Iterable[tuple[int, int]] = ()) -> Joined:
        """The join of the edges at these positions, and of projections: each a position and its variables."""
        inside, shown = [*atoms], [*indicators]
        rules = [rule for index in inside for rule in self._rules[index]]
        for index, schema in shown:
            rules += [(given, then & schema) for given, then in self._rules[index] if not given & ~schema]
        if not rules:
            return self._plain
        return Joined(self.covers, [*(self.covers.edges[i] for i in inside), *(s for _, s in shown)], tuple(rules))

    def indicators(self, bag: int, below: Sequence[int]) -> dict[int, int]:
        """GYO*: the edges whose projections on the bag close a cycle with the edges below, and those projections.

        `below` has the positions of the edges in the subtree. A projection that lies within an edge below or
        within another projection constrains nothing and is left out (003, Figure 4.6).
        """
        edges = self.covers.edges
        inside = [edges[index] for index in below]
        chosen: dict[int, int] = {}
        for index in sorted(set(range(len(edges))).difference(below)):
            schema = edges[index] & bag
            if schema:
                chosen.setdefault(schema, index)
        if not chosen:
            return {}
        _, left = reduce_edges([*inside, *chosen])
        schemas = [*chosen]
        kept = sorted(position - len(inside) for position in left if position >= len(inside))
        return {chosen[schemas[position]]: schemas[position] for position in kept}


def with_indicators(order: VariableOrder, cqap: Cqap) -> VariableOrder:
    """Place under each variable the indicators that form a cycle with the atoms below it (003, Figure 4.6).

    At most one per schema, and none that a variable further down has already.
    """
    measure = Measure(cqap.hypergraph)
    labels = [edge.label for edge in cqap.hypergraph.edges]

    def extended(node: OrderNode) -> OrderNode:
        children = tuple(extended(child) for child in node.children)
        below = [labels.index(label) for label in node.subtree_atoms]
        known = {indicator.variables for child in children for indicator in child.subtree_indicators}
        found = [
            Indicator(labels[index], measure.covers.variables(schema))
            for index, schema in measure.indicators(measure.covers.mask(node.bag), below).items()
        ]
        kept = tuple(indicator for indicator in found if indicator.variables not in known)
        return replace(node, children=children, indicators=kept)

    return replace(order, roots=tuple(extended(root) for root in order.roots))


def widths(
    order: VariableOrder,
    cqap: Cqap,
    static: frozenset[str] = frozenset(),
    dependencies: Dependencies = _NOTHING,
) -> Widths:
    """The static and dynamic width of an order with its indicators (003, Definition 4.9).

    Covers may use all edges of the query; the dynamic width fixes each atom and indicator of a subtree in turn, but
    for those over `static` tables, which do not change.
    """
    measure = Measure(cqap.hypergraph, dependencies)
    places: Mapping[str, int] = {edge.label: index for index, edge in enumerate(cqap.hypergraph.edges)}
    dynamic = widest = Fraction(0)
    for node in order.walk():
        bag = measure.covers.mask(node.bag)
        atoms = {label: places[label] for label in node.subtree_atoms}
        shown = [(each.label, measure.covers.mask(each.variables)) for each in node.subtree_indicators]
        view = measure.joined(atoms.values(), ((places[label], schema) for label, schema in shown))
        fixed = [measure.covers.edges[index] for label, index in atoms.items() if label not in static]
        fixed += [schema for label, schema in shown if label not in static]
        dynamic = max(dynamic, view.dynamic(bag, fixed))
        widest = max(widest, view.number(bag))
    return Widths(dynamic, widest)
