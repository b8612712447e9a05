"""Plans that engines of this process share: those of one view have the same tables, and so the same plan.

A host has several shards, a shard that restarts or changes its layout builds its views again, and each engine would
plan for itself. Plans are kept as texts, as beside a stored view, and one is used for the very query that it was made
for: see `ivme.planning.recalled`. Tables that have grown by so many powers of two are planned for again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any

from ivme.database import Database
from ivme.query.model import Query
from ivme.query.read_select import ReadSelect
from ivme.query.sql_text import DIALECT
from ivme.view import View

_MOST_PLANS = 512
"""How many plans are kept, of some kilobytes each; those that were used last."""

_GROWTH_BITS = 4

_plans: OrderedDict[Hashable, str] = OrderedDict()
_lock = threading.Lock()


def create_view(database: Database, name: str, query: str | ReadSelect | Query, options: Mapping[str, Any]) -> View:
    """Creates a view in an engine's database, by a plan that another engine has made if there is one."""
    given: Any = query
    if "dialect" in options:
        return database.create_view(name, given, **options)
    key = _key(database, name, query, options)
    with _lock:
        stored = _plans.get(key)
        if stored is not None:
            _plans.move_to_end(key)

    def keep(text: str) -> None:
        with _lock:
            _plans[key] = text
            while len(_plans) > _MOST_PLANS:
                _plans.popitem(last=False)

    return database.definitions.create_view(name, given, options, stored, keep)


def _key(database: Database, name: str, query: str | ReadSelect | Query, options: Mapping[str, Any]) -> Hashable:
    """What a plan depends on: the text, its options, and the tables with their sizes."""
    text: Hashable = query
    if isinstance(query, ReadSelect):
        text = query.node.sql(dialect=DIALECT), query.shown, query.from_start
    runtime = database.definitions.runtime
    with runtime.lock:
        tables = [(state.table, runtime.backend.size(state.rows)) for state in runtime.catalog.tables.values()]
    sizes = tuple((table, size.bit_length() // _GROWTH_BITS) for table, size in tables)
    return name, text, repr(sorted(options.items())), sizes, tuple(database.views)
