"""Skew-aware plans for queries with free variables that are not hierarchical: triangles first of all (003, chapter 6).

Every join variable is split on, so each signature says which variables are heavy. For a signature there are two kinds
of plans: a listing of the skew-aware query's answer, kept by joining each delta with the other parts; or a view tree
with one variable at the bottom. The cheaper one is taken. For triangles this gives Figures 6.1, 6.5 and 6.10: a tree
over the light variable where the two others are heavy, and listings elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from ivme.errors import PlanError
from ivme.plan.assemble import Assembly
from ivme.plan.blueprint import Blueprint, Definition, Iteration, Leaf, Propagation, Reading, Rule, View
from ivme.plan.branch_reading import COMPARED, BranchReading
from ivme.plan.catalog import catalog_of
from ivme.plan.degree import degree_bound
from ivme.plan.leaves import Leaves
from ivme.plan.omega import Strategy
from ivme.plan.parts import Role, part_label, roles_of, sides_of, signatures, splits_of, with_parts
from ivme.plan.skew_trees import (
    HALF,
    Branch,
    SkewPlan,
    Tree,
    limits,
    part_edges,
    skew_plan,
    strategy_tree,
    tree_branch,
)
from ivme.plan.variable_order import order_of
from ivme.structure.hypergraph import Cqap, Hypergraph

MOST_ROLES = 5
"""On how many variables a query may be split: its plan grows with the number of signatures, 32."""

MOST_ATOMS = 6


def listing_plan(whole: Cqap, leaves: Leaves) -> SkewPlan:
    """The cheapest tree or listing for each signature."""
    roles = variable_roles(leaves)
    if not roles or len(roles) > MOST_ROLES or len(leaves.sources) > MOST_ATOMS:
        raise PlanError(f"strategy 'skew' splits queries of up to {MOST_ATOMS} atoms on 1 to {MOST_ROLES} variables")
    chosen: list[tuple[Tree, Branch]] = []
    sides = {
        label: [sides_of(leaves, label, signature) for signature in signatures(roles)] for label, _ in leaves.sources
    }
    parted = with_parts(leaves, sides)
    for i, signature in enumerate(signatures(roles)):
        labels = tuple(part_label(label, sides_of(leaves, label, signature)) for label, _ in leaves.sources)
        options = [*_options(whole, parted, labels, f".{i + 1}")]
        chosen.append(min(options, key=lambda option: _costs(option[0], option[1], parted, roles)))
    return skew_plan([tree for tree, _ in chosen], [branch for _, branch in chosen], roles, whole)


def variable_roles(leaves: Leaves) -> tuple[Role, ...]:
    """One role for each set of variables that occur in the same atoms, two at least but not all; what occurs in all
    atoms is part of every key (SEEDS.md, "Any three relations")."""
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
    return roles_of(leaves, keys)


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
    view = View(f"Q{suffix}", (*inputs, *leaves.outputs), "view", labels)
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


def _costs(tree: Tree, branch: Branch, leaves: Leaves, roles: tuple[Role, ...]) -> list[Fraction]:
    """Update, delay and space of a signature's plan, for each of the compared ε."""
    mine = replace(leaves, sources=tuple(source for source in leaves.sources if source[0] in tree.labels))
    names = [role.partition for role in roles]
    splits = splits_of(roles, dict.fromkeys(names, HALF))
    blueprint = replace(tree.blueprint, leaves=mine, reading=branch.found.reading, splits=splits)
    assembly = Assembly(catalog_of({"": blueprint}))
    for relation in assembly.relations:
        assembly.trigger(relation)
    maps = {(assembly.storage.edges(node), frozenset(node.schema)) for node in assembly.stored}
    joins = {*assembly.joins.get("update", [])}
    bounds = limits(leaves, tree.labels)
    costs = []
    for epsilon in COMPARED:
        updates = [assembly.storage.exponent(*join, epsilon) for join in joins]
        delays = [degree_bound(bounds, visit.given, visit.found, epsilon) for visit in branch.found.visits]
        sizes = [assembly.storage.exponent(edges, schema, (), epsilon) for edges, schema in maps]
        costs += [max(values, default=Fraction(0)) for values in (updates, delays, sizes)]
    return costs
