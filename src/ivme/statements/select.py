"""A SELECT that runs once: by the rows of a table or view if it is just these, else by a view made for it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import ErrorLevel, exp
from sqlglot.errors import UnsupportedError as UnsupportedForm

from ivme.definitions.table_rows import TableRows
from ivme.engine.codes.arrow_types import arrow_type
from ivme.errors import QueryError
from ivme.query.model import Column
from ivme.query.parse import is_sql
from ivme.query.read_select import ReadSelect
from ivme.query.sql import one_statement, whole_statement
from ivme.query.sql_text import DIALECT, SqlText, refuse_other_arguments
from ivme.query.sql_types import type_node
from ivme.query.table_expression import Parameters
from ivme.query.types import Type
from ivme.query.written import in_place_of
from ivme.statements.constants import default_values, typed_value, with_time, with_values
from ivme.statements.model import Select
from ivme.view import View

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions
    from ivme.engine.runtime.batch import Batch


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows with the types of their columns, which Arrow has only in part."""

    columns: tuple[Column, ...]
    data: pa.Table


@contextmanager
def pointing_into(query: Select) -> Iterator[None]:
    """An error in the text of a query points into the text that the query is a part of."""
    try:
        yield
    except QueryError as error:
        raise _moved(error, query) from error


def _moved(error: QueryError, query: Select) -> QueryError:
    if error.text != query.text:
        return error
    position = None if error.position is None else error.position + query.start
    others = tuple(_moved(other, query) for other in error.others)
    whole = query.source.text
    return type(error)(error.message, text=whole, position=position, instead=error.instead, others=others)


def select_rows(
    definitions: Definitions,
    query: Select,
    parameters: Mapping[str, Any],
    wanted: Sequence[Type] = (),
    batch: Batch | None = None,
) -> Rows:
    """The rows of a query: those of a view of its text, with the values in the place of the parameters.

    A view of the same text answers it as an access request. Else parameters are constants, which may stand anywhere.
    NULL alone has the type that is `wanted` at its place. The changes of `batch` are seen, though they are not made.
    """
    with pointing_into(query):
        source, node = whole_statement(query.text, functions=definitions.functions.defined)
        if isinstance(node, exp.Select) and {name for name, value in node.args.items() if value} == {"expressions"}:
            return _constants(source, node, parameters)
        with definitions.runtime.lock:
            found = _whole_relation(definitions, node, parameters) or _same_view(definitions, query.text)
            if found is not None:
                return _looked(batch, partial(found, parameters))
        if not source.parameter_names() and not (wanted and (_bare_nulls(node) or _repeated(node))):
            return definitions.one_reads.read(query.text, lambda view: _looked(batch, lambda: _read(view, {})))
        values = {**default_values(source), **parameters}
        node = with_values(source, node, Parameters(values))
        asked = _asked(query.text, values, wanted)
        return made_rows(definitions, source, _by_place(node, wanted) if wanted else node, batch, asked)


_CONSTANTS = (type(None), bool, int, float, str, bytes, Decimal, datetime.date, datetime.datetime)


def _asked(text: str, values: Mapping[str, Any], wanted: Sequence[Type]) -> Hashable:
    """What tells a query with constants for its parameters from all others: they, as written, decide its plan, and a
    Decimal's digits its types. None for values of other types, whose plans are not kept."""
    written = []
    for name, value in values.items():
        members = value if isinstance(value, list | tuple) else (value,)
        if any(type(member) not in _CONSTANTS for member in members):
            return None
        written.append((name, type(value), repr(value)))
    return text, tuple(sorted(written, key=itemgetter(0))), tuple(wanted)


def _bare_nulls(node: exp.Expr) -> list[tuple[int, exp.Expr]]:
    """The items of a SELECT that are just NULL, with their places."""
    items = enumerate(node.expressions if isinstance(node, exp.Select) else [])
    return [(place, item.unalias()) for place, item in items if isinstance(item.unalias(), exp.Null)]


def _repeated(node: exp.Expr) -> list[int]:
    """The places of items without an alias whose name, or text, another one has as well."""
    items = node.expressions if isinstance(node, exp.Select) else []
    names = [(item.alias_or_name or item.sql(dialect=DIALECT)).lower() for item in items]
    return [place for place, item in enumerate(items) if not item.alias and names.count(names[place]) > 1]


def _by_place(node: exp.Expr, wanted: Sequence[Type]) -> exp.Expr:
    """The query as one whose columns go by their places: names are not repeated, and NULL has a type."""
    for place in _repeated(node):
        item = node.expressions[place]
        if not isinstance(item, exp.Star) and not item.is_star:
            item.replace(exp.alias_(item.copy(), f"column {place + 1}", quoted=True))
    for place, null in _bare_nulls(node):
        if place < len(wanted):
            null.replace(in_place_of(exp.cast(exp.Null(), type_node(wanted[place])), null))
    return node


def made_rows(
    definitions: Definitions, source: SqlText, node: exp.Expr, batch: Batch | None = None, asked: Hashable = None
) -> Rows:
    """The rows of a query that was made of parts of a statement, without parameters; `asked` as `OneReads` has it."""
    made = ReadSelect(source, node)
    return definitions.one_reads.read(made, lambda view: _looked(batch, lambda: _read(view, {})), asked)


def _looked(batch: Batch | None, read: Callable[[], Rows]) -> Rows:
    return read() if batch is None else batch.look(read)


def _read(view: View, parameters: Mapping[str, Any]) -> Rows:
    return Rows(view.state.table.columns, view.to_arrow(**parameters))


Reading = Callable[[Mapping[str, Any]], Rows]


def _whole_relation(definitions: Definitions, node: exp.Expr, parameters: Mapping[str, Any]) -> Reading | None:
    """What reads a table or a view, if a query is SELECT * FROM it."""
    start = node.args.get("from_")
    said = {name for name, value in node.args.items() if value}
    if not isinstance(node, exp.Select) or start is None or said != {"expressions", "from_"} or parameters:
        return None
    table = start.this
    if [type(each) for each in node.expressions] != [exp.Star] or any(v for v in node.expressions[0].args.values()):
        return None
    if not isinstance(table, exp.Table) or {name for name, value in table.args.items() if value} - {"this", "alias"}:
        return None
    if table.args.get("alias") is not None and table.args["alias"].args.get("columns"):
        return None
    name = next((each for each in _names(definitions) if _means(table, each)), None)
    if name is None:
        return None
    view = definitions.views.get(name)
    if view is None:
        return None if definitions.catalog.tables[name].ring else lambda _: _table_rows(definitions, name)
    return partial(_read, view) if isinstance(view, View) and not view.parameters and not view.state.ring else None


def _names(definitions: Definitions) -> list[str]:
    return [*definitions.catalog.tables, *definitions.views]


def _means(node: exp.Table, name: str) -> bool:
    quoted = bool(node.this.args.get("quoted"))
    return node.name == name if quoted else node.name.lower() == name.lower()


def _table_rows(definitions: Definitions, name: str) -> Rows:
    return Rows(definitions.catalog.tables[name].table.columns, TableRows(definitions, name).to_arrow())


def _same_view(definitions: Definitions, text: str) -> Reading | None:
    """What reads a view of the same text, comments and spaces aside; not one with other semantics than a plain view."""
    wanted = _normal(text)
    for view in definitions.views.values():
        if not isinstance(view, View) or view.state.ring:
            continue
        written = view.state.typed.written
        is_same = bool(written.text) and is_sql(written.text) and _normal(written.text) == wanted
        if is_same and written.distinct == _is_distinct(written.text):
            return partial(_read, view)
    return None


@lru_cache(maxsize=8192)
def _normal(text: str) -> tuple[object, ...]:
    """What a text says, however it is laid out."""
    source, node = one_statement(text)
    defaults = [(each.parameter, source.text[each.start : each.end]) for each in source.defaults]
    try:
        said = node.sql(dialect=DIALECT, comments=False, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedForm:  # a part of the text would be lost, and sqlglot would log it
        said = text
    return (said, tuple(defaults), tuple(source.lists.items()))


@lru_cache(maxsize=8192)
def _is_distinct(text: str) -> bool:
    node = one_statement(text)[1]
    return isinstance(node, exp.Select) and node.args.get("distinct") is not None


def _constants(source: SqlText, node: exp.Select, parameters: Mapping[str, Any]) -> Rows:
    """The one row of a SELECT without FROM; NOW() in it is the time of the statement."""
    instead = "add FROM and a table, or select constants only"
    refuse_other_arguments(source, node, ("expressions",), instead)
    values = Parameters(parameters)
    columns, arrays = [], []
    for item in node.expressions:
        inner = item.unalias()
        value, type_ = typed_value(source, with_time(inner, values), values)
        type_ = type_ or Type("string")
        columns.append(Column(item.alias or inner.sql(dialect=DIALECT), type_))
        arrays.append(pa.array([value], arrow_type(type_)))
    values.refuse_unused()
    return Rows(tuple(columns), pa.table(arrays, names=[column.name for column in columns]))
