"""The choice of a plan within its budget: of a view, of its checks, or the plan that it was stored with.

A view that was stored comes with its plan. It is planned again only if the planner has changed since, and its old
plan serves where that fails.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from ivme.budget import Budget, BudgetSpentError, limited, within
from ivme.errors import PlanError, StorageError
from ivme.plan.assemble.plan import Check, Plan
from ivme.plan.assemble.points import Observation
from ivme.plan.explain.closure import explain_closure
from ivme.plan.explain.explanation import Explanation, explain_choice
from ivme.plan.plan_text import StoredPlan, read_plan
from ivme.plan.strategy.choose import choose
from ivme.plan.strategy.options import Options, read_options
from ivme.plan.strategy.promises import with_promises
from ivme.query.failures import FailingJoin, as_count, failing_joins
from ivme.query.model import Query
from ivme.query.parse import as_asked
from ivme.structure.analysis import Analysis, analyse

_logger = logging.getLogger("ivme.planning")

Planned = tuple[Explanation, Plan | None]


def plan_or_stored(
    query: Query,
    analysis: Analysis | None,
    options: Options,
    old: StoredPlan | None,
    observed: Observation | None = None,
) -> Planned:
    """The stored plan if the planner has not changed since, or if it has and finds no better one in its time.

    A closure needs no plan, and no analysis.
    """
    if old is not None and old.is_current:
        return old.explanation, old.plan
    if analysis is None:
        return explain_closure(query, options), None
    if old is None:
        return plan_query(query, analysis, options, observed)
    try:
        explanation, plan = plan_query(query, analysis, options)
    except PlanError as error:
        _logger.warning("view %s keeps the plan that it was stored with: %s", query.name, error)
        return old.explanation, old.plan
    if explanation.cut:
        _logger.warning("view %s keeps the plan that it was stored with: planning stopped early", query.name)
        return old.explanation, old.plan
    return explanation, plan


def recalled(query: Query, stored: str) -> StoredPlan | None:
    """The stored plan, if this version of ivme can use it; it has to be one for this very query."""
    try:
        found = read_plan(stored)
    except StorageError as error:
        _logger.warning("view %s is planned again: %s", query.name, error)
        return None
    if found.explanation.query != query:
        _logger.info("view %s is planned again: its tables have changed since its plan was stored", query.name)
        return None
    return found


def plan_query(query: Query, analysis: Analysis, options: Options, observed: Observation | None = None) -> Planned:
    """The plan of a query with its explanation; `analysis` is that of the rows for which no expression fails.

    Where multiplicities may cancel, as those of ring semantics do, no check can count on seeing a row, and expressions
    are computed for all rows that pass the predicate of their own atom.
    """
    with _budget(query, options) as budget:
        choice = choose(analysis, options, observed)
        if choice.plan is not None and options.semantics != "ring":
            choice = replace(choice, plan=replace(choice.plan, checks=_checks(query, choice.plan, options)))
        choice = replace(choice, cut=budget.cut)
        return explain_choice(query, analysis, choice, options), choice.plan


@contextmanager
def _budget(query: Query, options: Options) -> Iterator[Budget]:
    """Limits the steps of the planner."""
    try:
        with not_too_deep(query), limited(options.planning_seconds) as budget:
            yield budget
    except BudgetSpentError:
        raise PlanError(
            f"no plan for the {len(query.atoms)} atoms of the query was found within "
            f"planning_seconds={options.planning_seconds:g}; split it into views, each over some of the tables, or "
            "give it more time"
        ) from None


@contextmanager
def not_too_deep(query: Query) -> Iterator[None]:
    """Refuses a query if what the planner recurses over is too deep: join trees and variable orders."""
    try:
        yield
    except RecursionError:
        raise PlanError(
            f"the query is too large to be planned: its {len(query.atoms)} atoms make too deep a tree; "
            "split it into views, each over some of the tables"
        ) from None


def _checks(query: Query, plan: Plan, options: Options) -> tuple[Check, ...]:
    """The plans of what must have no row, since rows for which an expression fails are left out of the view.

    They have a budget of their own, as much as the view's: a view that took all of it would else be refused.
    """
    joins, found = failing_joins(query), []
    with limited(options.planning_seconds):
        for number, each in enumerate(joins):
            with within(1 / (len(joins) - number)):
                found.append(_check(each, plan, options))
    return tuple(found)


def _check(failing: FailingJoin, plan: Plan, options: Options) -> Check:
    """A plan like the view's, with which it shares the maps of all other atoms; the chooser's for a count where those
    are split, or the view has parameters, whatever the view's options are."""
    wanted, strategy = failing.query, plan.strategy
    if plan.blueprint.splits or plan.blueprint.leaves.inputs:
        wanted, strategy = as_count(failing.query), "recompute" if plan.blueprint.lazy else ""
    chosen = Options(strategy or None, planning_seconds=options.planning_seconds)
    found = choose(analyse(wanted), chosen).plan
    assert found is not None
    return Check(wanted, failing.atoms, found.strategy, found.update, found.blueprint, found.tuning)


def plan_ring_view(parsed: Query, given: Mapping[str, object]) -> tuple[Explanation, Plan]:
    """A plan without heavy and light parts, which a ring view cannot have, over all rows that pass their predicates."""
    options = read_options(given)
    query = with_promises(as_asked(parsed, options.semantics), options)
    analysis = analyse(query)
    explanation, plan = _ring_plan(query, analysis, options)
    if plan is not None and plan.blueprint.splits and options.strategy is None:
        explanation, plan = _ring_plan(query, analysis, replace(options, strategy="view-tree"))
    if plan is None or plan.blueprint.splits:
        raise PlanError(f"view {parsed.name} cannot be maintained: {explanation.reason}")
    return explanation, plan


def _ring_plan(query: Query, analysis: Analysis, options: Options) -> Planned:
    with _budget(query, options) as budget:
        choice = replace(choose(analysis, options), cut=budget.cut)
        return explain_choice(query, analysis, choice, options), choice.plan
