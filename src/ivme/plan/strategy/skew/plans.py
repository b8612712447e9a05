"""Strategy `skew`: heavy and light parts of the relations, each maintained in the way that suits it.

One generator per kind of structure, none per shape: counts (no free variables) by a search over stored views,
hierarchical fractures by Ω, other queries with free variables by trees and listings over signatures.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ivme.errors import PlanError
from ivme.plan.assemble.draft import drafted
from ivme.plan.assemble.leaves import Leaves, leaves_of
from ivme.plan.assemble.plan import Plan
from ivme.plan.assemble.tuning import UNKNOWN_SIZE, Tuning, Workload, expected_work
from ivme.plan.assemble.update_costs import same_costs
from ivme.plan.strategy.options import Options
from ivme.plan.strategy.skew.bounds import Measure
from ivme.plan.strategy.skew.count import Counted, count_plan
from ivme.plan.strategy.skew.listing import check_roles, listing_plan, variable_roles
from ivme.plan.strategy.skew.parts import Role, roles_of
from ivme.plan.strategy.skew.trees import SkewPlan, hierarchical_plan, part_edges
from ivme.query.model import ORDER_AGGREGATES, Query
from ivme.structure.analysis import Analysis
from ivme.structure.fracture import Fracture, unbroken
from ivme.structure.hypergraph import Hypergraph
from ivme.structure.shapes import loomis_whitney_degree

ONE_BY_ONE = (
    "space='source', rebalance='deamortised' and one ε for each relation are for counts over triangles and "
    "Loomis-Whitney queries, whose relations source 000 splits one by one; leave them out"
)

BALANCES = (Fraction(1, 2), Fraction(2, 3), Fraction(1, 3))
"""The ε among which the best is sought, where the plan can choose, the usual one first. At 1/3 a light value has
N^(1/3) partners, so that a view over three of its relations takes N^(2/3) for a change, and there are N^(2/3) heavy
values: diamonds need that, and 4-cycles take less space for it."""


def skew(analysis: Analysis, options: Options, below: Fraction | None = None) -> Plan:
    """The plan over heavy and light parts; PlanError if the query has none, or none with updates `below` an exponent
    where that is known early."""
    query = analysis.query
    _check(query, options)
    structure, kind = analysis.plain.cqap, analysis.plain.classification
    whole = unbroken(structure)
    if not query.free:
        leaves = leaves_of(query, whole)
        best, made = _counted(query, leaves, options, below)
        return _plan(analysis, whole, made, options, best)
    if kind.hierarchical_fracture and kind.triangle is None:
        broken = analysis.plain.fracture
        return _plan(analysis, broken, hierarchical_plan(broken, leaves_of(query, broken)), options)
    return _plan(analysis, whole, listing_plan(structure, leaves_of(query, whole), below), options)


def _check(query: Query, options: Options) -> None:
    ordered = [a for a in query.aggregates if a.function in ORDER_AGGREGATES and a.variable not in query.free]
    if ordered:
        listed, verb = ", ".join(map(str, ordered)), "needs" if len(ordered) == 1 else "need"
        raise PlanError(f"strategy 'skew' keeps counts and sums; {listed} {verb} another strategy")
    if query.free and options.rebalance == "deamortised":
        raise PlanError(ONE_BY_ONE)


def _counted(query: Query, leaves: Leaves, options: Options, below: Fraction | None) -> tuple[Fraction, SkewPlan]:
    """The best ε to plan with and the plan, without roles that do not help: least update, then least space."""
    gradual = options.rebalance == "deamortised"
    own = isinstance(options.epsilon, tuple) and options.epsilon_value is None
    source = options.space == "source" or own or gradual
    if source and options.space == "linear":
        raise PlanError("one ε for each relation takes the space of space='source'; leave out space='linear'")
    roles = _source_roles(leaves) if source else variable_roles(leaves)
    check_roles(leaves, roles)
    asked = [epsilon for epsilon in BALANCES if epsilon == options.epsilon_value] or BALANCES
    tried = {epsilon: count_plan(query.name, leaves, roles, epsilon, below) for epsilon in asked}
    found = {epsilon: plan for epsilon, plan in tried.items() if plan is not None}
    if not found:
        raise PlanError(f"strategy 'skew' has no plan with updates below N^{below}; leave out the strategy")
    least = min(plan.update for plan in found.values())
    lean = {
        epsilon: plan if source else _with_fewer_roles(query.name, leaves, epsilon, plan)
        for epsilon, plan in found.items()
        if plan.update == least
    }
    best = min(lean, key=lambda epsilon: lean[epsilon].space)
    made = lean[best].plan
    if gradual:
        blueprint, followed = (replace(each, gradual=True) for each in (made.blueprint, made.followed))
        made = replace(made, blueprint=blueprint, followed=followed)
    return best, made


def _with_fewer_roles(name: str, leaves: Leaves, epsilon: Fraction, plan: Counted) -> Counted:
    """The plan without the roles that do not help."""
    above = plan.update + Fraction(1, epsilon.denominator)
    for role in plan.plan.roles:
        fewer = tuple(other for other in plan.plan.roles if other != role)
        less = count_plan(name, leaves, fewer, epsilon, above) if fewer else None
        if less is not None and less.update <= plan.update and less.space <= plan.space:
            plan = less
    return plan


def _source_roles(leaves: Leaves) -> tuple[Role, ...]:
    """Source 000: each relation is split on its own, on all variables but one, each relation on other ones."""
    hypergraph = Hypergraph(part_edges(leaves))
    if loomis_whitney_degree(hypergraph) is None:
        raise PlanError(ONE_BY_ONE)
    variables = sorted(hypergraph.vertices)
    keys = []
    for edge in hypergraph.edges:
        (missing,) = hypergraph.vertices - edge.variables
        dropped = variables[(variables.index(missing) + 1) % len(variables)]
        schema = leaves.source(edge.label).schema
        keys.append((tuple(v for v in schema if v != dropped and v in edge.variables), (edge.label,)))
    return roles_of(leaves, keys)


def _plan(
    analysis: Analysis, broken: Fracture, made: SkewPlan, options: Options, best: Fraction = Fraction(1, 2)
) -> Plan:
    """The plan with its thresholds, and its bounds as functions of ε; as numbers, if each relation has its own."""
    query = analysis.query
    even = not isinstance(options.epsilon, tuple) or options.epsilon_value is not None
    epsilons = {} if even else _own_epsilons(query, broken, made, options, best)
    draft = drafted(made.blueprint, analysis.site)
    measure = Measure(made, draft.assembly, epsilons | {draft.partition(name): own for name, own in epsilons.items()})
    preprocessing, update, delay, space = measure.preprocessing(), measure.update(), measure.delay(), measure.space()
    best = measure.balanced(best)
    tuning = Tuning(update.exponent, delay.exponent, options.workload) if options.epsilon == "auto" else None
    notes: tuple[str, ...] = ()
    if tuning is not None:
        size, workload = _size(query), options.workload or Workload()
        best = tuning.epsilon(size, workload)
        notes = (f"ε = {best} is chosen: {expected_work((update, delay), size, workload, best)}",)
    chosen = best if options.epsilon_value is None else options.epsilon_value
    epsilons = epsilons or dict.fromkeys(made.partitions, chosen)
    blueprint, followed = (
        replace(each, splits=tuple(replace(split, epsilon=epsilons[split.name]) for split in each.splits))
        for each in (made.blueprint, made.followed)
    )
    update = replace(update, amortised=bool(blueprint.splits) and not blueprint.gradual)
    is_same = blueprint.splits == made.blueprint.splits
    return Plan(
        "skew",
        made.blueprint if is_same else blueprint,
        followed,
        broken,
        preprocessing,
        update,
        delay,
        space,
        same_costs(update, query),
        trees=made.roots,
        notes=notes,
        epsilon=chosen if even and blueprint.splits else None,
        tuning=tuning,
        draft=draft if is_same else None,
    )


def _size(query: Query) -> int:
    """N as far as the tables say, each once."""
    rows = [query.table(name).rows for name in dict.fromkeys(atom.relation for atom in query.atoms)]
    return sum(each or 0 for each in rows) or UNKNOWN_SIZE


def _own_epsilons(
    query: Query, broken: Fracture, made: SkewPlan, options: Options, best: Fraction
) -> dict[str, Fraction]:
    """The ε of each partition, where each relation has its own; relations that are not named have the best one."""
    assert isinstance(options.epsilon, tuple)
    given = {name.lower(): value for name, value in options.epsilon}
    edges = zip(broken.whole.hypergraph.edges, query.atoms, strict=True)
    relations = {edge.label: atom.relation for edge, atom in edges}
    known = {relation.lower(): relation for relation in relations.values()}
    if unknown := [name for name, _ in options.epsilon if name.lower() not in known]:
        names = ", ".join(sorted(known.values()))
        raise PlanError(f"epsilon names {unknown[0]!r}, which the query does not read; it reads {names}")
    found: dict[str, Fraction] = {}
    for role in made.roles:
        mine = sorted({relations[label] for label in role.labels})
        values = {given.get(relation.lower(), best) for relation in mine}
        if len(values) > 1:
            raise PlanError(f"the relations {', '.join(mine)} are split together, so they need one ε")
        found[role.partition] = values.pop()
    return found
