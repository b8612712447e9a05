"""Evaluation at the request: over the tables alone, or over parts that are maintained.

Between a view that is maintained and one that is evaluated when it comes there are plans that do some of the work
before: bound variables are summed away where that is cheap to maintain, and the rest of the query is evaluated over
what is left. Which variables these are is the choice. Without keys it pays only where a request over the tables costs
more than N: what is left of a request is either a few look-ups, which a view tree has too, or N at least.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, islice
from operator import le

from ivme.budget import spend
from ivme.errors import PlanError
from ivme.plan.assemble.blueprint import Blueprint, Reading
from ivme.plan.assemble.elimination import Residuals
from ivme.plan.assemble.leaves import Leaves, leaves_of
from ivme.plan.assemble.plan import Plan, costliest
from ivme.plan.assemble.points import costs_of, undominated
from ivme.plan.assemble.request_blueprint import (
    answer_exponent,
    part_trees,
    parts_of,
    request_blueprint,
    summable,
)
from ivme.plan.ir.exponent import bound
from ivme.plan.order.view_tree import ViewNode
from ivme.plan.strategy.costed import costed_plan
from ivme.plan.strategy.orders import order_for
from ivme.structure.analysis import Analysis, ordered_variables
from ivme.structure.fracture import unbroken
from ivme.structure.hypergraph import Cqap, cqap_of

_Exponents = tuple[Fraction, Fraction, Fraction]

MOST_SETS = 16
"""How many sets of variables are tried, the large ones first."""


def request(analysis: Analysis, trees: Plan) -> Plan:
    """Evaluation at the request, for views with inputs; while the view is followed, it is a view tree.

    A request costs N^w of what is left of the query when its inputs are fixed, however many rows it has; that is given
    as the delay. Where rows are read off pieces, it is what the first row costs, and further ones cost O(1) each.
    Variables of MIN, MAX and COUNT DISTINCT count as free, one at a time.
    """
    query = analysis.query
    if not query.input:
        raise PlanError("strategy 'request' evaluates a view for given inputs, and this one has none: leave it out")
    leaves = leaves_of(query, unbroken(analysis.plain.cqap))
    return _plan(analysis, trees, request_blueprint(query, leaves))


def requests(analysis: Analysis, trees: Plan) -> Iterator[Plan]:
    """The plans that evaluate requests when they come: over tables alone, then over parts that are maintained."""
    with suppress(PlanError):
        plain = request(analysis, trees)
        yield plain
        yield from mixtures(analysis, trees, plain)


def mixtures(analysis: Analysis, trees: Plan, plain: Plan) -> list[Plan]:
    """Plans that maintain some parts, and evaluate the rest at the request: those that neither the view tree, nor the
    `plain` plan that maintains nothing, nor another of them dominates."""
    half = Fraction(1, 2)
    request_now = plain.delay.exponent.at(half)
    if not request_now or (request_now <= 1 and not plain.blueprint.leaves.dependencies):
        return []
    limits = [(Fraction(0), request_now, Fraction(1))]
    if trees.space == bound(1):
        limits.append((trees.update.exponent.at(half), trees.delay.exponent.at(half), Fraction(0)))
    found = [*_tried(analysis, plain.blueprint.leaves)]
    best = [each for i, each in enumerate(found) if not _is_dominated(each, i, found, limits)]
    plans = [_plan(analysis, trees, each.blueprint, each.parts) for each in best]
    kept = undominated([costs_of(plan).at(None) for plan in (trees, plain, *plans)])
    return [plan for plan in plans if costs_of(plan).at(None) in kept]


def _is_dominated(mine: _Mixture, place: int, found: list[_Mixture], limits: list[_Exponents]) -> bool:
    """Whether a plan of the limits, another one that was found, or an equal one before is at least as good."""
    others = [other.exponents for i, other in enumerate(found) if i != place]
    equal = [other.exponents for other in found[:place] if other.exponents == mine.exponents]
    better = [other for other in others if other != mine.exponents]
    return any(all(map(le, other, mine.exponents)) for other in (*limits, *equal, *better))


@dataclass(frozen=True, slots=True)
class _Mixture:
    """A plan before it is drafted: its exponents of an update, a request and the build, and the trees of its parts."""

    exponents: _Exponents
    blueprint: Blueprint
    parts: tuple[ViewNode, ...]


def mixture(analysis: Analysis, trees: Plan, summed: frozenset[str], *, filtered: bool = False) -> Plan:
    """The plan that sums these variables away before requests come, however good it is; see `parts_of`."""
    leaves = leaves_of(analysis.query, unbroken(analysis.plain.cqap))
    drawn = _drawn(analysis, leaves, parts_of(_whole(analysis), summed, filtered=filtered))
    return _plan(analysis, trees, drawn.blueprint, drawn.parts)


def _tried(analysis: Analysis, leaves: Leaves) -> Iterator[_Mixture]:
    query, whole = analysis.query, _whole(analysis)
    for summed in _sets(summable(query), leaves.dependencies.closure(query.input)):
        spend(100 * len(query.atoms))
        plain, filtered = (parts_of(whole, summed, filtered=each) for each in (False, True))
        yield _drawn(analysis, leaves, plain)
        if filtered != plain:
            yield _drawn(analysis, leaves, filtered)


def _drawn(analysis: Analysis, leaves: Leaves, maintained: tuple[Cqap, ...]) -> _Mixture:
    query = analysis.query
    found = [(part, order_for(analysis, part, leaves)) for part in maintained]
    parts = tuple(tree for part, choice in found for tree in part_trees(part, choice.order, leaves))
    blueprint = request_blueprint(query, leaves, parts)
    inputs, residuals, free = frozenset(query.input), Residuals(leaves), frozenset(query.free)
    answers = [(blueprint.branches[0], free)]
    answers += [(each.reading, free | {each.variable}) for each in blueprint.gathered]
    delay = max(answer_exponent(residuals, reading, inputs, kept) for reading, kept in answers)
    update = max(choice.widths.dynamic for _, choice in found)
    build = max(choice.widths.static for _, choice in found)
    return _Mixture((update, delay, build), blueprint, parts)


def _whole(analysis: Analysis) -> Cqap:
    """The query with everything free that a request has to find."""
    return cqap_of(analysis.query, frozenset(ordered_variables(analysis.query)))


def _sets(variables: tuple[str, ...], determined: frozenset[str]) -> list[frozenset[str]]:
    """The sets of variables to sum away: all that the inputs do not determine, which look-ups find anyway; then all but
    none, one, two and so on."""
    bound, most = frozenset(variables), len(variables)
    fewest = (bound.difference(kept) for size in range(most) for kept in combinations(variables, size))
    found = dict.fromkeys([bound - determined, *islice(fewest, MOST_SETS)])
    return [each for each in found if each]


def _plan(analysis: Analysis, trees: Plan, blueprint: Blueprint, parts: tuple[ViewNode, ...] = ()) -> Plan:
    notes = [
        f"while its changes are followed it is maintained by view trees: update {trees.update}, delay {trees.delay}"
    ]
    notes += [_piece_note(reading) for reading in blueprint.branches if reading.pieces]
    notes += [f"maintained between requests: {tree}, of {', '.join(tree.atoms)}" for tree in parts]
    broken = unbroken(analysis.plain.cqap)
    plan = costed_plan("request", analysis, blueprint, trees.followed, broken, trees=parts, notes=tuple(notes))
    assert plan.draft is not None
    enumeration = plan.draft.assembly.enumeration(plan.draft.name)
    answers = [*(branch.answer for branch in enumeration.branches), *(each.answer for each in enumeration.gathered)]
    return replace(plan, delay=bound(max(map(costliest, answers))))


def _piece_note(reading: Reading) -> str:
    pieces = ", ".join(f"({', '.join(piece.schema)})" for piece in reading.pieces)
    return f"a request finds the pieces {pieces} of its rows before the first row; each further row costs O(1)"
