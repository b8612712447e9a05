"""Skew-aware plans for queries with free variables that are not hierarchical: triangles first of all (003, chapter 6).

Every join variable is split on, so each signature says which variables are heavy. For a signature there are two kinds
of plans: a listing of the skew-aware query's answer, kept by joining each delta with the other parts; or a view tree
with one variable at the bottom. The cheaper one is taken. For triangles this gives Figures 6.1, 6.5 and 6.10: a tree
over the light variable where the two others are heavy, and listings elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ivme.errors import PlanError
from ivme.plan.assemble.assemble import Assembly
from ivme.plan.assemble.blueprint import Blueprint, Definition, Iteration, Leaf, Propagation, Reading, Rule, StoredView
from ivme.plan.assemble.branch_reading import COMPARED, BranchReading
from ivme.plan.assemble.catalog import catalog_of
from ivme.plan.assemble.leaves import Leaves
from ivme.plan.order.degree import Limit, degree_bound, limits_of
from ivme.plan.order.variable_order import order_of
from ivme.plan.strategy.skew.bounds import GRID
from ivme.plan.strategy.skew.hung_listing import hung_listings
from ivme.plan.strategy.skew.omega import Strategy
from ivme.plan.strategy.skew.parts import Role, part_label, roles_of, sides_of, signatures, splits_of, with_parts
from ivme.plan.strategy.skew.peeling import core_of, ear_parts, ears_of, peeled, without_ears
from ivme.plan.strategy.skew.trees import (
    HALF,
    Branch,
    SkewPlan,
    Tree,
    part_edges,
    skew_plan,
    strategy_tree,
    tree_branch,
    with_changes,
)
from ivme.structure.hypergraph import Cqap, Edge, Hypergraph
from ivme.structure.width import edge_cover_number

MOST_ROLES = 5
"""On how many variables a query may be split: its plan grows with the number of signatures, 32."""

MOST_ATOMS = 6


def listing_plan(whole: Cqap, leaves: Leaves, below: Fraction | None = None) -> SkewPlan:
    """The cheapest tree or listing for each signature, without the ears if there are some and a core to split.

    PlanError as soon as it is known that no plan has updates of an exponent `below` another one's.
    """
    ears = ears_of(whole, leaves)
    core, core_leaves = core_of(whole, leaves, ears)
    roles = without_ears(variable_roles(core_leaves), ears)
    if not (ears and roles):
        return _chosen(whole, leaves, variable_roles(leaves), below)
    made = _chosen(core, core_leaves, roles, below)
    branches = made.branches
    blueprint = peeled(made.blueprint, ear_parts(leaves, ears, roles), leaves.outputs, branches)
    return replace(made, blueprint=blueprint, followed=with_changes(blueprint, branches))


def _chosen(whole: Cqap, leaves: Leaves, roles: tuple[Role, ...], below: Fraction | None) -> SkewPlan:
    check_roles(leaves, roles)
    parted, signed = options_of(whole, leaves, roles)
    footprints: list[Footprint] = []
    chosen: list[tuple[Tree, Branch]] = []
    for options in signed:
        footprints = footprints or [footprint_of(tree, branch, parted, roles) for tree, branch in options]
        branches = [(branch, _limits(branch, parted)) for _, branch in options]
        if below is not None and all(
            _reaches(f, limits, below) for f, (_, limits) in zip(footprints, branches, strict=True)
        ):
            raise PlanError(f"strategy 'skew' has no plan with updates below N^{below}; leave out the strategy")
        costs = [_costs(footprint, *branch) for footprint, branch in zip(footprints, branches, strict=True)]
        chosen.append(options[costs.index(min(costs))])
    return skew_plan([tree for tree, _ in chosen], [branch for _, branch in chosen], roles, whole)


def options_of(
    whole: Cqap, leaves: Leaves, roles: tuple[Role, ...]
) -> tuple[Leaves, Iterator[list[tuple[Tree, Branch]]]]:
    """The parts of all atoms, and for each signature the listing and the trees over its parts, in the same order."""
    sides = {
        label: [sides_of(leaves, label, signature) for signature in signatures(roles)] for label, _ in leaves.sources
    }
    signed = zip(*sides.values(), strict=True)
    labels = [tuple(part_label(label, mine) for label, mine in zip(sides, parts, strict=True)) for parts in signed]
    parted = with_parts(leaves, sides)
    return parted, ([*_options(whole, parted, mine, f".{number}")] for number, mine in enumerate(labels, 1))


def variable_roles(leaves: Leaves) -> tuple[Role, ...]:
    """One role for each set of variables that occur in the same atoms, two at least but not all; what occurs in all
    atoms is part of every key (SEEDS.md, "Any three relations").

    A key that leaves nothing of its atoms but what is summed away has no degree: in R(A, B), S(B, C), T(D) without free
    variables each B is one entry, and there is nothing to split.
    """
    homes: dict[str, tuple[str, ...]] = {}
    for label, source in leaves.sources:
        for variable in source.schema:
            homes[variable] = (*homes.get(variable, ()), label)
    blocks: dict[tuple[str, ...], list[str]] = {}
    for variable, labels in homes.items():
        blocks.setdefault(labels, []).append(variable)
    everywhere = [v for labels, block in blocks.items() if len(labels) == len(leaves.sources) for v in block]
    keys = [
        ((*everywhere, *block), labels) for labels, block in blocks.items() if 1 < len(labels) < len(leaves.sources)
    ]
    shown = {*leaves.outputs, *(variable for variable, _ in leaves.inputs)}
    kept = {variable for variable, labels in homes.items() if len(labels) > 1 or variable in shown}
    counting = [
        (key, labels)
        for key, labels in keys
        if any(kept.intersection(leaves.source(label).schema) - set(key) for label in labels)
    ]
    return roles_of(leaves, counting)


def check_roles(leaves: Leaves, roles: tuple[Role, ...]) -> None:
    """Refuses a query that has nothing to split, or too much."""
    if not roles:
        raise PlanError(
            "strategy 'skew' finds nothing to split: no variable joins some of the atoms and has a degree in them; "
            "leave out the strategy"
        )
    if len(roles) > MOST_ROLES or len(leaves.sources) > MOST_ATOMS:
        raise PlanError(
            f"strategy 'skew' splits queries of up to {MOST_ATOMS} atoms on up to {MOST_ROLES} variables, and this one "
            f"has {len(leaves.sources)} and {len(roles)}; leave out the strategy, or split the query into views"
        )


def _options(whole: Cqap, leaves: Leaves, labels: tuple[str, ...], suffix: str) -> Iterator[tuple[Tree, Branch]]:
    yield _listing(whole, leaves, labels, suffix)
    edges = tuple(edge for edge in part_edges(leaves) if edge.label in labels)
    cqap = Cqap(Hypergraph(edges), whole.output, whole.input)
    uses = Counter(variable for edge in edges for variable in edge.variables)
    joined = sorted((v for v in uses if uses[v] > 1 or v in cqap.free), key=lambda v: (cqap.tier(v), v))
    for bottom in joined:
        if uses[bottom] > 1:
            chain = [*(variable for variable in joined if variable != bottom), bottom]
            strategy = Strategy(order_of(cqap, _parents(cqap, chain)), cqap, {})
            tree = strategy_tree(strategy, leaves, suffix)
            yield tree, tree_branch((tree,), whole, leaves)
    yield from hung_listings(whole, leaves, labels, suffix)


def _parents(cqap: Cqap, chain: list[str]) -> dict[str, str | None]:
    """A chain, with the variables that only one atom has below the lowest of that atom."""
    parents: dict[str, str | None] = dict(zip(chain, [None, *chain], strict=False))
    for edge in cqap.hypergraph.edges:
        lowest = max((v for v in edge.variables if v in chain), key=chain.index, default=None)
        for variable in sorted(edge.variables.difference(chain)):
            parents[variable] = lowest
            lowest = variable
    return parents


def _listing(whole: Cqap, leaves: Leaves, labels: tuple[str, ...], suffix: str) -> tuple[Tree, Branch]:
    """The answer of a skew-aware query over its free variables, kept by first-order deltas."""
    uses = Counter(variable for label in labels for variable in leaves.source(label).schema)
    needed = {variable for variable in uses if uses[variable] > 1} | whole.free
    parts = {label: Leaf(label, tuple(v for v in leaves.source(label).schema if v in needed)) for label in labels}
    inputs = tuple(variable for variable, _ in leaves.inputs)
    view = StoredView(f"Q{suffix}", (*inputs, *leaves.outputs), "view", labels)
    propagations = [
        Propagation(
            Leaf(label, leaves.source(label).schema),
            (Rule(view, parts[label], (tuple(part for other, part in parts.items() if other != label),)),),
        )
        for label in labels
    ]
    reading = Reading((Iteration(view, leaves.outputs),) if leaves.outputs else (), (view,))
    definition = Definition(view, tuple(parts.values()))
    blueprint = Blueprint(leaves, tuple(propagations), (definition,), reading)
    return Tree(blueprint, labels), Branch(BranchReading(reading, ()), labels, frozenset())


@dataclass(frozen=True, slots=True)
class Size:
    """How large the join of some atoms gets: a question to the limits of their parts, and the answer without them."""

    atoms: frozenset[int]
    given: frozenset[str]
    wanted: frozenset[str]
    cover: Fraction

    def exponent(self, parts: Sequence[tuple[Limit, ...]], epsilon: Fraction) -> Fraction:
        limits = frozenset(limit for atom in self.atoms for limit in parts[atom])
        return min(self.cover, degree_bound(limits, self.given, self.wanted, epsilon))


@dataclass(frozen=True, slots=True)
class Footprint:
    """The joins that a plan makes for updates, and its maps."""

    joins: frozenset[Size]
    maps: frozenset[Size]


def footprint_of(tree: Tree, branch: Branch, leaves: Leaves, roles: tuple[Role, ...]) -> Footprint:
    """What a signature's plan does, with atoms by their number.

    It is the same for all signatures: they call parts by other names, and may read a tree's views in another order, but
    which views there are, what they join, and which columns are kept does not depend on sides.
    """
    mine = replace(leaves, sources=tuple(source for source in leaves.sources if source[0] in tree.labels))
    splits = splits_of(roles, dict.fromkeys((role.partition for role in roles), HALF))
    blueprint = replace(tree.blueprint, leaves=mine, reading=branch.found.reading, splits=splits)
    assembly = Assembly(catalog_of({"": blueprint}))
    for relation in assembly.relations:
        assembly.trigger(relation)
    numbers = {label: number for number, label in enumerate(tree.labels)}

    def size(edges: frozenset[Edge], schema: frozenset[str], fixed: frozenset[str]) -> Size:
        ordered = sorted(edges, key=lambda edge: numbers[edge.label])
        cover = edge_cover_number(Hypergraph(tuple(ordered)), schema - fixed)
        return Size(frozenset(numbers[edge.label] for edge in edges), fixed, schema - fixed, cover)

    stored = {(assembly.storage.edges(node), frozenset(node.schema), frozenset[str]()) for node in assembly.stored}
    joins = {*assembly.joins.get("update", [])}
    return Footprint(frozenset(size(*join) for join in joins), frozenset(size(*each) for each in stored))


def _limits(branch: Branch, leaves: Leaves) -> list[tuple[Limit, ...]]:
    """The limits of the parts that a branch joins, one after the other."""
    return [limits_of(frozenset(source.schema), source.part) for source in map(leaves.source, branch.labels)]


def _reaches(footprint: Footprint, parts: Sequence[tuple[Limit, ...]], least: Fraction) -> bool:
    """Whether the updates of a plan have at least an exponent, whatever ε is."""
    return all(any(size.exponent(parts, epsilon) >= least for size in footprint.joins) for epsilon in GRID)


def _costs(footprint: Footprint, branch: Branch, parts: Sequence[tuple[Limit, ...]]) -> list[Fraction]:
    """Update, delay and space of a signature's plan, for each of the compared ε."""
    every = frozenset(limit for part in parts for limit in part)
    costs = []
    for epsilon in COMPARED:
        updates = [size.exponent(parts, epsilon) for size in footprint.joins]
        delays = [degree_bound(every, visit.given, visit.found, epsilon) for visit in branch.found.visits]
        sizes = [size.exponent(parts, epsilon) for size in footprint.maps]
        costs += [max(values, default=Fraction(0)) for values in (updates, delays, sizes)]
    return costs
