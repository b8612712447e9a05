"""Strategy `skew`: heavy and light parts of the relations, each maintained in the way that suits it.

One generator per kind of structure, none per shape: counts (no free variables) by a search over stored views, hierarchical
fractures by Ω, other queries with free variables by trees and listings over signatures. The bounds of the plan are exact
functions of ε, read off the joins that the program makes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from ivme.errors import PlanError
from ivme.plan.assemble import Assembly, assemble
from ivme.plan.blueprint import Blueprint
from ivme.plan.catalog import catalog_of
from ivme.plan.degree import degree_bound
from ivme.plan.exponent import Bound, bound, through
from ivme.plan.leaves import Leaves, leaves_of
from ivme.plan.options import Options
from ivme.plan.parts import Role, roles_of
from ivme.plan.plan import Plan
from ivme.plan.skew_count import count_plan
from ivme.plan.skew_listing import MOST_ATOMS, MOST_ROLES, listing_plan, variable_roles
from ivme.plan.skew_trees import SkewPlan, hierarchical_plan, limits, part_edges
from ivme.query.model import ORDER_AGGREGATES, Query
from ivme.structure.classify import classify
from ivme.structure.fracture import Fracture, fracture
from ivme.structure.hypergraph import Hypergraph, cqap_of
from ivme.structure.shapes import loomis_whitney_degree

GRID = tuple(Fraction(i, 12) for i in range(13))
"""Where exponents are evaluated: their breakpoints are among these."""

BALANCES = (Fraction(1, 2), Fraction(2, 3))
"""The ε among which the best is sought, where the plan can choose."""


def skew(query: Query, options: Options) -> Plan:
    """The plan over heavy and light parts; PlanError if the query has none."""
    _check(query)
    structure = cqap_of(query)
    kind = classify(structure)
    whole = Fracture(structure, (structure,), tuple((v, v) for v in sorted(structure.variables)))
    if not query.free:
        leaves = leaves_of(query, whole)
        best, made = _counted(query, leaves, options)
        return _plan(query, whole, made, options, best)
    if kind.hierarchical_fracture and kind.triangle is None:
        broken = fracture(structure)
        return _plan(query, broken, hierarchical_plan(broken, leaves_of(query, broken)), options)
    return _plan(query, whole, listing_plan(structure, leaves_of(query, whole)), options)


def _check(query: Query) -> None:
    if any(
        aggregate.function in ORDER_AGGREGATES and aggregate.variable not in query.free
        for aggregate in query.aggregates
    ):
        raise PlanError("strategy 'skew' keeps counts and sums; MIN, MAX and COUNT DISTINCT need another strategy")


def _counted(query: Query, leaves: Leaves, options: Options) -> tuple[Fraction, SkewPlan]:
    """The best ε to plan with and the plan; then roles that do not help are left out."""
    source = options.space == "source" or (isinstance(options.epsilon, tuple) and options.epsilon_value is None)
    roles = _source_roles(leaves) if source else variable_roles(leaves)
    if not roles or len(roles) > MOST_ROLES or len(leaves.sources) > MOST_ATOMS:
        raise PlanError(f"strategy 'skew' splits counts of up to {MOST_ATOMS} atoms on 1 to {MOST_ROLES} variables")
    found = {epsilon: count_plan(query.name, leaves, roles, epsilon) for epsilon in BALANCES}
    best = min(found, key=lambda epsilon: (found[epsilon].update, epsilon))
    chosen = found[best]
    for role in roles if not source else ():
        fewer = tuple(other for other in chosen.plan.roles if other != role)
        if fewer:
            less = count_plan(query.name, leaves, fewer, best)
            chosen = less if less.update <= chosen.update and less.space <= chosen.space else chosen
    return best, chosen.plan


def _source_roles(leaves: Leaves) -> tuple[Role, ...]:
    """Source 000: each relation is split on its own, on all variables but one, each relation on other ones."""
    hypergraph = Hypergraph(part_edges(leaves))
    if loomis_whitney_degree(hypergraph) is None:
        raise PlanError(
            "space='source' and one ε for each relation are for counts over triangles and Loomis-Whitney queries, whose "
            "relations source 000 splits one by one; leave them out"
        )
    variables = sorted(hypergraph.vertices)
    keys = []
    for edge in hypergraph.edges:
        (missing,) = hypergraph.vertices - edge.variables
        dropped = variables[(variables.index(missing) + 1) % len(variables)]
        schema = leaves.source(edge.label).schema
        keys.append((tuple(v for v in schema if v != dropped and v in edge.variables), (edge.label,)))
    return roles_of(leaves, keys)


def _plan(query: Query, broken: Fracture, made: SkewPlan, options: Options, best: Fraction = Fraction(1, 2)) -> Plan:
    """The plan with its thresholds, and its bounds as functions of ε; of numbers, if each relation has its own."""
    epsilons = _epsilons(query, made, options, best)
    blueprint, followed = (
        replace(each, splits=tuple(replace(split, epsilon=epsilons[split.name]) for split in each.splits))
        for each in (made.blueprint, made.followed)
    )
    program = assemble(blueprint)
    measure = _Measure(made, blueprint)
    even = (
        (len(set(epsilons.values())) <= 1 and options.epsilon_value is not None) or not isinstance(options.epsilon, tuple)
    )
    costs = [measure.preprocessing, measure.update, measure.delay, measure.space]
    found = [_bound(cost, epsilons, even) for cost in costs]
    preprocessing, update, delay, space = found
    return Plan(
        "skew",
        program,
        blueprint,
        followed,
        broken,
        preprocessing,
        replace(update, amortised=bool(blueprint.splits)),
        delay,
        space,
        trees=made.roots,
        epsilon=epsilons[blueprint.splits[0].name] if even and blueprint.splits else None,
    )


def _epsilons(query: Query, made: SkewPlan, options: Options, best: Fraction) -> dict[str, Fraction]:
    """The ε of each partition: the one asked for, or the one at which the plan is best."""
    if not isinstance(options.epsilon, tuple):
        chosen = options.epsilon if isinstance(options.epsilon, Fraction) else best
        return {role.partition: chosen for role in made.roles}
    given = {name.lower(): value for name, value in options.epsilon}
    relations = {label.lower(): source.atom.relation.lower() for label, source in made.blueprint.leaves.sources}
    known = {atom.relation.lower() for atom in query.atoms}
    if unknown := sorted(set(given) - known):
        raise PlanError(
            f"epsilon names {unknown[0]!r}, which the query does not read; it reads {', '.join(sorted(known))}"
        )
    found: dict[str, Fraction] = {}
    for role in made.roles:
        mine = {r for label, r in relations.items() for own in role.labels if label.split("[")[0] == own.lower()}
        values = {given.get(relation, best) for relation in mine}
        if len(values) > 1:
            raise PlanError(f"the relations {', '.join(sorted(mine))} are split together, so they need one ε")
        found[role.partition] = values.pop()
    return found


def _bound(cost: Callable[[Mapping[str, Fraction]], Fraction], epsilons: Mapping[str, Fraction], even: bool) -> Bound:
    if not even:
        return bound(cost(epsilons))
    return bound(through([(epsilon, cost(dict.fromkeys(epsilons, epsilon))) for epsilon in GRID]))


class _Measure:
    """The exponents of a plan for given ε, read off the joins of its program and the visits of its readers."""

    def __init__(self, made: SkewPlan, blueprint: Blueprint) -> None:
        self._made = made
        self._assembly = assembly = Assembly(catalog_of({"": blueprint}))
        for relation in assembly.relations:
            assembly.trigger(relation)
        assembly.fill(frozenset())
        assembly.build("")
        assembly.enumeration("")
        self._maps = [(assembly.storage.edges(node), frozenset(node.schema)) for node in assembly.stored]

    def update(self, epsilons: Mapping[str, Fraction]) -> Fraction:
        return self._dearest("update", epsilons)

    def preprocessing(self, epsilons: Mapping[str, Fraction]) -> Fraction:
        return max(Fraction(1), self._dearest("build", epsilons))

    def space(self, epsilons: Mapping[str, Fraction]) -> Fraction:
        sizes = (self._assembly.storage.exponent(edges, schema, (), epsilons) for edges, schema in set(self._maps))
        return max(Fraction(1), *sizes)

    def delay(self, epsilons: Mapping[str, Fraction]) -> Fraction:
        leaves = self._made.blueprint.leaves
        steps = (
            degree_bound(limits(leaves, labels, epsilons), visit.given, visit.found)
            for visit, labels in set(self._made.visits)
        )
        return max(steps, default=Fraction(0))

    def _dearest(self, section: str, epsilons: Mapping[str, Fraction]) -> Fraction:
        joins = set(self._assembly.joins.get(section, []))
        return max((self._assembly.storage.exponent(*join, epsilons) for join in joins), default=Fraction(0))
