"""Ω: the evaluation strategies of a query with a hierarchical fracture (source 003, section 5.2.2, Figure 5.5).

Where a bound variable is above free ones, or an output above inputs, the relations below are split by the degree of
that variable together with those above it. Light parts follow an access-top order, which costs updates but not
readers; heavy ones keep the canonical order, which costs readers at most one step for each heavy key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from ivme.errors import PlanError
from ivme.plan.assemble.leaves import Leaves
from ivme.plan.ir.program import Side
from ivme.plan.order.variable_order import OrderNode, VariableOrder, acc_top_parents, canonical, order_of
from ivme.plan.strategy.skew.parts import Role, part_label, roles_of
from ivme.structure.classify import is_cqap0
from ivme.structure.fracture import fracture
from ivme.structure.hypergraph import Cqap, Edge, Hypergraph


@dataclass(frozen=True, slots=True)
class Strategy:
    """One strategy for a component: a variable order over parts of the relations; their sides by label."""

    order: VariableOrder
    cqap: Cqap
    sides: Mapping[str, tuple[Side, ...]]


MOST_STRATEGIES = 64
"""How many strategies a component may have: independent splits multiply."""

Parents = dict[str, "str | None"]
Sides = dict[str, tuple[Side, ...]]


def strategies(component: Cqap, leaves: Leaves) -> tuple[tuple[Role, ...], list[Strategy]]:
    """The roles that split a component of the fracture, and its strategies."""
    order = canonical(component)
    keys: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for root in order.roots:
        keys.update(_keys(root, (), component))
    roles = dict(zip(keys, roles_of(leaves, keys.values()), strict=True))
    found = [_omega(root, None, (), component, roles) for root in order.roots]
    if prod(map(len, found)) > MOST_STRATEGIES:
        raise PlanError(f"strategy 'skew' would need more than {MOST_STRATEGIES} evaluation strategies for this query")
    combined = [_merged(choice) for choice in product(*found)]
    return tuple(roles.values()), [_strategy(parents, sides, component) for parents, sides in combined]


def _is_split(node: OrderNode, above: tuple[str, ...], cqap: Cqap) -> bool | None:
    """Whether the variable splits the relations below; None if nothing below does either."""
    below = [each.variable for each in node.walk()]
    edges = tuple(edge for edge in cqap.hypergraph.edges if edge.label in node.subtree_atoms)
    inputs = cqap.input.intersection(below).union(above)
    induced = Cqap(Hypergraph(edges), cqap.output.intersection(below), inputs.intersection(*[_vertices(edges)]))
    if is_cqap0(fracture(induced).whole):
        return None
    return not (node.variable in cqap.input or (node.variable in cqap.output and not cqap.input.intersection(below)))


def _vertices(edges: tuple[Edge, ...]) -> frozenset[str]:
    return frozenset().union(*(edge.variables for edge in edges))


def _keys(
    node: OrderNode, above: tuple[str, ...], cqap: Cqap
) -> Iterator[tuple[str, tuple[tuple[str, ...], tuple[str, ...]]]]:
    """The keys to split on: a variable that splits, with all above it, and the atoms below."""
    split = _is_split(node, above, cqap)
    if split is None:
        return
    key = (*above, node.variable)
    if split:
        yield node.variable, (key, node.subtree_atoms)
    for child in node.children:
        yield from _keys(child, key, cqap)


def _omega(
    node: OrderNode, parent: str | None, above: tuple[str, ...], cqap: Cqap, roles: Mapping[str, Role]
) -> list[tuple[Parents, Sides]]:
    """The strategies of a subtree: parents of its variables, and the sides that its atoms take from here on down."""
    whole: tuple[Parents, Sides] = (acc_top_parents(node, cqap, parent), dict.fromkeys(node.subtree_atoms, ()))
    split = _is_split(node, above, cqap)
    if split is None:
        return [whole]
    below = [_omega(child, node.variable, (*above, node.variable), cqap, roles) for child in node.children]
    here: tuple[Parents, Sides] = ({node.variable: parent}, dict.fromkeys(node.atoms, ()))
    if prod(map(len, below)) > MOST_STRATEGIES:
        raise PlanError(f"strategy 'skew' would need more than {MOST_STRATEGIES} evaluation strategies for this query")
    nested = [_merged((here, *choice)) for choice in product(*below)]
    if not split:
        return nested
    role = roles[node.variable]
    heavy, light = (Side(role.partition, role.key, side) for side in (True, False))
    htrees = [(parents, {label: (heavy, *sides[label]) for label in sides}) for parents, sides in nested]
    return [*htrees, (whole[0], dict.fromkeys(node.subtree_atoms, (light,)))]


def _merged(parts: tuple[tuple[Parents, Sides], ...]) -> tuple[Parents, Sides]:
    parents: Parents = {}
    sides: Sides = {}
    for more_parents, more_sides in parts:
        parents.update(more_parents)
        sides.update(more_sides)
    return parents, sides


def _strategy(parents: Parents, sides: Sides, cqap: Cqap) -> Strategy:
    sides = {edge.label: sides.get(edge.label, ()) for edge in cqap.hypergraph.edges}
    edges = tuple(Edge(part_label(edge.label, sides[edge.label]), edge.variables) for edge in cqap.hypergraph.edges)
    parted = Cqap(Hypergraph(edges), cqap.output, cqap.input, cqap.ordered)
    return Strategy(order_of(parted, parents), parted, sides)
