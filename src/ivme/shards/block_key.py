"""The keys by which a view of several blocks, or on other views, can be spread, as its shards need to know them.

First its texts are looked at as they are. If they have no key, each place that reads a table is looked at as a table of
its own (`split_tables`): one table may be read by two columns. Places of one table with one column share its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ivme.query.model import Query, Table
from ivme.query.names import CLOCK
from ivme.query.order import Order
from ivme.query.parse import is_sql
from ivme.shards.catalog import ViewEntry, ViewText
from ivme.shards.common_key import CommonKey, Level, common_keys, last_block
from ivme.shards.functions import defined
from ivme.shards.split_tables import renamed_text, tables_read
from ivme.shards.view_query import known_to, rests_on, source_of

HIDDEN_KEY = "#key"
"""The variable that stands for a key that the view does not show. No query has one of that name."""

_ABOUT_TABLES = {"append_only", "static", "epsilon", "changes"}
"""The options of views that name tables."""

Names = tuple[tuple[str, ...], ...]
"""For each text the names of the tables that it reads, place by place."""


@dataclass(frozen=True, slots=True)
class BlockKey:
    """A key: the column of the view that shows it, "" if it is hidden, and the variable that stands for it.

    `places` has the engine's tables, the tables whose rows they have, and the columns by which these are routed, "" for
    the clock, which all shards have;
    `names` those of the engine's tables in each text, None if texts stay as they are; `last` the block whose rows or
    groups are merged from those of shards, None if rows of shards are rows of the view; `order` the one in which these
    are put together.
    """

    column: str
    variable: str
    places: tuple[tuple[str, str, str], ...]
    names: Names | None = None
    last: Query | None = None
    order: Order | None = None

    @property
    def is_whole(self) -> bool:
        """Whether rows of shards are rows of the view."""
        return self.last is None and self.order is None


def block_keys(entry: ViewEntry, query: Query, tables: tuple[Table, ...]) -> Iterator[BlockKey]:
    """All keys, the ones to prefer first: those that the view shows, and texts as they are."""
    read = rests_on(entry, query, tables)
    if not read:
        return
    everywhere = frozenset((CLOCK, *entry.everywhere))
    copied = tuple((table.name, table.name, "") for table in read if table.name in everywhere)
    for key in _keys(entry, query, tables, read, everywhere):
        yield replace(key, places=(*key.places, *copied))


def _keys(
    entry: ViewEntry, query: Query, tables: tuple[Table, ...], read: Sequence[Table], everywhere: frozenset[str]
) -> Iterator[BlockKey]:
    views, tables = known_to(entry, tables), (*tables, *entry.feeds)
    spread = tuple(table for table in tables if table.name not in everywhere)
    plain = [_of_plain(key) for key in common_keys([_level(view, seen) for view, seen in views], read, everywhere)]
    yield from (_named(key, query, views, spread) for key in plain if key.column)
    split = _Split.of(views, spread, everywhere)
    wide = [] if split is None else list(split.keys())
    yield from (_named(key, query, views, spread) for key in wide if key.column)
    yield from (_named(key, query, views, spread) for key in (*plain, *wide) if not key.column)


def _of_plain(key: CommonKey) -> BlockKey:
    places = tuple((table, table, column) for table, column in key.origins)
    return BlockKey(key.column, HIDDEN_KEY, places, order=key.order)


def _named(
    key: BlockKey,
    query: Query,
    views: Sequence[tuple[ViewEntry | ViewText, tuple[Table, ...]]],
    tables: tuple[Table, ...],
) -> BlockKey:
    """The key with its variable, and with the block that is merged, if one is."""
    if key.column:
        return replace(key, variable=next(str(each.source) for each in query.head if each.name == key.column))
    if key.order is not None:
        return key
    names = key.names or (None,) * len(views)
    declared = {table.name: table for table in tables}
    own = tuple(replace(declared[relation], name=name) for name, relation, _ in key.places)
    view, seen = views[-1]
    others = tuple(each for each in seen if each.name not in {table.name for table in own})
    source = renamed_text(source_of(view, seen), names[-1], tables, defined(view.functions))
    last = last_block(replace(_level(view, seen), source=source, seen=(*others, *own)))
    return replace(key, last=last) if last.aggregates or last.distinct else key


def _level(view: ViewEntry | ViewText, seen: tuple[Table, ...]) -> Level:
    meaning = bool({"semantics", "graph"} & dict(view.options).keys())
    return Level(view.name, source_of(view, seen), seen, defined(view.functions), meaning)


@dataclass(frozen=True, slots=True)
class _Split:
    """Texts in which each place that reads a table reads a table of its own."""

    views: Sequence[tuple[ViewEntry | ViewText, tuple[Table, ...]]]
    tables: tuple[Table, ...]
    relations: tuple[tuple[str, ...], ...]
    everywhere: frozenset[str]

    @staticmethod
    def of(
        views: Sequence[tuple[ViewEntry | ViewText, tuple[Table, ...]]],
        tables: tuple[Table, ...],
        everywhere: frozenset[str],
    ) -> _Split | None:
        """None if the texts cannot be split, or nothing is gained by it."""
        texts = [view for view, _ in views]
        if any(not is_sql(view.text) or _ABOUT_TABLES & dict(view.options).keys() for view in texts):
            return None
        sources = [(source_of(view, seen), defined(view.functions)) for view, seen in views]
        relations = tuple(tables_read(source, tables, called) for source, called in sources)
        listed = [relation for each in relations for relation in each]
        return _Split(views, tables, relations, everywhere) if len(set(listed)) < len(listed) else None

    def keys(self) -> Iterator[BlockKey]:
        numbers, names = dict[str, int](), list[tuple[str, ...]]()
        whose: dict[str, str] = {}
        for listed in self.relations:
            own = []
            for relation in listed:
                numbers[relation] = numbers.get(relation, 0) + 1
                own.append(f"{relation}~{numbers[relation]}")
                whose[own[-1]] = relation
            names.append(tuple(own))
        declared = {table.name: table for table in self.tables}
        places = tuple(replace(declared[relation], name=name) for name, relation in whose.items())
        levels = []
        for (view, seen), own_names in zip(self.views, names, strict=True):
            source = renamed_text(source_of(view, seen), own_names, self.tables, defined(view.functions))
            levels.append(replace(_level(view, (*seen, *places)), source=source))
        return (self._shared(key, names, whose) for key in common_keys(levels, places, self.everywhere))

    def _shared(self, key: CommonKey, names: Sequence[tuple[str, ...]], whose: dict[str, str]) -> BlockKey:
        """The key with one table for all places of a relation that have the same column."""
        shared: dict[tuple[str, str], str] = {}
        called: dict[str, str] = {}
        for place, column in sorted(key.origins, key=lambda each: _number(each[0])):
            relation = whose[place]
            count = sum(1 for other, _ in shared if other == relation)
            called[place] = shared.setdefault((relation, column), f"{relation}~{count + 1}" if count else relation)
        found = tuple((name, relation, column) for (relation, column), name in shared.items())
        called_so = tuple(tuple(called[each] for each in own) for own in names)
        return BlockKey(key.column, HIDDEN_KEY, found, called_so, order=key.order)


def _number(place: str) -> tuple[str, int]:
    relation, _, number = place.rpartition("~")
    return relation, int(number)
