"""What a view looks like from outside: its columns, their types, its parameters, and the tables that it reads.

A view of one block is its query. One of several blocks, or with an order, is shown as a query over one table that has
its rows: enough to tell the view's columns and tables, but not to maintain it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from ivme.errors import PlanError
from ivme.query.functions import Function
from ivme.query.model import Atom, Column, Query, Table, column_refs, plain_head
from ivme.query.order import HIDDEN, RANK, Order, Total
from ivme.query.parse import is_one_join, parse
from ivme.query.typed import typed
from ivme.query.types import Type

if TYPE_CHECKING:
    from ivme.query.sql_script import SqlScript

_ROWS = "#rows"
"""How the name of the table ends that a shape reads."""


def view_shape(
    text: str, tables: tuple[Table, ...], name: str, functions: Mapping[str, Function] = MappingProxyType({})
) -> Query:
    """The query of a view, or its shape if it is not one block."""
    if is_one_join(text, tables):
        return replace(parse(text, tables), name=name)
    from ivme.query.sql_script import read_script

    script = read_script(text, tables, functions)
    if len(script) == 1 and script.order is None:
        made = script.block(0, tables, {}, name)
        assert isinstance(made, Query), "a view is never a union itself"
        return replace(made, text=text)
    return replace(script_shape(script, tables, name), text=text)


def script_shape(script: SqlScript, tables: tuple[Table, ...], name: str) -> Query:
    """The shape of a view of several blocks, each of which is read for it."""
    from ivme.query.pairing import Pairing, PairingTypeError, typed_pairing
    from ivme.query.union import Union, UnionTypeError, typed_union

    known, names, read = tables, dict[str, str](), dict[str, Table]()
    for number, (block, _) in enumerate(script.selects):
        names[block] = script.name_of(number, name)
        if block in script.ordered:
            rows = next(table for table in known if table.name == names[script.ordered[block].rows])
            known = (*known, Table(names[block], ordered_columns(rows.columns, script.ordered[block].order)))
            continue
        made = script.block(number, known, names, names[block])
        read |= {table.name: table for table in made.tables if table.name not in names.values()}
        try:
            if isinstance(made, Union):
                known = (*known, typed_union(made)[1])
                continue
            if isinstance(made, Pairing):
                known = (*known, typed_pairing(made)[1])
                continue
        except UnionTypeError as error:
            raise script.no_common_type(number, error) from None
        except PairingTypeError as error:
            raise script.not_comparable(number, error) from None
        found = typed(made)
        columns = tuple(Column(c.name, t) for c, t in zip(made.head, found.head, strict=True))
        known = (*known, Table(names[block], columns))
    last = found.written
    if script.order is not None and script.order.ranges is not None:
        made = range_shape(name, columns, script.order)
        return replace(made, text=script.source.text, tables=(made.tables[0], *read.values()))
    inputs = {p: found.types[v] for p, v in zip(last.parameters, last.input, strict=True)}
    made = replace(shape_of(name, columns, inputs), defaults=last.defaults, lists=last.lists)
    return replace(made, text=script.source.text, tables=(_rows(name, columns, inputs), *read.values()))


def ordered_columns(columns: tuple[Column, ...], order: Order) -> tuple[Column, ...]:
    """The columns that an order shows of rows."""
    named = {column.name: column for column in (*columns, *added_columns(columns, order))}
    return tuple(named[name] for name in order.shown([column.name for column in columns]))


def added_columns(columns: tuple[Column, ...], order: Order) -> tuple[Column, ...]:
    """The columns that an order adds to rows: a rank, or those of window functions."""
    found = [Column(RANK, Type("int"))] if order.rank else []
    placed = order.over([column.name for column in columns])
    keys = [columns[key.column].type for key in placed.keys if isinstance(key.column, int)]
    for call in placed.windows:
        given = columns[call.column].type if isinstance(call.column, int) else None
        call.check_key(keys[0] if len(keys) == 1 else None)
        type_ = call.type_of(given)
        if type_ is None:
            raise call.refusal(f"{call.function.upper()} does not take values of type {given}")
        found.append(Column(call.name, type_))
    return tuple(found)


def range_shape(name: str, columns: tuple[Column, ...], order: Order) -> Query:
    """The shape of a view with parameters in a range, or that name rows, over rows with these columns."""
    ranges = order.ranges
    assert ranges is not None
    types = {column.name: column.type for column in columns}
    inputs = {name: type_ for name, column in ranges.parameters.items() if (type_ := types[column]) is not None}
    if ranges.totals:
        named = [total for total in ranges.totals if total.name]
        columns = tuple(Column(total.name, _total_type(total, types.get(total.sums))) for total in named)
    if ranges.items:
        known = {column.name: column for column in (*columns, *added_columns(columns, order))}
        shown = ranges.shown_of([column.name for column in columns])
        columns = tuple(replace(known[item.column], name=item.name) for item in shown)
    within = {end for span in ranges.spans for end in span.parameters}
    return replace(shape_of(name, columns, inputs), ends=tuple((each, each in within) for each in inputs))


def _total_type(total: Total, summed: Type | None) -> Type:
    """The type of an aggregate over a range; partial sums of floats are rounded, and cannot be added up exactly."""
    if total.function == "count":
        return Type("int")
    assert summed is not None, "blocks have types"
    if total.function in ("key", "min", "max"):
        return summed
    if summed.kind == "float" or (total.function == "avg" and summed.kind != "int"):
        what = f"{total.function.upper()} of {'floats' if summed.kind == 'float' else 'decimals'}"
        message = f"{what} over a range of a parameter, {total.name}, is not supported"
        raise PlanError(f"{message}; leave the range out, group by what it compares, and add up when reading")
    return summed if total.function == "sum" else Type("float")


def shape_of(name: str, columns: tuple[Column, ...], parameters: dict[str, Type], hidden: str = HIDDEN) -> Query:
    """A query with these columns and parameters over one table that has them; hidden columns are not in its rows."""
    table = _rows(name, columns, parameters)
    inputs = table.column_names[: len(parameters)]
    output = table.column_names[len(parameters) :]
    head = plain_head(each for each in output if not each.startswith(hidden))
    atom = Atom(table.name, table.column_names, column_refs(table.column_names))
    return Query(name, output, inputs, (atom,), (table,), head, parameters=tuple(parameters))


def is_shape(query: Query) -> bool:
    """Whether a query only shows what a view looks like."""
    return query.atoms[0].relation == f"{query.name}{_ROWS}"


def _rows(name: str, columns: tuple[Column, ...], parameters: dict[str, Type]) -> Table:
    given = (Column(f"?{parameter}", type_) for parameter, type_ in parameters.items())
    return Table(f"{name}{_ROWS}", (*given, *columns))
