"""Skew-aware plans for queries with free variables that are not hierarchical: triangles first of all (003, chapter 6).

Every join variable is split on, so each signature says which variables are heavy. For a signature there are two kinds
of plans: a list of the skew-aware query's answer, maintained by joining deltas with the other parts; or a view tree
with one variable at the bottom. The cheaper one is taken. For triangles this gives Figures 6.1, 6.5 and 6.10: a tree
over the light variable where the two others are heavy, and listings elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product

from ivme.errors import PlanError
from ivme.plan.assemble.assemble import Assembly
from ivme.plan.assemble.blueprint import Blueprint, Definition, Iteration, Leaf, Propagation, Reading, Rule, StoredView
from ivme.plan.assemble.branch_reading import COMPARED, BranchReading
from ivme.plan.assemble.catalog import catalog_of
from ivme.plan.assemble.leaves import Leaves
from ivme.plan.order.degree import Limit, degree_bound, degree_curve, limits_of
from ivme.plan.order.variable_order import order_of
from ivme.plan.strategy.skew.bounds import PARTS
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
    """The cheapest option for each signature. What options do is found for the first signature; of the others, only
    those are drawn that may be the cheapest."""
    check_roles(leaves, roles)
    parted, signed = signed_labels(leaves, roles)
    first = [option() for option in options_of(whole, parted, signed[0], ".1")]
    footprints = [footprint_of(tree, branch, parted, roles) for tree, branch in first]
    places = [tuple(map(signed[0].index, tree.labels)) for tree, _ in first]
    chosen: list[tuple[Tree, Branch]] = []
    for number, labels in enumerate(signed, 1):
        limits = [limits_of(frozenset(source.schema), source.part) for source in map(parted.source, labels)]
        sides = [_Sides([limits[i] for i in place]) for place in places]
        if below is not None and all(map(partial(_reaches, below), footprints, sides)):
            raise PlanError(f"strategy 'skew' has no plan with updates below N^{below}; leave out the strategy")
        chosen.append(_cheapest(footprints, sides, options_of(whole, parted, labels, f".{number}")))
    return skew_plan([tree for tree, _ in chosen], [branch for _, branch in chosen], roles, whole)


def signed_labels(leaves: Leaves, roles: tuple[Role, ...]) -> tuple[Leaves, list[tuple[str, ...]]]:
    """The parts of all atoms, and for each signature the labels of those that it joins, in the order of the atoms."""
    sides = {
        label: [sides_of(leaves, label, signature) for signature in signatures(roles)] for label, _ in leaves.sources
    }
    signed = zip(*sides.values(), strict=True)
    labels = [tuple(part_label(label, mine) for label, mine in zip(sides, parts, strict=True)) for parts in signed]
    return with_parts(leaves, sides), labels


def variable_roles(leaves: Leaves) -> tuple[Role, ...]:
    """One role for each set of variables that occur in the same atoms, two at least but not all; what occurs in all
    atoms is part of every key.

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


_Option = Callable[[], tuple[Tree, Branch]]
"""Draws a plan of a signature."""


def options_of(whole: Cqap, leaves: Leaves, labels: tuple[str, ...], suffix: str) -> list[_Option]:
    """The listing of a signature, the trees, and the listings with filters on top: as many for each signature."""
    edges = tuple(edge for edge in part_edges(leaves) if edge.label in labels)
    cqap = Cqap(Hypergraph(edges), whole.output, whole.input)
    uses = Counter(variable for edge in edges for variable in edge.variables)
    joined = sorted((v for v in uses if uses[v] > 1 or v in cqap.free), key=lambda v: (cqap.tier(v), v))

    def tree_above(bottom: str) -> tuple[Tree, Branch]:
        chain = [*(variable for variable in joined if variable != bottom), bottom]
        strategy = Strategy(order_of(cqap, _parents(cqap, chain)), cqap, {})
        tree = strategy_tree(strategy, leaves, suffix)
        return tree, tree_branch((tree,), whole, leaves)

    return [
        partial(_listing, whole, leaves, labels, suffix),
        *(partial(tree_above, bottom) for bottom in joined if uses[bottom] > 1),
        *hung_listings(whole, leaves, labels, suffix),
    ]


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
    """The answer of a skew-aware query over its free variables, maintained by first-order deltas."""
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

    def curve(self, sides: _Sides) -> list[Fraction]:
        """The exponent at each ε of the grid, in units of its parts."""
        most = self.cover * PARTS
        return [
            min(most, Fraction(each)) for each in degree_curve(sides.of(self.atoms), self.given, self.wanted, PARTS)
        ]

    def exponent(self, sides: _Sides, epsilon: Fraction) -> Fraction:
        return min(self.cover, degree_bound(sides.of(self.atoms), self.given, self.wanted, epsilon))


class _Sides:
    """The limits of the parts of a signature, by the numbers of their atoms."""

    def __init__(self, parts: Sequence[tuple[Limit, ...]]) -> None:
        self._parts = parts
        self._known: dict[frozenset[int], frozenset[Limit]] = {}

    def of(self, atoms: frozenset[int]) -> frozenset[Limit]:
        if atoms not in self._known:
            self._known[atoms] = frozenset(limit for atom in atoms for limit in self._parts[atom])
        return self._known[atoms]

    def all(self) -> frozenset[Limit]:
        return self.of(frozenset(range(len(self._parts))))


@dataclass(frozen=True, slots=True)
class Footprint:
    """The joins that a plan makes for updates, and its maps."""

    joins: frozenset[Size]
    maps: frozenset[Size]


def footprint_of(tree: Tree, branch: Branch, leaves: Leaves, roles: tuple[Role, ...]) -> Footprint:
    """What a signature's plan does, with atoms by their number.

    It is the same for all signatures: they call parts by other names, and may read a tree's views in another order, but
    which views there are, what they join, and which columns are stored does not depend on sides.
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


def _reaches(least: Fraction, footprint: Footprint, sides: _Sides) -> bool:
    """Whether the updates of a plan have at least an exponent, whatever ε is."""
    highest = [max(values) for values in zip(*(size.curve(sides) for size in footprint.joins), strict=True)]
    return bool(highest) and min(highest) >= least * PARTS


def _cheapest(
    footprints: Sequence[Footprint], sides: Sequence[_Sides], options: Sequence[_Option]
) -> tuple[Tree, Branch]:
    """The plan of a signature with the least update, delay and space at each of the compared ε, in this order; what is
    costlier in one is not looked at for the next."""
    left = [*range(len(options))]
    drawn: dict[int, tuple[Tree, Branch]] = {}

    def delay(number: int, epsilon: Fraction) -> Fraction:
        drawn[number] = drawn.get(number) or options[number]()
        visits = drawn[number][1].found.visits
        return max([degree_bound(sides[number].all(), v.given, v.found, epsilon) for v in visits], default=_NONE)

    def update(number: int, epsilon: Fraction) -> Fraction:
        return max([each.exponent(sides[number], epsilon) for each in footprints[number].joins], default=_NONE)

    def space(number: int, epsilon: Fraction) -> Fraction:
        return max([each.exponent(sides[number], epsilon) for each in footprints[number].maps], default=_NONE)

    for epsilon, cost in product(COMPARED, (update, delay, space)):
        if len(left) > 1:
            costs = [cost(number, epsilon) for number in left]
            least = min(costs)
            left = [number for number, mine in zip(left, costs, strict=True) if mine == least]
    return drawn.get(left[0]) or options[left[0]]()


_NONE = Fraction(0)
