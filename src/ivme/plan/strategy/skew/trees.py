"""Skew-aware view trees put together: one blueprint for all strategies, one branch for each way to find rows.

The answer of a query is the sum of the answers of its skew-aware queries (source 003, Proposition 5.9). Each of them
has view trees of its own over parts of the relations; a row may be in several, and then its payload is the sum
(erratum 2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import product

from ivme.budget import spend
from ivme.plan.assemble.blueprint import (
    Blueprint,
    IndicatorLeaf,
    Leaf,
    Propagation,
    Reading,
    Reference,
    Rule,
    StoredView,
    combine,
)
from ivme.plan.assemble.branch_reading import BranchReading, Visits, branch_reading, contexts
from ivme.plan.assemble.leaves import Leaves
from ivme.plan.assemble.tree_blueprint import tree_blueprint
from ivme.plan.ir.program import Side
from ivme.plan.order.degree import Limit, limits_of
from ivme.plan.order.view_tree import ViewNode, view_trees
from ivme.plan.strategy.skew.omega import Strategy, strategies
from ivme.plan.strategy.skew.parts import Role, splits_of, with_parts
from ivme.structure.fracture import Fracture
from ivme.structure.hypergraph import Cqap, Edge, Hypergraph

HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Tree:
    """The view trees of one strategy for one component, or the listing of a skew-aware query, which has no trees.

    `labels` are those of the parts below; `bound` are the bound variables above free ones.
    """

    blueprint: Blueprint
    labels: tuple[str, ...]
    bound: frozenset[str] = frozenset()
    roots: tuple[ViewNode, ...] = ()
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Branch:
    """One way to find rows, over these parts; `found` is how they are read."""

    found: BranchReading
    labels: tuple[str, ...]
    bound: frozenset[str]


@dataclass(frozen=True, slots=True)
class SkewPlan:
    """A blueprint over parts, and what bounds the steps for a row: visits, with the parts that limit them. `branches`
    are the parts that each way to find rows joins."""

    blueprint: Blueprint
    followed: Blueprint
    roles: tuple[Role, ...]
    roots: tuple[ViewNode, ...] = ()
    visits: tuple[tuple[Visits, tuple[str, ...]], ...] = ()
    branches: tuple[tuple[str, ...], ...] = ()

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(role.partition for role in self.roles))


def hierarchical_plan(broken: Fracture, leaves: Leaves) -> SkewPlan:
    """The strategies of Ω for every component of a hierarchical fracture; a branch takes one of each."""
    found = [strategies(component, leaves) for component in broken.components]
    roles = tuple(role for mine, _ in found for role in mine)
    parted = with_parts(leaves, _sides(each for _, options in found for each in options))
    forests = [
        [strategy_tree(each, parted, f".{i + 1}.{j + 1}") for j, each in enumerate(options)]
        for i, (_, options) in enumerate(found)
    ]
    branches = [tree_branch(choice, broken.whole, parted) for choice in product(*forests)]
    return skew_plan([tree for forest in forests for tree in forest], branches, roles, broken.whole)


def _sides(options: Iterable[Strategy]) -> dict[str, list[tuple[Side, ...]]]:
    sides: dict[str, list[tuple[Side, ...]]] = {}
    for option in options:
        for label, mine in option.sides.items():
            sides.setdefault(label, []).append(mine)
    return sides


def strategy_tree(strategy: Strategy, leaves: Leaves, suffix: str) -> Tree:
    """The view trees that follow a strategy's order."""
    roots = view_trees(strategy.order, strategy.cqap, leaves.schemas)
    labels = tuple(edge.label for edge in strategy.cqap.hypergraph.edges)
    blueprint = tree_blueprint(roots, strategy.cqap, leaves, (), suffix)
    return Tree(blueprint, labels, contexts(strategy.order, strategy.cqap), roots, suffix)


def tree_branch(choice: tuple[Tree, ...], whole: Cqap, leaves: Leaves) -> Branch:
    """The branch that reads these trees, one of each component."""
    spend(100)
    roots = tuple(root for tree in choice for root in tree.roots)
    suffixes = {root: tree.suffix for tree in choice for root in tree.roots}
    labels = tuple(label for tree in choice for label in tree.labels)
    edges = tuple(edge for edge in part_edges(leaves) if edge.label in labels)
    bound = frozenset().union(*(tree.bound for tree in choice))
    cqap = Cqap(Hypergraph(edges), whole.output, whole.input)
    found = branch_reading(roots, cqap, dict(leaves.sources), suffixes, bound, limits(leaves, labels))
    return Branch(found, labels, bound)


def limits(leaves: Leaves, labels: Iterable[str]) -> frozenset[Limit]:
    """The limits of some parts."""
    sources = [leaves.source(label) for label in labels]
    return frozenset(limit for source in sources for limit in limits_of(frozenset(source.schema), source.part))


def skew_plan(trees: list[Tree], branches: list[Branch], roles: tuple[Role, ...], whole: Cqap) -> SkewPlan:
    """The trees as one blueprint. A single branch without contexts is an ordinary reading; where all keys are free, a
    row belongs to one branch only."""
    merged = reduce(combine, (tree.blueprint for tree in trees))
    splits = splits_of(roles, dict.fromkeys((role.partition for role in roles), HALF))
    plain = not any(branch.bound for branch in branches)
    readings = tuple(branch.found.reading for branch in branches)
    if len(branches) == 1 and plain:
        blueprint = replace(merged, reading=readings[0], splits=splits)
    else:
        disjoint = plain and all((whole.input | whole.output).issuperset(role.key) for role in roles)
        blueprint = replace(merged, reading=Reading((), ()), branches=readings, disjoint=disjoint, splits=splits)
    labels = tuple(branch.labels for branch in branches)
    visits = tuple((visit, branch.labels) for branch in branches for visit in branch.found.visits)
    roots = tuple(root for tree in trees for root in tree.roots)
    return SkewPlan(blueprint, with_changes(blueprint, labels), roles, roots, visits, labels)


def with_changes(blueprint: Blueprint, branches: Iterable[tuple[str, ...]]) -> Blueprint:
    """The blueprint with the rules for the changes of its result: in each branch, the delta of a part joined with the
    other parts."""
    leaves = blueprint.leaves
    names = dict(leaves.inputs)
    schema = (*dict.fromkeys(names.values()), *leaves.outputs)
    extra: dict[str, list[Rule]] = {label: [] for label, _ in leaves.sources}
    changes = []
    for i, labels in enumerate(branches):
        view = StoredView(f"changes.{i + 1}", schema, "changes", labels)
        changes.append(view)
        uses = Counter(variable for label in labels for variable in leaves.source(label).schema)
        needed = {v for v in uses if uses[v] > 1 or v in leaves.outputs or v in names}
        for label in labels:
            others = tuple(_named(leaves, other, names, needed) for other in labels if other != label)
            extra[label].append(Rule(view, _named(leaves, label, names, needed), (others,) if others else ()))
    known = {(p.use.label, isinstance(p.use, IndicatorLeaf)): p for p in blueprint.propagations}
    propagations = []
    for label, _ in leaves.sources:
        mine = known.get((label, False), Propagation(_whole(leaves, label), ()))
        propagations.append(Propagation(mine.use, (*mine.rules, *extra[label])))
        propagations += [known[label, True]] if (label, True) in known else []
    return replace(blueprint, propagations=tuple(propagations), changes=tuple(changes))


def _whole(leaves: Leaves, label: str) -> Leaf:
    return Leaf(label, leaves.source(label).schema)


def _named(leaves: Leaves, label: str, names: Mapping[str, str], needed: Container[str]) -> Reference:
    """A part under the query's own names for its inputs, with the variables that are needed."""
    leaf = Leaf(label, tuple(variable for variable in leaves.source(label).schema if variable in needed))
    return Reference(leaf, tuple(names.get(variable, variable) for variable in leaf.schema))


def part_edges(leaves: Leaves) -> tuple[Edge, ...]:
    """The hyperedges of all parts."""
    return tuple(Edge(label, frozenset(source.schema)) for label, source in leaves.sources)
