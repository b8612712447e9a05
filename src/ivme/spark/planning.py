"""From a view's text to its routing: what shards cannot do is refused here, by name, and shares are chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ivme.compile import compile_plan
from ivme.engine.typed import typed
from ivme.errors import PlanError
from ivme.plan.explain import Explanation
from ivme.query.model import Column, Query, Table
from ivme.spark.catalog import Catalog, ViewEntry
from ivme.spark.degrees import choose_routing, merged_degrees, routing_load
from ivme.spark.routing import Routing
from ivme.spark.sharding import parse_view, sharding, shareable

Degrees = Callable[[Catalog, str], list[list[dict[str, Any]]]]

_WHOLE_IS_WORTH = 1.25
"""A routing that keeps rows whole is taken if its fullest shard has at most this many times the rows."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A view with its routing; `rows` is how many rows its tables have now, the loads what its shards are to hold."""

    entry: ViewEntry
    rows: int
    load: float
    load_before: float


def plan_view(entry: ViewEntry, catalog: Catalog, degrees: Degrees, *, whole_rows: bool) -> Planned:
    """Checks a view, and chooses its routing from the statistics of its tables."""
    query = _checked(entry, catalog)
    _explained(entry, catalog.tables)
    unrouted = replace(entry, routing=Routing(entry.routing.shards, (), ()))
    parts = degrees(catalog.with_view(unrouted), entry.name)
    found = [merged_degrees(shards) for shards in zip(*parts, strict=True)]
    routing = _routing(entry.name, query, found, entry.routing.shards, whole_rows=whole_rows)
    before = routing_load(query.atoms, found, entry.routing) if entry.routing.patterns else 0.0
    load = routing_load(query.atoms, found, routing)
    return Planned(replace(entry, routing=routing), sum(each["rows"] for each in found), load, before)


def _checked(entry: ViewEntry, catalog: Catalog) -> Query:
    """The typed query of a view; views on views, closures and rings are refused."""
    views = tuple(_as_table(view, catalog) for view in catalog.views if view.name != entry.name)
    query = parse_view(entry.name, entry.text, (*catalog.tables, *views))
    for atom in query.atoms:
        if atom.relation in {view.name for view in views}:
            raise PlanError(
                f"view {entry.name} is built on view {atom.relation}; views over sharded views are not supported: "
                "write it over the tables"
            )
    if dict(entry.options).get("semantics") == "ring":
        raise PlanError(f"view {entry.name} has semantics='ring', which shards do not support; use ivme.Database")
    return typed(query).query


def _as_table(view: ViewEntry, catalog: Catalog) -> Table:
    made = sharding(view, catalog.tables)
    heads = zip(made.query.head, made.typed.head, strict=True)
    return Table(view.name, tuple(Column(column.name, type_) for column, type_ in heads))


def _routing(name: str, query: Query, found: Sequence[dict[str, Any]], shards: int, *, whole_rows: bool) -> Routing:
    def chosen(*, whole: bool) -> Routing:
        return choose_routing(query.atoms, found, shareable(query, whole=whole), shards)

    if whole_rows:
        if not query.free:
            raise PlanError(f"view {name} has one row, which cannot be whole in several shards; leave out whole_rows")
        return chosen(whole=True)
    if not shareable(query, whole=False):
        counted = ", ".join(str(a) for a in query.aggregates if a.function == "count_distinct")
        raise PlanError(f"{counted} of view {name} do not add up over shards; make a view for each of them")
    best = chosen(whole=False)
    if (query.aggregates or query.distinct) and query.free:
        whole = chosen(whole=True)
        loads = [routing_load(query.atoms, found, routing) for routing in (whole, best)]
        return whole if loads[0] <= _WHOLE_IS_WORTH * loads[1] else best
    return best


def _explained(entry: ViewEntry, tables: tuple[Table, ...]) -> Explanation:
    """What each shard does for a view; PlanError if no strategy maintains it."""
    made = sharding(entry, tables)
    explanation, plan = compile_plan(typed(made.engine_query()).query, **made.engine_options())
    if plan is None:
        raise PlanError(f"view {entry.name} cannot be maintained: {explanation.reason}")
    return explanation


def explain_view(entry: ViewEntry, tables: tuple[Table, ...]) -> Explanation:
    """The explanation of what each shard runs, with a note on how rows are spread."""
    return replace(_explained(entry, tables), notes=(*_explained(entry, tables).notes, *routing_notes(entry)))


def routing_notes(entry: ViewEntry) -> tuple[str, ...]:
    """How the rows of a view are spread, a line for each pattern."""
    notes = []
    for pattern in entry.routing.patterns:
        shares = " x ".join(f"{variable}: {share}" for variable, share in pattern.shares) or "one cell"
        heavy = f"where {', '.join(sorted(pattern.heavy))} is heavy, " if pattern.heavy else ""
        notes.append(f"over {entry.routing.shards} shards: {heavy}{shares}")
    return tuple(notes)
