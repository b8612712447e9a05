"""Views that feed views: what changes in one is sent to the shards where another wants it, within the step.

A view that is fed has engines like any other, with the rows of the views that it reads in place of tables. A step goes
up in rounds: views that read tables only are in the first one, and a view that is fed is in the round after the last of
those that feed it. At the end of a round, each shard puts the changes of its rows to the shards of the next ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from ivme.query.model import Table
from ivme.shards.catalog import ShardCatalog, ViewEntry
from ivme.shards.distribute import Placed, place_in_view
from ivme.shards.parts import Part
from ivme.shards.sharding import needs_merging, sharding

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
            yield from place_in_view(catalog, reader, _feed(reader, name), change)


def _feed(reader: ViewEntry, name: str) -> Table:
    return next(feed for feed in reader.feeds if feed.name == name)


def can_feed(entry: ViewEntry, catalog: ShardCatalog) -> bool:
    """Whether changes of a view's rows are told by the shards that have them, now and after any new spreading."""
    made = sharding(entry, catalog.tables)
    is_one_row = bool(made.query.aggregates) and not made.query.free and made.gathered is None
    return not needs_merging(made) and not made.query.input and not is_one_row


def due(parts: Iterable[Part], catalog: ShardCatalog, number: int) -> tuple[list[Part], list[Part]]:
    """Of some parts those of rounds up to this one, and the others; engines of tables are in the first round."""
    rounds, now, later = rounds_of(catalog), list[Part](), list[Part]()
    for part in parts:
        is_due = part.engine.is_table or rounds[part.engine.name] <= number
        (now if is_due else later).append(part)
    return now, later
