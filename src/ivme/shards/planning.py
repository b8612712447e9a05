"""From a view's text to its routing: what shards cannot do is refused here, by name, and shares are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from ivme.compile import compile_plan
from ivme.errors import PlanError
from ivme.plan.explain.explanation import Explanation
from ivme.query.model import Query, Table
from ivme.query.shape import view_shape
from ivme.query.sql_script import named_relations
from ivme.query.typed import typed
from ivme.shards.block_key import BlockKey, block_keys
from ivme.shards.catalog import ShardCatalog, ViewEntry, ViewText
from ivme.shards.degrees import choose_routing, merged_degrees, routing_load
from ivme.shards.engine import Engine
from ivme.shards.exchange import can_feed, readers
from ivme.shards.functions import defined
from ivme.shards.hypercube import Pattern
from ivme.shards.routing import Routing
from ivme.shards.sharding import (
    is_gathered,
    is_one_row,
    is_whole,
    sharding,
    shareable,
    stored_key,
    whole_aggregates,
)
from ivme.shards.view_query import parse_view, view_as_table

Degrees = Callable[[ShardCatalog, str], list[list[dict[str, Any]]]]

_WHOLE_IS_WORTH = 1.25
"""A routing that keeps rows whole is taken if its fullest shard has at most this many times the rows."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A view with its routing; `rows` is how many rows its tables have now, the loads what its shards are to hold."""

    entry: ViewEntry
    rows: int
    load: float
    load_before: float


def check_view(entry: ViewEntry, catalog: ShardCatalog) -> None:
    """Plans a view as its shards will, to see whether they can: PlanError if not. Takes long for large queries."""
    if dict(entry.options).get("semantics") == "ring":
        raise PlanError(f"view {entry.name} has semantics='ring', which shards do not support; use ivme.Database")
    query = parse_view(entry, catalog.tables)
    _explained(_gathered(entry) if is_gathered(entry, query) else entry, catalog.tables)


def plan_view(
    entry: ViewEntry, catalog: ShardCatalog, degrees: Degrees, *, whole_rows: bool, may_be_fed: bool = True
) -> Planned:
    """Chooses the routing of a view that shards can maintain from the statistics of its tables.

    One on views may be fed by them from now on, if the shards that there are can tell their rows.
    """
    query = parse_view(entry, catalog.tables)
    if is_gathered(entry, query):
        planned = _by_key(entry, query, catalog.tables, whole_rows=whole_rows)
        is_spread = planned.routing.variables or entry.feeds
        fed = None if is_spread or not may_be_fed else _fed(entry, catalog)
        if fed is None:
            return Planned(planned, 1, 1.0, 1.0)
        spread = plan_view(fed, catalog, degrees, whole_rows=whole_rows)
        return spread if spread.entry.routing.variables else Planned(planned, 1, 1.0, 1.0)
    query = typed(query).query
    unrouted = replace(entry, routing=Routing(entry.routing.shards, (), ()))
    parts = degrees(catalog.with_view(unrouted), entry.name)
    found = [merged_degrees(shards) for shards in zip(*parts, strict=True)]
    routing = _routing(entry.name, query, found, entry.routing.shards, whole_rows=whole_rows)
    before = routing_load(query.atoms, found, entry.routing) if entry.routing.patterns else 0.0
    load = routing_load(query.atoms, found, routing)
    return Planned(replace(entry, routing=routing), sum(each["rows"] for each in found), load, before)


def _fed(entry: ViewEntry, catalog: ShardCatalog) -> ViewEntry | None:
    """A view on views that is fed by them; None if it reads none, or one whose changes no shard knows alone."""
    views = views_read(entry, catalog)
    if not views or not all(can_feed(view, catalog) for view in views):
        return None
    return replace(entry, feeds=tuple(view_as_table(view, catalog.tables) for view in views))


def views_read(entry: ViewEntry, catalog: ShardCatalog) -> list[ViewEntry]:
    """The views that a view's own text reads."""
    read = {table.name for table in parse_view(entry, catalog.tables).tables}
    return [view for view in catalog.views if view.name in read and view.name in {v.name for v in entry.beneath}]


def to_make_whole(entry: ViewEntry, catalog: ShardCatalog) -> list[ViewEntry]:
    """The views that have to be spread with whole groups, so that a view that no key spreads can be fed by them.

    None if that does not help.
    """
    query = parse_view(entry, catalog.tables)
    views = views_read(entry, catalog)
    parts = [view for view in views if not can_feed(view, catalog)]
    if query.has_closures or not parts or not all(_can_be_whole(view, catalog) for view in parts):
        return []
    is_keyed = is_gathered(entry, query) and _by_key(entry, query, catalog.tables, whole_rows=False).routing.variables
    return [] if is_keyed else parts


def _can_be_whole(entry: ViewEntry, catalog: ShardCatalog) -> bool:
    made = sharding(entry, catalog.tables)
    return made.gathered is None and bool(made.query.output) and not made.query.input


def keeps_whole(entry: ViewEntry, catalog: ShardCatalog) -> bool:
    """Whether a view that is redistributed must have each row or group in one shard again."""
    made = sharding(entry, catalog.tables)
    if made.is_cut or is_one_row(made):
        return False
    feeds_groups = entry.name in readers(catalog) and bool(made.query.aggregates or made.query.distinct)
    is_chosen = entry.name in readers(catalog) and made.gathered is not None
    return feeds_groups or is_chosen or (is_whole(made) and bool(entry.routing.variables))


def planned_for(catalog: ShardCatalog, shards: int, degrees: Degrees) -> ShardCatalog:
    """The catalog with all views spread over another number of shards."""
    found = catalog
    for entry in catalog.views:
        whole = keeps_whole(entry, catalog)
        unrouted = replace(entry, routing=Routing(shards, (), ()), generation=entry.generation + 1)
        found = found.with_view(plan_view(unrouted, found, degrees, whole_rows=whole, may_be_fed=False).entry)
    return found


def _gathered(entry: ViewEntry) -> ViewEntry:
    """A view in one cell of one shard, which its name chooses, so that several such views are in several shards."""
    shards = entry.routing.shards
    home = int.from_bytes(blake2b(entry.name.encode(), digest_size=8).digest(), "big") % shards
    return replace(entry, routing=Routing(shards, (), (Pattern(frozenset(), (), home),)))


def _by_key(entry: ViewEntry, query: Query, tables: tuple[Table, ...], *, whole_rows: bool) -> ViewEntry:
    """A view of several blocks, or on other views, spread by a key that all blocks have; in one shard without one."""
    key = key_of(entry, query, tables, whole_rows=whole_rows)
    if key is None:
        return _gathered(entry)
    shares, shards = ((key.variable, entry.routing.shards),), entry.routing.shards
    return replace(entry, routing=Routing(shards, (), (Pattern(frozenset(), shares, 0),)))


def key_of(entry: ViewEntry, query: Query, tables: tuple[Table, ...], *, whole_rows: bool) -> BlockKey | None:
    """The key by which a view of several blocks is spread; with `whole_rows` one under which nothing is merged.

    Equal rows of a view are then in one shard; of one that only feeds others they need not be.
    """
    found = block_keys(entry, query, tables)
    only_feeds = bool(entry.part_of)
    return next((key for key in found if key.column or not whole_rows or (only_feeds and key.is_whole)), None)


def views_beneath(entry: ViewEntry, catalog: ShardCatalog) -> tuple[ViewText, ...]:
    """The views that a view reads, and those that they read, in the order in which they were made."""
    views = tuple(view_as_table(view, catalog.tables) for view in catalog.shown)
    query = view_shape(entry.text, (*catalog.tables, *views), entry.name, defined(entry.functions))
    named = named_relations(entry.text, defined(entry.functions)) | {table.name.lower() for table in query.tables}
    needed = {
        name for view in catalog.shown if view.name.lower() in named for name in (view.name, *_names(view.beneath))
    }
    return tuple(ViewText(v.name, v.text, v.options, v.functions) for v in catalog.shown if v.name in needed)


def _names(views: Iterable[ViewText]) -> list[str]:
    return [view.name for view in views]


def _routing(name: str, query: Query, found: Sequence[dict[str, Any]], shards: int, *, whole_rows: bool) -> Routing:
    def chosen(*, whole: bool) -> Routing:
        return choose_routing(query.atoms, found, shareable(query, whole=whole), shards)

    if whole_rows:
        if not query.free:
            raise PlanError(f"view {name} has one row, which cannot be whole in several shards; leave out whole_rows")
        return chosen(whole=True)
    best = chosen(whole=False)
    if (query.aggregates or query.distinct) and query.free:
        whole = chosen(whole=True)
        loads = [routing_load(query.atoms, found, routing) for routing in (whole, best)]
        return whole if loads[0] <= _WHOLE_IS_WORTH * loads[1] else best
    return best


def _explained(entry: ViewEntry, tables: tuple[Table, ...]) -> Explanation:
    """What each shard does for a view; PlanError if no strategy maintains it."""
    if entry.block is not None:
        return _explained(_gathered(entry.whole()), tables)
    made = sharding(entry, tables)
    if made.gathered is not None:
        engine = Engine.of_view(made)
        engine.complete(followed=False)
        return engine.explain()
    explanation, plan = compile_plan(made.engine_query(), **made.engine_options())
    if plan is None:
        raise PlanError(f"view {entry.name} cannot be maintained: {explanation.reason}")
    return explanation


def explain_view(entry: ViewEntry, catalog: ShardCatalog) -> Explanation:
    """The explanation of what each shard runs, with notes on how its rows, and those of its parts, are spread."""
    explained = _explained(entry, catalog.tables)
    parts = [view for view in catalog.views if view.part_of == entry.name]
    notes = [f"{part.name}: {note}" for part in parts for note in spread_notes(part, catalog.tables)]
    return replace(explained, remarks=(*explained.remarks, *spread_notes(entry, catalog.tables), *notes))


def spread_notes(entry: ViewEntry, tables: tuple[Table, ...]) -> tuple[str, ...]:
    """How the rows of a view are spread over shards, or why they are in one."""
    made = sharding(entry, tables)
    if made.gathered is None:
        return (*routing_notes(entry), *fed_notes(entry))
    query = parse_view(entry, tables)
    key = stored_key(entry, query, tables)
    return gathered_notes(entry, query) if key is None else (*keyed_notes(entry, key), *fed_notes(entry))


def fed_notes(entry: ViewEntry) -> tuple[str, ...]:
    """Where the rows of a view on views come from."""
    names = ", ".join(feed.name for feed in entry.feeds)
    notes = [f"fed by {names}: shards send each other what changes there, within the step"] if names else []
    if entry.everywhere:
        notes.append(f"each shard has all rows of {', '.join(entry.everywhere)}")
    return tuple(notes)


def keyed_notes(entry: ViewEntry, key: BlockKey) -> tuple[str, ...]:
    """By what a view of several blocks is spread."""
    columns = ", ".join(dict.fromkeys(f"{relation}.{column}" for _, relation, column in key.places if column))
    by = f"{key.column} ({columns})" if key.column else columns
    merged = "" if key.last is None else "; its rows are merged from those of the shards where it is read"
    if key.order is not None:
        first = "the first rows" if key.order.limit is None else f"the first {key.order.from_start().limit} rows"
        merged = f"; {first} of each shard are put in order where it is read"
    return (
        f"over {entry.routing.shards} shards by {by}: all its blocks have this key, so that each shard computes the "
        f"whole view for its own keys{merged}",
    )


def why_gathered(entry: ViewEntry, query: Query) -> str:
    """What a view has that cannot be spread."""
    if query.has_closures:
        return "the paths of a closure go through all rows"
    if whole_aggregates(query) and not query.free:
        return f"{', '.join(map(str, whole_aggregates(query)))} of all rows does not add up over shards"
    if not query.free and not shareable(query, whole=False):
        return "different COUNT(DISTINCT) of all rows do not add up over shards"
    if entry.members:
        return "no column is a key of the blocks that it is made of"
    what = "it reads other views that cannot feed it" if entry.beneath else "it has several blocks"
    return f"{what}, and no column is a key of all that it is made of"


def gathered_notes(entry: ViewEntry, query: Query) -> tuple[str, ...]:
    """Where a gathered view is, and why."""
    (pattern,) = entry.routing.patterns
    beneath = ", ".join(view.name for view in entry.beneath if not entry.feeds)
    reason = why_gathered(entry, query)
    fed = ", ".join(feed.name for feed in entry.feeds)
    kept = f"with all rows of its tables{f' and the views {beneath} beneath it' if beneath else ''}"
    kept = f"with all rows of {fed}, which feed it, and of its tables" if fed else kept
    return (
        f"in shard {pattern.first} of {entry.routing.shards} alone, in an engine of its own {kept}: {reason}, so that "
        "it cannot be spread",
    )


def routing_notes(entry: ViewEntry) -> tuple[str, ...]:
    """How the rows of a view are spread, a line for each pattern."""
    notes = []
    for pattern in entry.routing.patterns:
        shares = " x ".join(f"{variable}: {share}" for variable, share in pattern.shares) or "one cell"
        heavy = f"where {', '.join(sorted(pattern.heavy))} is heavy, " if pattern.heavy else ""
        notes.append(f"over {entry.routing.shards} shards: {heavy}{shares}")
    return tuple(notes)
