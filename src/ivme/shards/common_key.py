"""A key by which all blocks of a view can be computed apart: the view is then spread by it, and no block needs rows of
another shard.

A column of a relation has *origins*: columns of tables such that its rows with a value depend only on rows of those
tables that have the value there. A column of a table is its own origin. A block that joins relations keeps the origins
of a variable that all its atoms have, if it shows it: groups and distinct rows by it are whole wherever it is whole.
A union keeps those of a column that all branches have, and an order within groups those of the columns of its groups.
If a column of the view has an origin in each table that the view rests on, tables are routed by these origins, every
shard runs the whole view over its part, and the view's rows are those of all shards.

Rows that are neither grouped nor distinct need not show the key: what shards have of them is all of them together. So
a block, and a union of blocks, may be spread by a column that it does not show. If that is the last block, what shards
have of its rows, distinct rows or groups is merged, as for a view of one block whose bound variables have shares. The
key is *hidden* then. The first rows in an order are among the first rows of the shards, if rows and groups are whole
there: these are put in order, and cut, where the view is read.

Rows that are paired by an inequality keep the origins of columns that both sides have equal. The clock has one row, and
every shard has it: whatever is joined with it stays as it is. So it is with all that every shard has.

Whatever is not known to be like that has no origins: parameters, closures, aggregates over everything, constants, an
order by what is not shown. Such views are gathered in one shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ivme.query.expression import ColumnRef, Expression
from ivme.query.functions import Function
from ivme.query.model import Column, Query, Table
from ivme.query.names import CLOCK
from ivme.query.order import Order
from ivme.query.pairing import Pairing, typed_pairing
from ivme.query.read_select import ReadSelect
from ivme.query.shape import is_shape, ordered_columns, view_shape
from ivme.query.sql_script import SqlScript, read_script, script_of
from ivme.query.typed import typed
from ivme.query.types import Type
from ivme.query.union import Union, typed_union

Origins = Mapping[str, str]
"""A column for each table."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How the rows of a relation may be spread: the origins of its columns, and those that its rows do not show.

    Names count as they are written: two columns may differ in case alone.
    """

    columns: Mapping[str, Origins] = field(default_factory=dict)
    hidden: tuple[Origins, ...] = ()
    is_everywhere: bool = False
    """Whether every shard has all of its rows, as of the clock."""

    @property
    def all(self) -> tuple[Origins, ...]:
        return (*self.columns.values(), *self.hidden)


Known = dict[str, Spread]
"""By relation."""

_NOWHERE = Spread()
_EVERYWHERE = Spread(is_everywhere=True)
_MOST_HIDDEN = 16
"""How many keys a block may have that it does not show; others are left out."""

_BOOL = Type("bool")
_KINDS = ("int", "string", "bool", "date", "timestamp", "decimal")
"""Types whose equal values have equal hashes."""


@dataclass(frozen=True, slots=True)
class Level:
    """A view, or one beneath it, as its shards make it, with the tables and views that it has `seen`."""

    name: str
    source: str | ReadSelect
    seen: tuple[Table, ...]
    functions: Mapping[str, Function] = field(default_factory=dict)
    has_meaning: bool = False
    """Whether options say what its text means: sets, or a kind of graph."""


@dataclass(frozen=True, slots=True)
class CommonKey:
    """The column of a view by which it is spread, "" if that is hidden, and the columns by which its tables are."""

    column: str
    origins: tuple[tuple[str, str], ...]
    order: Order | None = None
    """Of the view's rows, in which those of shards are put together."""


def common_keys(
    levels: Sequence[Level], tables: Sequence[Table], everywhere: frozenset[str] = frozenset((CLOCK,))
) -> Iterator[CommonKey]:
    """The keys of the last view, those that it shows first; `levels` has the views beneath it before it.

    `tables` are those that it rests on; of those `everywhere` each shard has all rows.
    """
    found: Known = {table.name: _of_table(table) for table in tables} | dict.fromkeys(everywhere, _EVERYWHERE)
    read = _NOTHING
    for level in levels:
        read = _of_view(level, found)
        is_all = read.order is None or (read.order.is_whole and read.order.ranges is None)
        found[level.name] = read.spread if is_all else _NOWHERE
    types = {(table.name, column.name): column.type for table in tables for column in table.columns}
    wanted = {table.name for table in tables} - everywhere

    def is_key(origins: Origins | None) -> bool:
        whole = origins is not None and set(origins) == wanted
        return whole and len({types[origin] for origin in (origins or {}).items()}) == 1

    shown, hidden = read.spread.columns, read.spread.hidden
    if read.last is not None and read.order is None and can_be_merged(read.last):
        hidden = _of_rows(read.last, found)
    names = () if read.last is None else (column.name for column in read.last.head)
    keys = [CommonKey(name, _sorted(shown[name]), read.order) for name in names if is_key(shown.get(name))]
    keys += [CommonKey("", _sorted(origins), read.order) for origins in hidden if is_key(origins)]
    yield from sorted(keys, key=lambda key: (not key.column, types[key.origins[0]] == _BOOL))  # few values spread badly


def can_be_merged(query: Query) -> bool:
    """Whether what shards have of a block's rows or groups adds up, wherever they are."""
    additive = all(each.definition.is_additive and each.function != "count_distinct" for each in query.aggregates)
    return additive and not query.input and not query.has_closures


def last_block(level: Level) -> Query:
    """The block that shows the rows of a view without an order."""
    query = _of_view(level, {}).last
    assert query is not None, "a view that has a key ends with a SELECT"
    return query


def _sorted(origins: Origins) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(origins.items()))


def _of_table(table: Table) -> Spread:
    told = ((column.name, column.type) for column in table.columns if column.type is not None)
    return Spread({name: {table.name: name} for name, type_ in told if type_.kind in _KINDS})


@dataclass(frozen=True, slots=True)
class _Read:
    """How the rows of a view's last block may be spread, this block, and the order of the view.

    There is no block if it is not all that the view's rows depend on.
    """

    spread: Spread
    last: Query | None
    order: Order | None = None


_NOTHING = _Read(_NOWHERE, None)


def _of_view(level: Level, found: Known) -> _Read:
    """What is known of a view."""
    script: SqlScript
    if isinstance(level.source, str):
        query = view_shape(level.source, level.seen, level.name, level.functions)
        if not is_shape(query):
            return _NOTHING if level.has_meaning else _Read(_of_query(query, found), query)
        script = read_script(level.source, level.seen, level.functions)
    else:
        script = level.source.script or script_of(level.source.source, level.source.node.copy(), level.seen)
    if level.has_meaning:
        return _NOTHING
    spread, last = _of_script(script, level.seen, level.name, found)
    if script.order is None:
        return _Read(spread, last)
    order = script.order.over([column.name for column in last.head])
    is_shown = not any(column.name.startswith(order.hidden) for column in last.head)
    return _Read(spread, last, order) if is_shown and order.ranges is None else _NOTHING


def _of_script(script: SqlScript, tables: tuple[Table, ...], name: str, found: Known) -> tuple[Spread, Query]:
    """That of the last block, and this block; blocks are read as in `query.shape`, and added to `found`."""
    known, names, last = tables, dict[str, str](), ""
    for number, (block, _) in enumerate(script.selects):
        last = names[block] = script.name_of(number, name)
        if block in script.ordered:
            ordered = script.ordered[block]
            rows = next(table for table in known if table.name == names[ordered.rows])
            order = ordered.order.over(rows.column_names)
            groups = [rows.column_names[each] for each in order.groups if isinstance(each, int)]
            found[last] = _NOWHERE if order.ranges is not None else _kept(found.get(rows.name, _NOWHERE), groups)
            known = (*known, Table(last, ordered_columns(rows.columns, ordered.order)))
            continue
        made = script.block(number, known, names, last)
        if isinstance(made, Union):
            found[last] = _of_union(made, found)
            known = (*known, typed_union(made)[1])
        elif isinstance(made, Pairing):
            found[last] = _of_pairing(made, found)
            known = (*known, typed_pairing(made)[1])
        else:
            found[last] = _of_query(made, found)
            types = zip(made.head, typed(made).head, strict=True)
            known = (*known, Table(last, tuple(Column(column.name, type_) for column, type_ in types)))
    assert isinstance(made, Query), "a view is never a union itself"
    return found[last], made


def _kept(spread: Spread, columns: Iterable[str]) -> Spread:
    wanted = set(columns)
    return Spread({column: each for column, each in spread.columns.items() if column in wanted})


def _of_pairing(pairing: Pairing, found: Known) -> Spread:
    left, right = (found.get(side.relation, _NOWHERE) for side in (pairing.left, pairing.right))
    if left.is_everywhere or right.is_everywhere:
        return _beside_clock(pairing, left, right)
    pairs = zip(pairing.left.keys, pairing.right.keys, strict=True)
    keys = {place: _of_equal(*pair, left, right) for place, pair in enumerate(pairs)}
    shown: dict[str, Origins] = {}
    width = len(pairing.left.columns)
    for place, name in enumerate(pairing.columns):
        side = pairing.left if place < width else pairing.right
        column = side.columns[place if place < width else place - width]
        origins = next((keys[n] for n, key in enumerate(side.keys) if key == column), None)
        if origins is not None and not (pairing.pads and side is pairing.right):  # padded with NULL
            shown[name] = origins
    return Spread(shown, _distinct((each for each in keys.values() if each is not None), shown.values()))


def _of_equal(one: Expression, other: Expression, left: Spread, right: Spread) -> Origins | None:
    """The origins of columns that are equal in a pair; None if they have none."""
    names = [each.name if isinstance(each, ColumnRef) else "" for each in (one, other)]
    mine, theirs = left.columns.get(names[0]), right.columns.get(names[1])
    return {**mine, **theirs} if mine is not None and theirs is not None and _agrees(mine, theirs) else None


def _beside_clock(pairing: Pairing, left: Spread, right: Spread) -> Spread:
    """Pairs of rows with the clock. Which row is the nearest one to the clock, no shard knows alone."""
    if left.is_everywhere and right.is_everywhere:
        return _EVERYWHERE
    if pairing.first and left.is_everywhere:
        return _NOWHERE
    side, spread = (pairing.right, right) if left.is_everywhere else (pairing.left, left)
    names = pairing.columns[len(pairing.left.columns) if left.is_everywhere else 0 :]
    plain = ((n, c.name) for n, c in zip(names, side.columns, strict=False) if isinstance(c, ColumnRef))
    shown = {name: spread.columns[column] for name, column in plain if column in spread.columns}
    return Spread(shown, _distinct(spread.all, shown.values()))


def _of_query(query: Query, found: Known) -> Spread:
    if all(found.get(atom.relation, _NOWHERE).is_everywhere for atom in query.atoms):
        return _EVERYWHERE
    if query.input or query.has_closures or any(atom.closure for atom in query.atoms):
        return _NOWHERE
    shown = ((column.name, column.source) for column in query.head if isinstance(column.source, str))
    told = ((name, _of_variable(query, variable, found)) for name, variable in shown)
    columns = {name: origins for name, origins in told if origins is not None}
    is_bag = not query.aggregates and not query.distinct
    return Spread(columns, _distinct(_of_rows(query, found), columns.values()) if is_bag else ())


def _distinct(found: Iterable[Origins], known: Iterable[Origins]) -> tuple[Origins, ...]:
    """Those that are not known yet, each once."""
    seen, kept = list(known), list[Origins]()
    for origins in found:
        if origins not in seen and len(kept) < _MOST_HIDDEN:
            seen.append(origins)
            kept.append(origins)
    return tuple(kept)


def _of_rows(query: Query, found: Known) -> tuple[Origins, ...]:
    """By what the joined rows of a query may be spread: a variable of all atoms, or anything that its only atom is."""
    if len(query.atoms) == 1:
        return found.get(query.atoms[0].relation, _NOWHERE).all
    told = (_of_variable(query, variable, found) for variable in query.variables)
    return tuple(origins for origins in told if origins is not None)


def _of_variable(query: Query, variable: str, found: Known) -> Origins | None:
    """The origins of a variable that all atoms have in a plain column; None if there are none, or they disagree."""
    merged: dict[str, str] = {}
    for atom in query.atoms:
        spread = found.get(atom.relation, _NOWHERE)
        if spread.is_everywhere:
            continue
        known = spread.columns
        places = zip(atom.terms, atom.columns, strict=True)
        plain = (column.name for term, column in places if term == variable and isinstance(column, ColumnRef))
        chosen = next((known[name] for name in plain if _agrees(known.get(name), merged)), None)
        if chosen is None:
            return None
        merged |= chosen
    return merged or None


def _of_union(union: Union, found: Known) -> Spread:
    shown: dict[str, Origins] = {}
    for place, name in enumerate(union.columns):
        merged: dict[str, str] | None = {}
        for branch in union.branches:
            column = branch.columns[place]
            plain = column.name if isinstance(column, ColumnRef) and branch.relation is not None else ""
            own = found.get(branch.relation or "", _NOWHERE).columns.get(plain)
            merged = {**merged, **own} if merged is not None and own is not None and _agrees(own, merged) else None
        if merged:
            shown[name] = merged
    return Spread(shown, _distinct(_of_branches(union, found), shown.values()))


def _of_branches(union: Union, found: Known) -> Iterator[Origins]:
    """By what the rows of all branches may be spread, each branch in its own way."""
    first, *others = (found.get(branch.relation or "", _NOWHERE).all for branch in union.branches)
    for origins in first:
        merged: dict[str, str] | None = dict(origins)
        for other in others:
            own = next((each for each in other if merged is not None and _agrees(each, merged)), None)
            merged = None if own is None or merged is None else {**merged, **own}
        if merged:
            yield merged


def _agrees(own: Origins | None, others: Origins) -> bool:
    """Whether there are origins, with the same columns for the tables that both have."""
    return own is not None and all(others.get(table, column) == column for table, column in own.items())
