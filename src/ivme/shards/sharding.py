"""A view as its shards run it: which rows of which tables reach an engine, and the query that the engine maintains.

Occurrences of a table in a self-join may be routed differently, so that each becomes a table of its own in the shards;
those that are routed alike share one. With aggregates the engines keep partial rows: each group's key, its count, and
what its aggregates add up from.

A closure's paths go through all shards, the rows of a view that reads another are in its shards and not in those of
the tables, and a median of all rows does not follow from parts. Such a view is *gathered*: one engine of one shard has
all rows of the tables that it rests on, the views beneath it, and the view itself. Where all blocks of such a view have
a key in common (`common_key`), each shard has such an engine with the rows of its keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ivme.errors import PlanError
from ivme.query.expression import ColumnRef
from ivme.query.failures import with_failing_rows
from ivme.query.model import Aggregate, Atom, HeadColumn, Query, Table
from ivme.query.order import Order
from ivme.query.read_select import ReadSelect
from ivme.query.shape import is_shape
from ivme.query.sql_script import named_relations
from ivme.query.typed import TypedQuery, typed
from ivme.shards.block_key import BlockKey, block_keys
from ivme.shards.catalog import ViewEntry, ViewText
from ivme.shards.functions import NamedFunction, defined
from ivme.shards.hashing import hash_rows
from ivme.shards.routing import Numbers, Routing, kept_rows, places, variable_hashes
from ivme.shards.split_tables import renamed_text
from ivme.shards.view_query import parse_view, rests_on, source_of


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Rows of a relation as one or more atoms want them; `table` is the name that engines know them by."""

    table: str
    relation: str
    atom: Atom
    identity: str


@dataclass(frozen=True, slots=True)
class Sharding:
    """A view over typed tables, its routing, its occurrences, and the query of its engines.

    `atoms` are the names of the engines' tables, atom by atom. `gathered` is the view's own text, if it is gathered,
    and `beneath` are then the views that its engine needs for it. `functions` are those that the engine's views call,
    `unread` tables that texts name in a WITH that nothing reads: the engine has them, without rows. `names` are
    those of the engine's tables for each text, place by place, if it has some of them several times, without those
    `everywhere`. `merged` says that of several blocks, the last one's rows or groups have parts in several shards.
    """

    name: str
    typed: TypedQuery
    routing: Routing
    occurrences: tuple[Occurrence, ...]
    atoms: tuple[str, ...]
    partial: tuple[HeadColumn, ...]
    options: tuple[tuple[str, Any], ...]
    tables: tuple[Table, ...]
    beneath: tuple[ViewText, ...] = ()
    gathered: str | ReadSelect | None = None
    functions: tuple[NamedFunction, ...] = ()
    unread: tuple[Table, ...] = ()
    names: tuple[tuple[str, ...], ...] | None = None
    merged: bool = False
    everywhere: tuple[str, ...] = ()
    fed: frozenset[str] = frozenset()
    """The views that feed this one."""
    order: Order | None = None
    """That of the view's rows, in which the first rows of shards are put together."""
    identified_by: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """See `ViewEntry`."""

    @property
    def is_cut(self) -> bool:
        """Whether the view shows some of the first rows of its shards."""
        return self.order is not None and not self.order.is_whole

    @property
    def query(self) -> Query:
        return self.typed.query

    @property
    def has_partial_rows(self) -> bool:
        """Whether the rows of engines are partial rows, and not rows of the view."""
        return bool(self.query.aggregates) and (self.gathered is None or self.merged)

    @property
    def relations(self) -> tuple[str, ...]:
        """The tables whose rows the view's engines have."""
        return tuple(dict.fromkeys(occurrence.relation for occurrence in self.occurrences))

    @property
    def needed(self) -> tuple[str, ...]:
        """The tables without which the view cannot be made."""
        return (*self.relations, *(table.name for table in self.unread))

    def table(self, relation: str) -> Table:
        """What is declared of a table, or known of a view that feeds this one."""
        return next(table for table in self.tables if table.name == relation)

    def engine_tables(self) -> tuple[Table, ...]:
        """The tables that an engine has."""
        return (*(replace(self.table(o.relation), name=o.table) for o in self.occurrences), *self.unread)

    def engine_query(self) -> Query:
        """The view over the engine's tables, with partial rows if it has aggregates; of several blocks the last one."""
        if self.gathered is not None:
            return replace(self.query, head=self.partial)
        atoms = tuple(replace(atom, relation=name) for atom, name in zip(self.query.atoms, self.atoms, strict=True))
        made = replace(self.query, atoms=atoms, tables=self.engine_tables(), head=self.partial)
        return replace(made, text=str(made))

    def engine_options(self) -> dict[str, Any]:
        """The options of the view, with the engine's names of tables, which are the tables' own if it is gathered."""
        if self.gathered is not None:
            return dict(self.options)
        return {name: self._renamed(name, value) for name, value in self.options}

    def engine_views(self) -> Iterator[tuple[str, str | ReadSelect | Query, dict[str, Any]]]:
        """The views that an engine has, with their options: those beneath the view, and itself."""
        if self.gathered is None:
            yield self.name, self.engine_query(), self.engine_options()
            return
        names = self.names or (None,) * (len(self.beneath) + 1)
        tables = tuple(table for table in self.tables if table.name not in self.everywhere)
        for view, given in zip(self.beneath, names, strict=False):
            yield view.name, renamed_text(view.text, given, tables, defined(view.functions)), dict(view.options)
        shown = self.partial if self.has_partial_rows else None
        called = defined(self.functions)
        own = renamed_text(self.gathered, names[-1], tables, called, shown, from_start=self.is_cut)
        yield self.name, own, self.engine_options()

    def _renamed(self, option: str, value: Any) -> Any:
        if option in ("append_only", "static"):
            wanted = {name.lower() for name in value}
            return tuple(o.table for o in self.occurrences if o.relation.lower() in wanted)
        if option in ("epsilon", "changes") and isinstance(value, tuple):
            by_name = {name.lower(): number for name, number in value}
            found = {o.table: by_name.get(o.relation.lower()) for o in self.occurrences}
            return {name: number for name, number in found.items() if number is not None}
        return value

    def route(self, relation: str, data: pa.Table) -> Iterator[tuple[int, int, str, Numbers]]:
        """Pattern, shard, the engine's table and the numbers of the rows for it; linear in rows and copies."""
        for occurrence in self.occurrences:
            if occurrence.relation != relation:
                continue
            kept, rows = kept_rows(occurrence.atom, data)
            for pattern, shard, numbers in self._places(occurrence, rows):
                yield pattern, shard, occurrence.table, numbers if kept is None else kept[numbers]

    def _places(self, occurrence: Occurrence, rows: pa.Table) -> Iterator[tuple[int, int, Numbers]]:
        table, wanted = self.table(occurrence.relation), self.routing.variables
        for chosen, hashes in variable_hashes(occurrence.atom, table, rows, wanted):
            part = rows if chosen is None else rows.take(pa.array(chosen))
            if occurrence.identity in wanted:
                columns = dict(self.identified_by).get(table.name, table.column_names)
                hashes[occurrence.identity] = hash_rows(part.select(list(columns)).columns, part.num_rows)
            for pattern, shard, numbers in places(self.routing, hashes, part.num_rows):
                yield pattern, shard, numbers if chosen is None else chosen[numbers]


def row_identities(atoms: Sequence[Atom]) -> list[str]:
    """The names of the variables whose values are atoms' whole rows: every atom has one of its own.

    It splits an atom that no other variable splits, because it has none or because their values are few. Blocks have
    columns that are called alike: then there is one more sign.
    """
    taken = {variable for atom in atoms for variable in atom.variables}
    sign = "#"
    while any(f"{sign}{number}" in taken for number in range(len(atoms))):
        sign += "#"
    return [f"{sign}{number}" for number in range(len(atoms))]


@lru_cache(maxsize=1024)
def sharding(entry: ViewEntry, tables: tuple[Table, ...]) -> Sharding:
    """The view that a catalog's entry describes."""
    query = parse_view(entry, tables)
    if is_gathered(entry, query):
        return _gathered(entry, query, tables)
    tables = (*tables, *entry.feeds)
    ready = typed(query)
    groups: dict[tuple[Any, ...], str] = {}
    names: dict[str, int] = {}
    occurrences, atoms = [], []
    for atom, identity in zip(with_failing_rows(ready.query), row_identities(ready.query.atoms), strict=True):
        key = (_route_key(atom, entry.routing.variables), identity in entry.routing.variables and identity)
        if key not in groups:
            names[atom.relation] = names.get(atom.relation, 0) + 1
            number = names[atom.relation]
            groups[key] = atom.relation if number == 1 else f"{atom.relation}~{number}"
            occurrences.append(Occurrence(groups[key], atom.relation, atom, identity))
        atoms.append(groups[key])
    partial = partial_head(ready.query, whole=entry.routing.variables <= set(ready.query.free))
    return Sharding(
        *(entry.name, ready, entry.routing, tuple(occurrences), tuple(atoms), partial, entry.options, tables),
        functions=entry.functions,
        fed=frozenset(feed.name for feed in entry.feeds),
        identified_by=entry.identified_by,
    )


def is_gathered(entry: ViewEntry, query: Query) -> bool:
    """Whether a view is stored whole in one shard."""
    if query.has_closures or (entry.beneath and not entry.feeds) or is_shape(query):
        return True
    return not query.free and (bool(whole_aggregates(query)) or not shareable(query, whole=False))


def whole_aggregates(query: Query) -> list[Aggregate]:
    """The aggregates that need all rows of a group in one shard: what shards have of them does not add up."""
    return [aggregate for aggregate in query.aggregates if not aggregate.definition.is_additive]


def _gathered(entry: ViewEntry, query: Query, tables: tuple[Table, ...]) -> Sharding:
    """A view with one occurrence of each table that it or a view beneath it reads.

    All rows of these are in one shard, or they are spread by a key that all blocks of the view have.
    """
    read = rests_on(entry, query, tables)
    key = stored_key(entry, query, tables)
    by_column = tuple((table.name, table.name, "") for table in read) if key is None else key.places
    declared = {table.name: table for table in read}
    variable = "" if key is None else key.variable
    occurrences = tuple(
        Occurrence(name, relation, _all_of(declared[relation], name, column, variable), "")
        for name, relation, column in by_column
    )
    last = query if key is None or key.last is None else key.last
    merged = last is not query
    partial = partial_head(last) if merged else last.head
    beneath = () if entry.feeds else entry.beneath
    texts: tuple[ViewEntry | ViewText, ...] = (entry, *beneath)
    named = {name for view in texts for name in named_relations(view.text, defined(view.functions))}
    named = set() if entry.members else named
    called = tuple(dict.fromkeys((*(each for view in beneath for each in view.functions), *entry.functions)))
    return Sharding(
        *(entry.name, typed(last), entry.routing, occurrences, (), partial, entry.options, (*tables, *entry.feeds)),
        beneath=beneath,
        gathered=source_of(entry, (*tables, *entry.feeds)),
        functions=called,
        unread=tuple(table for table in tables if table.name.lower() in named and table not in read),
        names=None if key is None else key.names,
        merged=merged,
        everywhere=entry.everywhere,
        fed=frozenset(feed.name for feed in entry.feeds),
        order=None if key is None else key.order,
    )


def stored_key(entry: ViewEntry, query: Query, tables: tuple[Table, ...]) -> BlockKey | None:
    """The key by which a view of several blocks was spread; None if it was gathered."""
    if not entry.routing.variables:
        return None
    found = block_keys(entry, query, tables)
    key = next((key for key in found if entry.routing.variables == {key.variable}), None)
    if key is None:
        raise PlanError(f"view {entry.name} was spread by a key that this version does not find in it; create it again")
    return key


def _all_of(table: Table, name: str, key: str, variable: str) -> Atom:
    """All rows of a table; those of a table with a key are routed by the variable that stands for it."""
    columns = table.column_names
    terms = columns if not key else tuple(variable if column == key else f"#{column}" for column in columns)
    return Atom(name, terms, tuple(map(ColumnRef, columns)))


def _route_key(atom: Atom, variables: frozenset[str]) -> tuple[Any, ...]:
    """What the place of an atom's rows depends on."""
    found: dict[str, Any] = {}
    for term, column in zip(atom.terms, atom.columns, strict=True):
        if isinstance(term, str) and term in variables:
            found.setdefault(term, column)
    return atom.relation, tuple(sorted(found.items(), key=lambda item: item[0])), atom.where


def partial_head(query: Query, *, whole: bool = False) -> tuple[HeadColumn, ...]:
    """The columns of partial rows: inputs, outputs, the count, and the parts of the aggregates.

    Without aggregates the rows of shards are rows of the view. With `whole` groups a part is all there is. A part that
    the view shows has the view's name for it, so that messages of engines name it so.
    """
    if not query.aggregates:
        return query.head
    parts = [Aggregate("count")]
    for aggregate in query.aggregates:
        names = (aggregate.function,) if whole else aggregate.definition.parts or (aggregate.function,)
        parts += [aggregate if part == aggregate.function else Aggregate(part, aggregate.variable) for part in names]
    shown = {column.source: column.name for column in reversed(query.head)}
    keys = [HeadColumn(f"#k{i}", variable) for i, variable in enumerate(query.input + query.output)]
    return (*keys, *(HeadColumn(shown.get(part, f"#a{i}"), part) for i, part in enumerate(dict.fromkeys(parts))))


def shareable(query: Query, *, whole: bool) -> tuple[str, ...]:
    """The variables that may have shares, the free ones first; with `whole` those that keep each row in one shard.

    COUNT DISTINCT adds up over shards if no value of its variable is in two of them. Groups whose aggregates do not
    add up, such as MEDIAN, stay whole.
    """
    whole = whole or bool(whole_aggregates(query))
    counted = [{str(a.variable)} for a in query.aggregates if a.function == "count_distinct"]
    if whole:
        return tuple(query.free)
    if counted:
        return tuple(dict.fromkeys((*query.free, *set.intersection(*counted))))
    return (*dict.fromkeys((*query.free, *query.variables)), *row_identities(query.atoms))


def is_whole(sharding: Sharding) -> bool:
    """Whether no two shards have parts of the same row or group."""
    return sharding.routing.variables <= set(sharding.query.free)


def needs_merging(sharding: Sharding) -> bool:
    """Whether rows of shards are not rows of the view: multiplicities add up where rows simply follow each other."""
    is_partial = not is_whole(sharding) and bool(sharding.query.aggregates or sharding.query.distinct)
    return is_partial or sharding.is_cut or is_one_row(sharding)


def is_one_row(sharding: Sharding) -> bool:
    """Whether a view is one row, which is made of what shards have of it, also where they have nothing."""
    has_parts = sharding.gathered is None or sharding.merged
    return has_parts and bool(sharding.query.aggregates) and not sharding.query.free
