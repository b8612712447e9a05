"""The widths of a variable order, and the indicator projections that make good on them (source 003, chapter 4).

`Measure` does the arithmetic on bitmasks; the search for the best order asks it the same questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ivme.plan.order.variable_order import Indicator, OrderNode, VariableOrder
from ivme.structure.hypergraph import Cqap, Hypergraph, reduce_edges
from ivme.structure.width import EdgeCovers


@dataclass(frozen=True, slots=True, order=True)
class Widths:
    """The widths of an order, compared as the source does: dynamic first (003, Definition 4.12)."""

    dynamic: Fraction
    static: Fraction


class Measure:
    """Edge cover numbers and indicators of one hypergraph, on bitmasks of variables."""

    __slots__ = ("covers",)

    def __init__(self, hypergraph: Hypergraph) -> None:
        self.covers = EdgeCovers(hypergraph)

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

    def largest(self, bag: int, fixed: Iterable[int]) -> Fraction:
        """The greatest edge cover number of what remains of a bag when one of the given schemas is fixed."""
        remains = {bag & ~schema for schema in fixed}
        return max((self.covers.number(rest) for rest in remains), default=Fraction(0))


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


def widths(order: VariableOrder, cqap: Cqap, static: frozenset[str] = frozenset()) -> Widths:
    """The static and dynamic width of an order with its indicators (003, Definition 4.9).

    Covers may use all edges of the query; the dynamic width fixes each atom and indicator of a subtree in turn, but
    for those over `static` tables, which do not change.
    """
    measure = Measure(cqap.hypergraph)
    mask, number = measure.covers.mask, measure.covers.number
    dynamic = widest = Fraction(0)
    for node in order.walk():
        bag = mask(node.bag)
        atoms = [mask(cqap.hypergraph.edge(label).variables) for label in node.subtree_atoms if label not in static]
        indicators = [mask(each.variables) for each in node.subtree_indicators if each.label not in static]
        dynamic = max(dynamic, measure.largest(bag, atoms + indicators))
        widest = max(widest, number(bag))
    return Widths(dynamic, widest)
