"""From a view's text to what is installed for it: planned over declared relations, without a database's lock.

A view that was stored brings its plan along. It is planned again only if the planner has changed since, and its old
plan serves where that fails.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ivme.compile import as_asked, compile_plan, compile_unchecked, parse, promised
from ivme.errors import PlanError, StorageError
from ivme.plan.explain.explanation import Explanation
from ivme.plan.plan_text import StoredPlan, plan_text, read_plan
from ivme.plan.strategy.marks import only_grows
from ivme.plan.strategy.options import read_options
from ivme.plan.strategy.plan import Plan
from ivme.query.closures import closures_as_relations
from ivme.query.model import Column, Query, Table, check_head
from ivme.query.typed import TypedQuery, typed

_logger = logging.getLogger("ivme.planning")

_MOST_COLUMNS = 64
"""How many columns of one relation a view can read."""


@dataclass(frozen=True, slots=True)
class PlannedView:
    """A view with its plan, which is None for a closure; `table` is the view as others read it.

    `is_new` is whether it was planned now: else its plan is the stored one.
    """

    typed: TypedQuery
    explanation: Explanation
    plan: Plan | None
    table: Table
    graph: str
    ring: bool
    is_new: bool

    @property
    def name(self) -> str:
        return self.table.name

    def text(self) -> str:
        """The plan as it is stored."""
        return plan_text(self.explanation, self.plan)


def parse_view(
    name: str,
    query: str | Query,
    relations: tuple[Table, ...],
    options: Mapping[str, object],
    *,
    is_stored: bool = False,
) -> Query:
    """The query of a view; the names in one that is stored are not judged again."""
    parsed = as_asked(replace(parse(query, relations, is_stored=is_stored), name=name), options.get("semantics"))
    if not is_stored:
        check_head(parsed)
    return parsed


def plan_view(parsed: Query, options: Mapping[str, object], stored: str | None = None) -> PlannedView:
    """Types and plans a view; `stored` is the text of its plan, if it was planned before."""
    graph = read_options(options).graph
    ready = typed(closures_as_relations(parsed, graph))
    _check_width(ready.query)
    ring = options.get("semantics") == "ring"
    if ring and parsed.distinct:
        raise PlanError(f"view {parsed.name} is in ring mode, where multiplicities may be negative: drop the DISTINCT")
    old = None if stored is None else _read(ready.query, options, stored)
    explanation, plan = _planned(ready.query, options, old)
    is_new = old is None or explanation is not old.explanation
    columns = tuple(Column(c.name, t) for c, t in zip(parsed.head, ready.head, strict=True))
    grows = plan is not None and not ring and not parsed.aggregates and only_grows(parsed)
    table = Table(parsed.name, columns, append_only=grows)
    return PlannedView(ready, explanation, plan, table, graph, ring, is_new)


def _check_width(query: Query) -> None:
    """A table may have any number of columns, a map of the kernel has its limit."""
    for atom in query.atoms:
        if len(atom.variables) > _MOST_COLUMNS:
            raise PlanError(
                f"view {query.name} reads {len(atom.variables)} columns of {atom.relation}; a view can read "
                f"{_MOST_COLUMNS} of them: select those that are needed, or make several views"
            )


def _planned(query: Query, options: Mapping[str, object], old: StoredPlan | None) -> tuple[Explanation, Plan | None]:
    """The stored plan if the planner has not changed since, or if it has and finds no better one in its time."""
    if old is None:
        return compile_plan(query, **options)
    if old.is_current:
        return old.explanation, old.plan
    try:
        explanation, plan = compile_plan(query, **options)
    except PlanError as error:
        _logger.warning("view %s keeps the plan that it was stored with: %s", query.name, error)
        return old.explanation, old.plan
    if explanation.cut:
        _logger.warning("view %s keeps the plan that it was stored with: planning stopped early", query.name)
        return old.explanation, old.plan
    return explanation, plan


def _read(query: Query, options: Mapping[str, object], stored: str) -> StoredPlan | None:
    """The stored plan, if this version of ivme can use it; it has to be one for this very query."""
    try:
        found = read_plan(stored)
    except StorageError as error:
        _logger.warning("view %s is planned again: %s", query.name, error)
        return None
    if found.explanation.query != promised(query, **options):
        _logger.warning("view %s is planned again: its stored plan is for another query", query.name)
        return None
    return found


def plan_ring_view(parsed: Query, options: Mapping[str, object]) -> tuple[Explanation, Plan]:
    """A plan without heavy and light parts, which a ring view cannot have."""
    explanation, plan = compile_unchecked(parsed, **options)
    if plan is not None and plan.program.partitions and "strategy" not in options:
        explanation, plan = compile_unchecked(parsed, **{**options, "strategy": "view-tree"})
    if plan is None or plan.program.partitions:
        raise PlanError(f"view {parsed.name} cannot be maintained: {explanation.reason}")
    return explanation, plan
