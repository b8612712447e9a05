"""Views that feed views: what changes in one is sent to the shards where another wants it, within the step.

A view that is fed has engines like any other, with the rows of the views that it reads in place of tables. A step goes
up in rounds: views that read tables only are in the first one, and a view that is fed is in the round after the last of
those that feed it. At the end of a round, each shard puts the changes of its rows to the shards of the next ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from ivme.shards.catalog import ShardCatalog, ViewEntry
from ivme.shards.distribute import Placed, place_in_view
from ivme.shards.parts import Part
from ivme.shards.sharding import is_one_row, needs_merging, sharding

Told = tuple[str, pa.Table]
"""A view, and how its rows changed, with the weights as last column."""


def readers(catalog: ShardCatalog) -> dict[str, list[ViewEntry]]:
    """By view, those that it feeds."""
    found: dict[str, list[ViewEntry]] = {}
    for view in catalog.views:
        for feed in view.feeds:
            found.setdefault(feed.name, []).append(view)
    return found


def rounds_of(catalog: ShardCatalog) -> dict[str, int]:
    """By view, the round in which it is computed. Views come after those that feed them."""
    found: dict[str, int] = {}
    for view in catalog.views:
        found[view.name] = 1 + max((found[feed.name] for feed in view.feeds), default=-1)
    return found


def last_round(catalog: ShardCatalog) -> int:
    return max(rounds_of(catalog).values(), default=0)


def placed_changes(catalog: ShardCatalog, told: Iterable[Told]) -> Iterator[Placed]:
    """The parts of changes for the engines of the views that they feed."""
    fed = readers(catalog)
    for name, change in told:
        for reader in fed.get(name, ()):
            yield from placed_in(catalog, reader, [(name, change)])


def placed_in(catalog: ShardCatalog, reader: ViewEntry, told: Iterable[Told]) -> Iterator[Placed]:
    """The parts of changes for the engines of one view that they feed."""
    feeds = {feed.name: feed for feed in reader.feeds}
    for name, change in told:
        yield from place_in_view(catalog, reader, feeds[name], change)


def can_feed(entry: ViewEntry, catalog: ShardCatalog) -> bool:
    """Whether changes of a view's rows are told by the shards that have them, now and after any new spreading.

    Those of one row, and of the first rows in an order, are few: the driver merges them.
    """
    made = sharding(entry, catalog.tables)
    is_told = not needs_merging(made) or made.is_cut or is_one_row(made)
    return is_told and not made.query.input


def is_merged(name: str, catalog: ShardCatalog) -> bool:
    """Whether the driver tells what changes in a view."""
    return needs_merging(sharding(catalog.view(name), catalog.tables))


def due(parts: Iterable[Part], catalog: ShardCatalog, number: int) -> tuple[list[Part], list[Part]]:
    """Of some parts those of rounds up to this one, and the others; engines of tables are in the first round."""
    rounds, now, later = rounds_of(catalog), list[Part](), list[Part]()
    for part in parts:
        is_due = part.engine.is_table or rounds[part.engine.name] <= number
        (now if is_due else later).append(part)
    return now, later
