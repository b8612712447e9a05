"""The chooser: which strategy maintains a query, and why.

Plans are compared by update time, then delay, preprocessing time and space; with `favour="reads"` delay comes first. A
view with inputs may also be evaluated at requests (`request`): the plan that is taken is never worse than that in
every respect. With `space="linear"`, plans that take more are left out, unless all do. Where keys make tables differ in
what a change costs, it is the mean over all changes that counts first (`weigh`). Where it is known what the view is
used for, the least work for that counts. `view-tree` wins ties; `recompute` maintains nothing and has to be requested.
Whatever `STRATEGIES` registers later takes part. Of a query with many atoms only the view trees are planned: the
programs of the others grow with the square of its size and more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log2
from operator import le

from ivme.budget import BudgetSpentError, StepsSpentError, at_most
from ivme.errors import PlanError
from ivme.plan.assemble.plan import Plan
from ivme.plan.assemble.points import Observation, PlanCosts, Point, costs_of
from ivme.plan.assemble.tuning import CHOICES
from ivme.plan.ir.exponent import Bound, bound
from ivme.plan.ir.program import Program
from ivme.plan.order.widths import Widths
from ivme.plan.strategy.marks import only_grows, unmarkable
from ivme.plan.strategy.options import Options
from ivme.plan.strategy.request import requests
from ivme.plan.strategy.skew.plans import skew
from ivme.plan.strategy.strategies import STRATEGIES, plan_with
from ivme.plan.strategy.weigh import Rates, dimensions_of, rates_of
from ivme.structure.analysis import Analysis
from ivme.structure.classify import Classification

MAINTAINING = ("view-tree", *(name for name in STRATEGIES if name not in ("view-tree", "recompute")))
"""The strategies that the chooser compares, the preferred one first."""

COMPARED_ATOMS = 10
"""Up to how many atoms the plans of all strategies are compared: about a second."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen plan and the reason; without a plan, the reason why there is none.

    `widths` are those of the query (source 003, Definition 4.12), whatever the plan follows; `compared` is whether
    other strategies had a chance, and `cut` whether a search ended because the budget for planning was spent.
    `candidates` are what the plans cost that may be better for another workload, the chosen one among them.
    """

    plan: Plan | None
    reason: str
    widths: Widths | None = None
    compared: bool = True
    cut: bool = False
    candidates: tuple[PlanCosts, ...] = ()


def choose(analysis: Analysis, options: Options, observed: Observation | None = None) -> Choice:
    """The plan for a query, or that of the requested strategy; by what was `observed`, if that is known.

    Raises PlanError if the requested strategy cannot maintain the query, or if none can under ring semantics.
    """
    if options.strategy is not None:
        return _forced(analysis, options)
    if observed is not None:
        return _by_workload(analysis, options, observed)
    query, classification = analysis.query, analysis.classification
    trees = plan_with("view-tree", analysis)
    if classification.cqap0 and _fits(trees, options):
        return Choice(trees, "in CQAP0: constant update time and delay, which is optimal", trees.widths)
    rates = rates_of(analysis, options)
    settled = rates is not None and options.favour != "updates" and _is_settled(trees, rates)
    if settled and _fits(trees, options):
        for plan in _look_ups(analysis, trees, options):
            shared = frozenset() if rates is None else rates.dimensions
            found = costs_of(trees, shared), costs_of(plan, shared)
            return Choice(plan, _reason(plan, trees, options), trees.widths, candidates=found)
        return Choice(trees, _keyed_reason(trees), trees.widths, candidates=_unexplored(trees, rates))
    if len(query.atoms) > COMPARED_ATOMS and _fits(trees, options):
        for marked in _found(_marked(analysis, trees)):
            return Choice(marked, _reason(marked, trees, options), trees.widths, compared=False)
        return Choice(trees, _tree_reason(trees, f"{trees.update} updates"), trees.widths, compared=False)
    candidates = [
        plan for plan in _found(_candidates(analysis, trees, options, rates)) if _is_taken(plan, analysis, options)
    ]
    if not candidates:
        raise PlanError(
            "no strategy maintains this view under ring semantics: where multiplicities cancel, sums and extremes "
            "would be lost; use bag or set semantics, or COUNT(*) as the only aggregate"
        )
    if options.space == "linear":
        candidates = [plan for plan in candidates if is_linear_space(plan, options)] or candidates
    maintained = [plan for plan in candidates if plan.strategy != "request"]
    best = _favoured(candidates, maintained, rates, options)
    reason = _reason(best, trees, options)
    if best is trees and rates is not None:
        reason = _keyed_reason(trees)
    shared = frozenset() if rates is None else rates.dimensions
    return Choice(best, reason, trees.widths, candidates=tuple(costs_of(plan, shared) for plan in candidates))


def _unexplored(trees: Plan, rates: Rates | None) -> tuple[PlanCosts, ...]:
    """What heavy and light parts may take at best, where view trees were taken for their mean and one table is costly:
    no plan is below N^½ for two dimensions that change (OMv)."""
    if rates is None or trees.update == bound(0):
        return ()
    half = tuple(replace(each, update=bound(Fraction(1, 2)), in_place=bound(Fraction(1, 2))) for each in trees.updates)
    best = PlanCosts("skew", Fraction(1, 2), half, bound(0), bound(1), bound(1), is_split=True)
    return costs_of(trees, rates.dimensions), best


def _by_workload(analysis: Analysis, options: Options, observed: Observation) -> Choice:
    """The plan that would have taken the least work for what was observed, with its build."""
    options = replace(options, epsilon=None) if options.epsilon == "auto" else options
    trees, shared = plan_with("view-tree", analysis), dimensions_of(analysis.query)
    rates = rates_of(analysis, options)
    found = [plan for plan in _found(_candidates(analysis, trees, options, rates)) if _fits(plan, options)]
    plans = found or [trees]
    costed = [costs_of(plan, shared) for plan in plans]
    points = [(point, plan) for costs, plan in zip(costed, plans, strict=True) for point in costs.points()]

    def rank(pair: tuple[Point, Plan]) -> tuple[bool, float, Fraction, int]:
        point = pair[0]
        work = point.work(observed) + point.build(observed)
        return observed.is_followed and point.per_request, work, point.space, plans.index(pair[1])

    point, best = min(points, key=rank)
    if point.epsilon is not None and point.epsilon != best.epsilon:
        best = skew(analysis, replace(options, epsilon=point.epsilon))
    work = f"about {point.work(observed):,.0f} operations by its bounds"
    return Choice(best, f"for what was observed ({observed}) it takes {work}", trees.widths, candidates=tuple(costed))


_SKEW_STEPS = 50_000
"""Where another plan is linear, how many steps heavy and light parts may take to plan: the Loomis-Whitney count
of degree 5 needs 45,000."""


def _is_linear(trees: Plan) -> bool:
    """Whether a plan is built in linear time and space, and read with constant delay."""
    return trees.preprocessing == trees.space == bound(1) and trees.delay == bound(0)


def _is_settled(trees: Plan, rates: Rates) -> bool:
    """Whether no other plan can be better: constant time for all changes, or on average, in linear space."""
    return _is_linear(trees) and rates.mean(trees, Fraction(0)) <= 1 + len(trees.updates)


def _favoured(candidates: list[Plan], maintained: list[Plan], rates: Rates | None, options: Options) -> Plan:
    """The best plan for what is favoured: updates, reads, or both alike.

    Balanced, evaluation at the request takes the place of the best maintained plan where it is at least as good in
    every respect, or where the costlier of an update and a request has the lower exponent.
    """

    def rank(plan: Plan) -> tuple[float, ...]:
        update, delay, *rest = _costs(plan, options)
        first = (delay, update) if options.favour == "reads" else (update, delay)
        return _mean(plan, rates, options), *map(float, (*first, *rest)), _is_split(plan)

    if options.favour != "balanced" or not maintained:
        return min(candidates, key=rank)
    best = min(maintained, key=rank)
    for plan in (each for each in candidates if each.strategy == "request"):
        mine, theirs = _costs(plan, options), _costs(best, options)
        known = rates is not None and rates.mean(best, _epsilon(best, options)) <= _FEW
        better = max(mine[:2]) < (theirs[1] if known else max(theirs[:2]))
        if better or all(map(le, mine, theirs)):
            best = plan
    return best


_FEW = 64
"""Up to how many look-ups on average an update counts as constant."""


def _is_split(plan: Plan) -> bool:
    """Whether relations are split into parts, which has to be worth it: among equals, what is simpler is faster."""
    return bool(plan.blueprint.splits)


def _mean(plan: Plan, rates: Rates | None, options: Options) -> int:
    """The mean work of a change as a power of 2, so that small differences do not decide; 0 without keys.

    Where nothing changes, there is no such work.
    """
    mean = 0.0 if rates is None else rates.mean(plan, _epsilon(plan, options))
    return round(log2(mean)) if mean else 0


def _keyed_reason(plan: Plan) -> str:
    costly = [cost for cost in plan.updates if cost.update.exponent.at(Fraction(1, 2))]
    if not costly:
        return "constant update time and delay: by its keys, a changed row finds what it joins with by look-ups"
    listed = ", ".join(cost.table for cost in costly)
    cheap = ", ".join(cost.table for cost in plan.updates if cost not in costly)
    told = f"a change of {cheap} takes a few look-ups by keys" if cheap else "by keys, changes are cheap on average"
    return f"{told}; one of {listed} takes as many as there are rows that join with it"


def _found(plans: Iterator[Plan]) -> list[Plan]:
    """The plans that were found before the budget for planning was spent."""
    found: list[Plan] = []
    try:
        for plan in plans:
            found.append(plan)  # noqa: PERF402 - those before an error count
    except BudgetSpentError:
        pass
    return found


def _forced(analysis: Analysis, options: Options) -> Choice:
    assert options.strategy is not None
    plan = plan_with(options.strategy, analysis, options)
    if not _fits(plan, options):
        raise PlanError(
            f"strategy {options.strategy!r} would lose rows or sums of this view under ring semantics, where "
            "multiplicities may cancel; let ivme choose, or use bag or set semantics"
        )
    reason = "requested"
    try:
        trees = plan if options.strategy == "view-tree" else plan_with("view-tree", analysis)
    except BudgetSpentError:
        return Choice(plan, reason, compared=False)
    if _costs(trees, options) < _costs(plan, options):
        reason += f"; view-tree would have {_quoted(trees)}"
    return Choice(plan, reason, trees.widths)


def _candidates(analysis: Analysis, trees: Plan, options: Options, rates: Rates | None) -> Iterator[Plan]:
    """The plans that may be the best, in the order in which ties are decided.

    Where view trees take linear time and space, and constant delay, only heavy and light parts can be better: each join
    of the updates of other strategies costs an edge cover, which is 0 or at least 1, and where all are 0, so are the
    view tree's. Plans of parts take the longest to find. They are left out where another plan is constant in
    everything. Their search ends as soon as no update can be below that of a plan with constant delay, which they are
    not better than in anything but space then, and where another plan is linear after some steps: those that are worth
    it have been found by then.
    """
    yield trees
    below = _least(None, trees, options)
    if analysis.query.input and _is_open(options):
        yield from requests(analysis, trees)
    constant = False
    for plan in _marked(analysis, trees):
        constant = _at_half(plan.update) == _at_half(plan.delay) == 0
        yield plan
    linear = _at_half(trees.update) <= 1 and _fits(trees, options)
    if not (linear and _is_linear(trees) and rates is None):
        for strategy in ("factorised", "classical", "recursive"):
            for plan in _planned(strategy, analysis, options):
                linear = linear or (_at_half(plan.update) <= 1 and _fits(plan, options))
                below = _least(below, plan, options)
                yield plan
    if not constant:
        yield from _split(analysis, below, options, is_linear=linear)


def _look_ups(analysis: Analysis, trees: Plan, options: Options) -> Iterator[Plan]:
    """A plan that finds the rows of a request by look-ups, and takes a few of them for any update, where a view tree
    takes more for some table."""
    if trees.update != bound(0) and analysis.query.input and _is_open(options):
        found = [plan for plan in requests(analysis, trees) if _fits(plan, options)]
        yield from (plan for plan in found if plan.update == plan.delay == bound(0) and plan.space == bound(1))


def _split(analysis: Analysis, below: Fraction | None, options: Options, *, is_linear: bool) -> list[Plan]:
    """The plan of heavy and light parts, if there is one that may be taken and it is soon found."""
    with suppress(PlanError, StepsSpentError), at_most(_SKEW_STEPS) if is_linear else nullcontext():
        plan = skew(analysis, options, below=below)
        epsilon = _small_epsilon(plan, options)
        return [plan if epsilon is None else skew(analysis, replace(options, epsilon=epsilon))]
    return []


def _least(below: Fraction | None, plan: Plan, options: Options) -> Fraction | None:
    """The least update of plans with constant delay so far; None where it is space that counts, or the semantics that
    they do not keep to."""
    if options.space == "linear" or _at_half(plan.delay) or not _fits(plan, options):
        return below
    return _at_half(plan.update) if below is None else min(below, _at_half(plan.update))


def _small_epsilon(plan: Plan, options: Options) -> Fraction | None:
    """Where linear space is requested, and the plan takes more at its own ε, another at which it does not: with the
    cheapest updates and reads, the costlier of both first."""
    if options.space != "linear" or options.epsilon is not None or is_linear_space(plan, options):
        return None

    def cost(epsilon: Fraction) -> tuple[Fraction, Fraction]:
        both = plan.update.exponent.at(epsilon), plan.delay.exponent.at(epsilon)
        return max(both), min(both)

    return min((each for each in CHOICES if plan.space.exponent.at(each) <= 1), key=cost, default=None)


def _planned(strategy: str, analysis: Analysis, options: Options) -> list[Plan]:
    """The plan of a strategy, if it has one."""
    with suppress(PlanError):
        return [plan_with(strategy, analysis, options)]
    return []


def _is_open(options: Options) -> bool:
    """Whether no option was given that only heavy and light parts have."""
    return options.epsilon is None and options.space != "source" and options.rebalance == Options().rebalance


def is_linear_space(plan: Plan, options: Options) -> bool:
    """Whether a plan stores no more than the tables do, up to a constant factor."""
    return plan.space.exponent.at(_epsilon(plan, options)) <= 1


def _is_taken(plan: Plan, analysis: Analysis, options: Options) -> bool:
    """Whether a plan may be chosen at all."""
    return _fits(plan, options) and not _reads_all(plan, analysis.classification, options)


def _at_half(cost: Bound) -> Fraction:
    return cost.exponent.at(Fraction(1, 2))


def _marked(analysis: Analysis, trees: Plan) -> Iterator[Plan]:
    """The plan of `marks` where it is meant: for sets, and where no table that changes loses rows, if its updates have
    the lower exponent."""
    query = analysis.query
    if unmarkable(query) or not (query.distinct or only_grows(query)):
        return
    plan = plan_with("marks", analysis)
    if _at_half(plan.update) < _at_half(trees.update):
        yield plan


def _reads_all(plan: Plan, classification: Classification, options: Options) -> bool:
    """Whether a row may take a plan as long as all of them, and neither a source nor the user says that it may."""
    stated = classification.triangle or classification.loomis_whitney or classification.hierarchical_fracture
    asked = options.epsilon is not None or stated
    return not asked and plan.strategy == "skew" and plan.delay.exponent.at(_epsilon(plan, options)) >= 1


def _fits(plan: Plan, options: Options) -> bool:
    """Whether a plan keeps to the semantics; one that is evaluated at requests is a view tree for followers."""
    return options.semantics != "ring" or not (plan.strategy == "request" or _loses_cancelled_rows(plan.program))


def _loses_cancelled_rows(program: Program) -> bool:
    """Whether something may get lost because multiplicities in a view cancel to zero.

    An entry without a count is dropped together with its sums, so that only multiplicities are safe. Rows are, where
    each loop is over a map whose payload is a factor of the row's: integers have no divisors of zero, so such a
    factor is zero only if the row is.
    """
    reading = program.enumeration
    if reading.slots or reading.extremes:
        return True
    branches = reading.branches or (reading,)
    return any(loop.read.map not in {f.map for f in branch.factors} for branch in branches for loop in branch.loops)


def _epsilon(plan: Plan, options: Options) -> Fraction:
    """The ε at which a plan is judged: the requested one, else its own."""
    asked = options.epsilon_value if options.epsilon_value is not None else plan.epsilon
    return Fraction(1, 2) if asked is None else asked


def _costs(plan: Plan, options: Options) -> tuple[Fraction, ...]:
    epsilon = _epsilon(plan, options)
    return tuple(b.exponent.at(epsilon) for b in (plan.update, plan.delay, plan.preprocessing, plan.space))


def _reason(best: Plan, trees: Plan, options: Options) -> str:
    if best.strategy != "view-tree":
        if not _fits(trees, options):
            return "under ring semantics multiplicities may cancel, and view trees would then hide rows"
        return f"{_quoted(best)}; view-tree would have {_quoted(trees)}"
    return _tree_reason(best, f"no strategy here maintains it in less than {best.update}")


def _tree_reason(plan: Plan, claim: str) -> str:
    if plan.update == bound(0):
        return "constant update time and delay: the tables that would make updates costly are static"
    widths = plan.widths
    order = "" if widths is None else f" over the order with least (δ, w) = ({widths.dynamic}, {widths.static})"
    return f"{claim}: view trees{order}"


def _quoted(plan: Plan) -> str:
    names = ("update", "delay", "preprocessing", "space")
    bounds: tuple[Bound, ...] = (plan.update, plan.delay, plan.preprocessing, plan.space)
    return ", ".join(f"{name} {value}" for name, value in zip(names, bounds, strict=True))
