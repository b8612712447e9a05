"""Reading a view tree that is not access-top (source 003, sections 5.3 and 6.2).

Bound variables above free ones are *contexts*: the loops run over them as over outputs, and what they find is made
distinct afterwards. In a view tree every value found from the top leads to a row, so a row costs as many steps as
there are contexts for it, which is what hop view iterators cost (section 6.2.2.1), and never more than there are
contexts in all (union view iterators, section 5.3.1). Inputs below a context are checked as early as possible; where
that is cheaper, the loops begin with the view that holds the inputs, and check the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

from ivme.plan.assemble.blueprint import Iteration, Node, Reading
from ivme.plan.assemble.tree_blueprint import Trees, factors, in_turn, iterations
from ivme.plan.ir.program import Source
from ivme.plan.order.degree import Limit, degree_bound
from ivme.plan.order.variable_order import VariableOrder
from ivme.plan.order.view_tree import ViewNode
from ivme.structure.hypergraph import Cqap, Hypergraph

COMPARED = (Fraction(1, 2), Fraction(1, 4), Fraction(3, 4))
"""The ε at which plans are compared, the first before the others."""

MOST_ORDERS = 6
"""Up to how many iterators all their orders are tried."""


@dataclass(frozen=True, slots=True)
class Visits:
    """What bounds the steps for a row: the values of `found` that go with the values of `given`."""

    given: frozenset[str]
    found: frozenset[str]


@dataclass(frozen=True, slots=True)
class BranchReading:
    """How a branch is read, and which visits that takes for one row."""

    reading: Reading
    visits: tuple[Visits, ...]


def contexts(order: VariableOrder, cqap: Cqap) -> frozenset[str]:
    """The bound variables above free ones."""
    return frozenset(
        node.variable
        for node in order.walk()
        if node.variable in cqap.bound and any(below.variable in cqap.free for below in node.walk())
    )


def opened(cqap: Cqap, bound: frozenset[str]) -> Cqap:
    """The query with some bound variables as outputs."""
    return Cqap(cqap.hypergraph, cqap.output | bound, cqap.input, cqap.ordered)


def branch_reading(
    roots: tuple[ViewNode, ...],
    cqap: Cqap,
    sources: Mapping[str, Source],
    suffixes: Mapping[ViewNode, str],
    bound: frozenset[str],
    limits: frozenset[Limit],
) -> BranchReading:
    """The cheapest order of the iterators of some view trees; `bound` are their contexts, and `limits` those of the
    parts below."""
    product: list[Node] = []
    components: list[tuple[Iteration, ...]] = []
    found: list[Visits] = []
    for root in roots:
        trees = Trees((root,), opened(cqap, bound), sources, suffixes[root])
        mine = [*factors(trees, root)]
        part = _restricted(cqap, root)
        nested = [*_needed([*iterations(trees, root)], mine, part, bound)]
        orders = [*_orders(nested, part)]
        best = min(orders, key=lambda order: _costs(visits(order, nested, part, bound), limits))
        components.append(tuple(_opened(best, part)))
        found += visits(best, nested, part, bound)
        product += mine
    needed, guards = in_turn(components, product, cqap)
    return BranchReading(Reading(needed, tuple(product), (), guards), tuple(found))


def _needed(nested: list[Iteration], product: list[Node], cqap: Cqap, bound: frozenset[str]) -> Iterator[Iteration]:
    """The iterators without those that only check what a factor of the payload checks, too. Where several find values,
    the inputs are checked between them all the same: otherwise values would be found for what the inputs exclude."""
    several = sum(bool(each.new) for each in nested) > 1
    for each in nested:
        checks_inputs = several and not cqap.input.isdisjoint(each.node.schema)
        if each.new or each.node not in product or bound or checks_inputs:
            yield each


def _restricted(cqap: Cqap, root: ViewNode) -> Cqap:
    """The part of the query that is in one tree."""
    return cqap.restricted(Hypergraph(tuple(cqap.hypergraph.edge(label) for label in root.atoms)))


def _orders(nested: list[Iteration], cqap: Cqap) -> Iterator[tuple[Iteration, ...]]:
    yield tuple(nested)
    if cqap.input and len(nested) <= MOST_ORDERS:
        yield from permutations(nested)


def _opened(order: Iterable[Iteration], cqap: Cqap) -> Iterator[Iteration]:
    """The iterators with the variables that are new at each, after those before it."""
    known = set(cqap.input)
    for iteration in order:
        new = tuple(variable for variable in iteration.node.schema if variable not in known)
        known.update(new)
        yield Iteration(iteration.node, new)


def visits(
    order: tuple[Iteration, ...], top_down: list[Iteration], cqap: Cqap, bound: frozenset[str]
) -> tuple[Visits, ...]:
    """What the loops may find for nothing: all of it until the inputs have been checked, and from then on, if they go
    down the tree, only the contexts of a row."""
    found: list[Visits] = []
    known: set[str] = set()
    unchecked = set(cqap.input)
    ranks = [top_down.index(iteration) for iteration in order]
    follows = ranks == sorted(ranks) or _goes_down(order)
    for iteration in order:
        known.update(iteration.node.schema)
        unchecked.difference_update(iteration.node.schema)
        if unchecked or not follows:
            found.append(Visits(cqap.input, frozenset(known - cqap.input)))
    above = [bound.intersection(iteration.node.schema) for iteration in order] if follows else []
    return (*found, *(Visits(cqap.input | cqap.output, each) for each in above if each))


def _goes_down(order: tuple[Iteration, ...]) -> bool:
    """Whether every iterator has the variables of all before it that it shares a tree with."""
    schemas = [frozenset(iteration.node.schema) for iteration in order]
    return all(not (schemas[j] < schemas[i]) for i in range(len(schemas)) for j in range(i + 1, len(schemas)))


def _costs(found: tuple[Visits, ...], limits: frozenset[Limit]) -> list[Fraction]:
    """The most expensive visit and all of them, for each of the compared ε."""
    costs = [[degree_bound(limits, each.given, each.found, epsilon) for each in found] for epsilon in COMPARED]
    return [cost for mine in costs for cost in (max(mine, default=Fraction(0)), sum(mine, Fraction(0)))]
