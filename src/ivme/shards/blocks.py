"""The blocks of one SELECT as views of their own, which feed each other: each is spread as it likes.

A view whose blocks have a key in common is spread by that (`common_key`), and no rows go from shard to shard. Without
one, a block's changes are sent to the shards where the next one wants them, as those of a view that others read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ivme.query.block_names import block_name
from ivme.query.model import Column, Query, Table
from ivme.query.names import CLOCK
from ivme.query.sql_script import named_relations, read_script
from ivme.query.typed import typed
from ivme.shards.catalog import ShardCatalog, ViewEntry
from ivme.shards.exchange import can_feed
from ivme.shards.functions import defined
from ivme.shards.planning import Degrees, Planned, plan_view, views_read
from ivme.shards.view_query import view_as_table


def planned_views(
    entry: ViewEntry, catalog: Callable[[], ShardCatalog], degrees: Degrees, *, whole_rows: bool
) -> Iterator[Planned]:
    """A view with its routing, or its blocks: each is to be in the catalog before the next one is asked for."""
    planned = plan_view(entry, catalog(), degrees, whole_rows=whole_rows)
    blocks = [] if planned.entry.routing.variables else blocks_of(entry, catalog())
    if not blocks:
        yield planned
    for block in blocks:
        yield plan_view(block, catalog(), degrees, whole_rows=bool(block.part_of) or whole_rows)


def blocks_of(entry: ViewEntry, catalog: ShardCatalog) -> list[ViewEntry]:
    """The blocks of a view that no key spreads, as views that feed each other; the last is the view.

    Empty if one of them cannot be apart: it is a union or an order, reads a closure, the clock or a view that cannot
    feed it, or is one row for all.
    """
    views = views_read(entry, catalog)
    if entry.options or entry.routing.shards < 2 or not all(can_feed(view, catalog) for view in views):
        return []
    named = named_relations(entry.text, defined(entry.functions))
    if any(view.name.lower() in named and view not in views for view in catalog.views):
        return []  # a name of a WITH, or in one that nothing reads
    above = tuple(view_as_table(view, catalog.tables) for view in views)
    script = read_script(entry.text, (*catalog.tables, *above), defined(entry.functions))
    if len(script) == 1 or script.order is not None or script.ordered:
        return []
    names, known, found = dict[str, str](), dict[str, Table](), list[ViewEntry]()
    for number, (block, _) in enumerate(script.selects):
        is_last = number == len(script) - 1
        name = entry.name if is_last else block_name(entry.name, number + 1)
        made = script.block(number, (*catalog.tables, *above, *known.values()), names, name)
        if not isinstance(made, Query) or not _can_be_apart(made, is_last=is_last):
            return []
        feeds = tuple(known[table.name] for table in made.tables if table.name in known)
        part_of = "" if is_last else entry.name
        found.append(replace(entry, name=name, feeds=(*above, *feeds), block=number, part_of=part_of))
        names[block] = name
        known[name] = Table(name, tuple(Column(c.name, t) for c, t in zip(made.head, typed(made).head, strict=True)))
    taken = {table.name.lower() for table in catalog.tables} | {view.name.lower() for view in catalog.views}
    return [] if taken & {each.name.lower() for each in found[:-1]} else found


def _can_be_apart(block: Query, *, is_last: bool) -> bool:
    """Whether a block can be spread as a view of its own, and those but the last feed others."""
    if block.has_closures or any(table.name == CLOCK for table in block.tables):
        return False
    return bool(block.free) and (is_last or (bool(block.output) and not block.input))
