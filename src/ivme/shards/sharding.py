"""A view as its shards run it: which rows of which tables reach an engine, and the query that the engine maintains.

Occurrences of a table in a self-join may be routed differently, so that each becomes a table of its own in the shards;
those that are routed alike share one. With aggregates the engines keep partial rows: each group's key, its count, and
what its aggregates add up from.

A closure's paths go through all shards, the rows of a view that reads another are in its shards and not in those of
the tables, and a median of all rows cannot be told from parts. Such a view is *gathered*: one engine of one shard has
all rows of the tables that it rests on, the views beneath it, and the view itself. Where all blocks of such a view have
a key in common (`common_key`), each shard has such an engine with the rows of its keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ivme.errors import PlanError
from ivme.query.closures import closures_as_relations
from ivme.query.expression import ColumnRef
from ivme.query.failures import with_failing_rows
from ivme.query.model import Aggregate, Atom, Column, HeadColumn, Query, Table
from ivme.query.parse import as_asked
from ivme.query.shape import is_shape, view_shape
from ivme.query.sql_script import named_relations
from ivme.query.typed import TypedQuery, typed
from ivme.shards.catalog import ViewEntry, ViewText
from ivme.shards.common_key import CommonKey, common_key
from ivme.shards.functions import NamedFunction, defined
from ivme.shards.hashing import hash_rows
from ivme.shards.routing import Numbers, Routing, kept_rows, places, variable_hashes


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
    `unread` tables that texts name in a WITH that nothing reads: the engine has them, without rows.
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
    gathered: str | None = None
    functions: tuple[NamedFunction, ...] = ()
    unread: tuple[Table, ...] = ()

    @property
    def query(self) -> Query:
        return self.typed.query

    @property
    def has_partial_rows(self) -> bool:
        """Whether the rows of engines are partial rows, and not rows of the view."""
        return bool(self.query.aggregates) and self.gathered is None

    @property
    def relations(self) -> tuple[str, ...]:
        """The tables whose rows the view's engines have."""
        return tuple(dict.fromkeys(occurrence.relation for occurrence in self.occurrences))

    @property
    def needed(self) -> tuple[str, ...]:
        """The tables without which the view cannot be made."""
        return (*self.relations, *(table.name for table in self.unread))

    def _table(self, relation: str) -> Table:
        return next(table for table in self.tables if table.name == relation)

    def _columns(self, relation: str) -> list[str]:
        return list(self._table(relation).column_names)

    def engine_tables(self) -> tuple[Table, ...]:
        """The tables that an engine has."""
        return (*(replace(self._table(o.relation), name=o.table) for o in self.occurrences), *self.unread)

    def engine_query(self) -> Query:
        """The view over the engine's tables, with partial rows if it has aggregates."""
        atoms = tuple(replace(atom, relation=name) for atom, name in zip(self.query.atoms, self.atoms, strict=True))
        made = replace(self.query, atoms=atoms, tables=self.engine_tables(), head=self.partial)
        return replace(made, text=str(made))

    def engine_options(self) -> dict[str, Any]:
        """The options of the view, with the engine's names of tables, which are the tables' own if it is gathered."""
        if self.gathered is not None:
            return dict(self.options)
        return {name: self._renamed(name, value) for name, value in self.options}

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
            hashes = variable_hashes(occurrence.atom, rows, self.routing.variables)
            if occurrence.identity in self.routing.variables:
                hashes[occurrence.identity] = hash_rows(rows.select(self._columns(relation)).columns, rows.num_rows)
            for pattern, shard, numbers in places(self.routing, hashes, rows.num_rows):
                yield pattern, shard, occurrence.table, numbers if kept is None else kept[numbers]


def row_identity(number: int) -> str:
    """The name of the variable whose value is an atom's whole row: every atom has one of its own.

    It splits an atom that no other variable splits, because it has none or because their values are few.
    """
    return f"#{number}"


@lru_cache(maxsize=64)
def sharding(entry: ViewEntry, tables: tuple[Table, ...]) -> Sharding:
    """The view that a catalog's entry describes."""
    query = parse_view(entry, tables)
    if is_gathered(entry, query):
        return _gathered(entry, query, tables)
    ready = typed(query)
    groups: dict[tuple[Any, ...], str] = {}
    names: dict[str, int] = {}
    occurrences, atoms = [], []
    for position, atom in enumerate(with_failing_rows(ready.query)):
        identity = row_identity(position)
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
    )


def parse_view(entry: ViewEntry | ViewText, tables: tuple[Table, ...]) -> Query:
    """A view's query, over tables and the views beneath it as if they were tables."""
    known = tables
    for view in entry.beneath if isinstance(entry, ViewEntry) else ():
        known = (*known, view_as_table(view, known))
    options = dict(entry.options)
    query = as_asked(view_shape(entry.text, known, entry.name, defined(entry.functions)), options.get("semantics"))
    return closures_as_relations(query, options.get("graph", "digraph"))


def view_as_table(view: ViewEntry | ViewText, tables: tuple[Table, ...]) -> Table:
    """What is known of a view as if it were a table."""
    query = parse_view(view, tables)
    return Table(view.name, tuple(Column(c.name, t) for c, t in zip(query.head, typed(query).head, strict=True)))


def is_gathered(entry: ViewEntry, query: Query) -> bool:
    """Whether a view is kept whole in one shard."""
    if query.has_closures or entry.beneath or is_shape(query):
        return True
    return bool(whole_aggregates(query)) and not query.free


def whole_aggregates(query: Query) -> list[Aggregate]:
    """The aggregates that need all rows of a group in one shard: what shards have of them does not add up."""
    return [aggregate for aggregate in query.aggregates if not aggregate.definition.is_additive]


def _gathered(entry: ViewEntry, query: Query, tables: tuple[Table, ...]) -> Sharding:
    """A view with one occurrence of each table that it or a view beneath it reads.

    All rows of these are in one shard, or they are spread by a key that all blocks of the view have.
    """
    key = key_of_blocks(entry, query, tables) if entry.routing.variables else None
    places: dict[str, str] = {} if key is None else dict(key.origins)
    variable = "" if key is None else head_variable(query, key.column)
    if entry.routing.variables != frozenset({variable} - {""}):
        raise PlanError(f"view {entry.name} was spread by a key that this version does not find in it; make it anew")
    read = _rests_on(entry, query, tables)
    occurrences = tuple(Occurrence(t.name, t.name, _all_of(t, places.get(t.name), variable), "") for t in read)
    named = {name for view in (entry, *entry.beneath) for name in named_relations(view.text, defined(view.functions))}
    called = tuple(dict.fromkeys((*(each for view in entry.beneath for each in view.functions), *entry.functions)))
    return Sharding(
        *(entry.name, typed(query), entry.routing, occurrences, (), query.head, entry.options, tables),
        beneath=entry.beneath,
        gathered=entry.text,
        functions=called,
        unread=tuple(table for table in tables if table.name.lower() in named and table not in read),
    )


def _rests_on(entry: ViewEntry, query: Query, tables: tuple[Table, ...]) -> list[Table]:
    """The tables that a view or a view beneath it reads."""
    read, known = set(_reads(query)), tables
    for view in entry.beneath:
        read |= set(_reads(parse_view(view, known)))
        known = (*known, view_as_table(view, known))
    return [table for table in tables if table.name in read]


def key_of_blocks(entry: ViewEntry, query: Query, tables: tuple[Table, ...]) -> CommonKey | None:
    """The key by which all blocks of a view can be computed apart; None if there is none."""
    levels: list[tuple[ViewEntry | ViewText, tuple[Table, ...]]] = []
    known = tables
    for view in entry.beneath:
        levels.append((view, known))
        known = (*known, view_as_table(view, known))
    return common_key([*levels, (entry, known)], _rests_on(entry, query, tables))


def head_variable(query: Query, column: str) -> str:
    """The variable that a column of a view shows."""
    return next(str(each.source) for each in query.head if each.name == column)


def _reads(query: Query) -> list[str]:
    """The relations that a query reads, those of closures included."""
    return [table.name if table.closure_of is None else table.closure_of.relation for table in query.tables]


def _all_of(table: Table, key: str | None, variable: str) -> Atom:
    """All rows of a table; those of a table with a key are routed by the variable that stands for it."""
    names = table.column_names
    terms = names if key is None else tuple(variable if name == key else f"#{name}" for name in names)
    return Atom(table.name, terms, tuple(map(ColumnRef, names)))


def _route_key(atom: Atom, variables: frozenset[str]) -> tuple[Any, ...]:
    """What the place of an atom's rows depends on."""
    found: dict[str, Any] = {}
    for term, column in zip(atom.terms, atom.columns, strict=True):
        if isinstance(term, str) and term in variables:
            found.setdefault(term, column)
    return atom.relation, tuple(sorted(found.items(), key=lambda item: item[0])), atom.where


def partial_head(query: Query, *, whole: bool = False) -> tuple[HeadColumn, ...]:
    """The columns of partial rows: inputs, outputs, the count, and the parts of the aggregates.

    Without aggregates the rows of shards are rows of the view. With `whole` groups a part is all there is.
    """
    if not query.aggregates:
        return query.head
    parts = [Aggregate("count")]
    for aggregate in query.aggregates:
        names = (aggregate.function,) if whole else aggregate.definition.parts or (aggregate.function,)
        parts += [aggregate if part == aggregate.function else Aggregate(part, aggregate.variable) for part in names]
    keys = [HeadColumn(f"k{i}", variable) for i, variable in enumerate(query.input + query.output)]
    return (*keys, *(HeadColumn(f"a{i}", part) for i, part in enumerate(dict.fromkeys(parts))))


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
    return (*dict.fromkeys((*query.free, *query.variables)), *map(row_identity, range(len(query.atoms))))


def is_whole(sharding: Sharding) -> bool:
    """Whether no two shards have parts of the same row or group."""
    return sharding.routing.variables <= set(sharding.query.free)


def needs_merging(sharding: Sharding) -> bool:
    """Whether rows of shards are not rows of the view: multiplicities add up where rows simply follow each other."""
    return not is_whole(sharding) and bool(sharding.query.aggregates or sharding.query.distinct)
