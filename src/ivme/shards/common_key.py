"""A key by which all blocks of a view can be computed apart: the view is then spread by it, and no block needs rows of
another shard.

A column of a relation has *origins*: columns of tables such that its rows with a value depend only on rows of those
tables that have the value there. A column of a table is its own origin. A block that joins relations keeps the origins
of a variable that all its atoms have, if it shows it: groups and distinct rows by it are whole wherever it is whole.
A union keeps those of a column that all branches have, and an order within groups those of the columns of its groups.
If a column of the view has an origin in each table that the view rests on, tables are routed by these origins, every
shard runs the whole view over its part, and the view's rows are those of all shards.

Whatever is not known to be like that has no origins: parameters, closures, aggregates over everything, constants,
pairings, an order of the whole view. Such views are gathered in one shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ivme.query.block_names import block_name
from ivme.query.expression import ColumnRef
from ivme.query.model import Column, Query, Table
from ivme.query.pairing import Pairing, typed_pairing
from ivme.query.shape import is_shape, ordered_columns, view_shape
from ivme.query.sql_script import SqlScript, read_script
from ivme.query.typed import typed
from ivme.query.union import Union, typed_union
from ivme.shards.catalog import ViewEntry, ViewText
from ivme.shards.functions import defined

Origins = Mapping[str, str]
"""A column for each table."""

Known = dict[str, Mapping[str, Origins]]
"""By relation and column, its origins. Names count as they are written: two columns may differ in case alone."""

_KINDS = ("int", "string", "bool", "date", "timestamp", "decimal")
"""Types whose equal values have equal hashes."""


@dataclass(frozen=True, slots=True)
class CommonKey:
    """The column of a view by which it is spread, and the columns of its tables by which these are."""

    column: str
    origins: tuple[tuple[str, str], ...]


def common_key(
    levels: Sequence[tuple[ViewEntry | ViewText, tuple[Table, ...]]], tables: Sequence[Table]
) -> CommonKey | None:
    """The key of the last view; `levels` has the views beneath it first, each with the tables and views that it sees.

    `tables` are those that it rests on.
    """
    found: Known = {table.name: _of_table(table) for table in tables}
    shown: tuple[str, ...] = ()
    for view, seen in levels:
        found[view.name], shown = _of_view(view, seen, found)
    types = {(table.name, column.name): column.type for table in tables for column in table.columns}
    wanted = {table.name for table in tables}
    for column in shown:
        origins = found[levels[-1][0].name].get(column, {})
        if set(origins) == wanted and len({types[origin] for origin in origins.items()}) == 1:
            return CommonKey(column, tuple(sorted(origins.items())))
    return None


def _of_table(table: Table) -> Mapping[str, Origins]:
    told = ((column.name, column.type) for column in table.columns if column.type is not None)
    return {name: {table.name: name} for name, type_ in told if type_.kind in _KINDS}


def _of_view(
    view: ViewEntry | ViewText, seen: tuple[Table, ...], found: Known
) -> tuple[Mapping[str, Origins], tuple[str, ...]]:
    """The origins of a view's columns, and the names of all its columns."""
    functions = defined(view.functions)
    query = view_shape(view.text, seen, view.name, functions)
    names = tuple(column.name for column in query.head)
    if {"semantics", "graph"} & dict(view.options).keys() or query.input:
        return {}, names
    if not is_shape(query):
        return _of_query(query, found), names
    script = read_script(view.text, seen, functions)
    return ({} if script.order is not None else _of_script(script, seen, view.name, dict(found))), names


def _of_script(script: SqlScript, tables: tuple[Table, ...], name: str, found: Known) -> Mapping[str, Origins]:
    """Those of the last block, block by block as `query.shape` reads them."""
    known, names, last = tables, dict[str, str](), ""
    for number, (block, _) in enumerate(script.selects):
        last = names[block] = block_name(name, number + 1)
        if block in script.ordered:
            ordered = script.ordered[block]
            rows = next(table for table in known if table.name == names[ordered.rows])
            order = ordered.order.over(rows.column_names)
            groups = [rows.column_names[each] for each in order.groups if isinstance(each, int)]
            found[last] = {} if order.ranges is not None else _kept(found[rows.name], groups)
            known = (*known, Table(last, ordered_columns(rows.columns, ordered.order)))
            continue
        made = script.block(number, known, names, last)
        if isinstance(made, Union):
            found[last] = _of_union(made, found)
            known = (*known, typed_union(made)[1])
        elif isinstance(made, Pairing):
            found[last] = {}
            known = (*known, typed_pairing(made)[1])
        else:
            found[last] = _of_query(made, found)
            types = zip(made.head, typed(made).head, strict=True)
            known = (*known, Table(last, tuple(Column(column.name, type_) for column, type_ in types)))
    return found[last]


def _kept(origins: Mapping[str, Origins], columns: Iterable[str]) -> Mapping[str, Origins]:
    wanted = set(columns)
    return {column: each for column, each in origins.items() if column in wanted}


def _of_query(query: Query, found: Known) -> Mapping[str, Origins]:
    if query.input or query.has_closures or any(atom.closure for atom in query.atoms):
        return {}
    shown = ((column.name, column.source) for column in query.head if isinstance(column.source, str))
    told = ((name, _of_variable(query, variable, found)) for name, variable in shown)
    return {name: origins for name, origins in told if origins is not None}


def _of_variable(query: Query, variable: str, found: Known) -> Origins | None:
    """The origins of a variable that all atoms have in a plain column; None if there are none, or they disagree."""
    merged: dict[str, str] = {}
    for atom in query.atoms:
        known = found.get(atom.relation, {})
        places = zip(atom.terms, atom.columns, strict=True)
        plain = (column.name for term, column in places if term == variable and isinstance(column, ColumnRef))
        chosen = next((known[name] for name in plain if _agrees(known.get(name), merged)), None)
        if chosen is None:
            return None
        merged |= chosen
    return merged


def _of_union(union: Union, found: Known) -> Mapping[str, Origins]:
    shown: dict[str, Origins] = {}
    for place, name in enumerate(union.columns):
        merged: dict[str, str] | None = {}
        for branch in union.branches:
            column = branch.columns[place]
            plain = column.name if isinstance(column, ColumnRef) and branch.relation is not None else ""
            own = found.get(branch.relation or "", {}).get(plain)
            merged = {**merged, **own} if merged is not None and own is not None and _agrees(own, merged) else None
        if merged:
            shown[name] = merged
    return shown


def _agrees(own: Origins | None, others: Origins) -> bool:
    """Whether there are origins, with the same columns for the tables that both have."""
    return own is not None and all(others.get(table, column) == column for table, column in own.items())
