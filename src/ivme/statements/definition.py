"""CREATE, DROP, ALTER, SHOW, DESCRIBE and EXPLAIN, on a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from ivme.definitions.measuring import measured
from ivme.definitions.table_columns import add_column, set_default
from ivme.engine.codes.arrow_types import declared_type
from ivme.errors import PlanError, QueryError, SchemaError
from ivme.query.column_defaults import read_default
from ivme.query.model import Table
from ivme.query.sql_scope import nearest
from ivme.query.sql_text import SqlText
from ivme.query.table_expression import Parameters
from ivme.query.types import Type
from ivme.schemas import columns_of_arrow
from ivme.shown_table import counted
from ivme.statements.change import changed_table, positions
from ivme.statements.constants import value_of, with_values
from ivme.statements.files import read_file
from ivme.statements.model import (
    AddColumn,
    AdvanceClock,
    CreateTable,
    CreateTableAs,
    CreateView,
    Describe,
    Drop,
    DropColumn,
    Explain,
    File,
    RenameColumn,
    RenameTable,
    SetDefault,
    Show,
    Statement,
)
from ivme.statements.result import Result
from ivme.statements.select import pointing_into, select_rows

if TYPE_CHECKING:
    from ivme.database import Database

READS = (Show, Describe, Explain)
"""The statements of this module that change nothing."""


def run(database: Database, statement: Statement, values: Parameters) -> Result:
    """Runs a statement about tables and views."""
    return _RUN[type(statement)](database, statement, values)


def _name(node: exp.Table) -> str:
    return ".".join(part.name for part in node.parts)


def _exists(database: Database, name: str) -> bool:
    there = (*database.tables, *database.views, *database.broken_views)
    return name.lower() in {each.lower() for each in there}


def _create_table(database: Database, statement: CreateTable, _: Parameters) -> Result:
    name = statement.table.name
    if statement.if_not_exists and _exists(database, name):
        return Result(message=f"{name} exists already")
    with _blaming(statement.source, statement.node):
        database.definitions.create_table(statement.table, replace=statement.replace)
    return Result(message=f"table {name} is created")


def _create_table_as(database: Database, statement: CreateTableAs, values: Parameters) -> Result:
    """Creates a table and fills it; if it cannot be filled, it is not there."""
    name, source = _name(statement.table), statement.source
    if statement.if_not_exists and _exists(database, name):
        return Result(message=f"{name} exists already")
    if isinstance(statement.rows, File):
        data = read_file(source, statement.rows, values, None)
        columns = columns_of_arrow(data.schema)
    else:
        rows = select_rows(database.definitions, statement.rows, values.given)
        data, columns = rows.data, rows.columns
    table = Table(name, columns, append_only=statement.append_only, static=statement.static)
    with _blaming(source, statement.table):
        database.definitions.create_table(table)
    try:
        database.insert(name, data)
    except BaseException:
        database.drop_table(name)
        raise
    return Result(count=data.num_rows, message=f"table {name} is created with {counted(data.num_rows, 'row')}")


def _create_view(database: Database, statement: CreateView, _: Parameters) -> Result:
    name, query = _name(statement.view), statement.query
    if statement.if_not_exists and _exists(database, name):
        return Result(message=f"{name} exists already")
    with pointing_into(query), _blaming(statement.source, statement.view):
        database.definitions.create_view(name, query.text, statement.options, replace=statement.replace)
    return Result(message=f"view {name} is created")


def _drop(database: Database, statement: Drop, _: Parameters) -> Result:
    name, kind = _name(statement.relation), statement.kind
    there = database.tables if kind == "table" else (*database.views, *database.broken_views)
    if name.lower() not in {each.lower() for each in there}:
        if statement.if_exists:
            return Result(message=f"there is no {kind} {name}")
        message = f"there is no {kind} {name!r}"
        raise statement.source.unknown(message, statement.relation, nearest(name, there) or "leave it out")
    with _blaming(statement.source, statement.relation):
        (database.drop_table if kind == "table" else database.drop_view)(name)
    return Result(message=f"{kind} {name} is dropped")


def _add_column(database: Database, statement: AddColumn, values: Parameters) -> Result:
    source = statement.source
    table = changed_table(database.definitions, source, statement.table)
    node = statement.default
    default = None if node is None else read_default(source, with_values(source, node, values), statement.type)
    with _blaming(source, statement.table):
        add_column(database.definitions, table.name, statement.name, statement.type, default)
    return Result(message=f"column {statement.name} is added to table {table.name}")


def _drop_column(database: Database, statement: DropColumn, _: Parameters) -> Result:
    table = changed_table(database.definitions, statement.source, statement.table)
    with _blaming(statement.source, statement.table):
        database.drop_column(table.name, statement.name)
    return Result(message=f"column {statement.name} is dropped from table {table.name}")


def _rename_column(database: Database, statement: RenameColumn, _: Parameters) -> Result:
    table = changed_table(database.definitions, statement.source, statement.table)
    with _blaming(statement.source, statement.table):
        database.rename_column(table.name, statement.name, statement.to)
    return Result(message=f"column {statement.name} of table {table.name} is now {statement.to}")


def _set_default(database: Database, statement: SetDefault, values: Parameters) -> Result:
    source = statement.source
    table = changed_table(database.definitions, source, statement.table)
    (place,) = positions(source, table, [statement.name])
    column = table.columns[place]
    node = None if statement.default is None else with_values(source, statement.default, values)
    default = None if node is None else read_default(source, node, declared_type(table, column))
    set_default(database.definitions, table.name, column.name, default)
    done = "is dropped" if default is None else "is set"
    return Result(message=f"the default of column {column.name} of table {table.name} {done}")


def _rename_table(database: Database, statement: RenameTable, _: Parameters) -> Result:
    table, to = changed_table(database.definitions, statement.source, statement.table), _name(statement.to)
    with _blaming(statement.source, statement.to):
        database.rename_table(table.name, to)
    return Result(message=f"table {table.name} is now {to}")


def _advance_clock(database: Database, statement: AdvanceClock, values: Parameters) -> Result:
    moment = value_of(statement.source, statement.to, Type("timestamp"), values)
    database.advance(moment)
    return Result(message=f"the clock says {database.now}")


def show(database: Database, statement: Show, sees: Callable[[str], bool]) -> Result:
    """The tables or views, of those that may be seen."""
    if statement.kind == "TABLES":
        tables = [database.relation(name) for name in database.tables if sees(name)]
        columns = [", ".join(f"{column.name} {column.type}" for column in table.columns) for table in tables]
        return Result(_texts(table=[table.name for table in tables], columns=columns))
    if statement.kind == "CLOCK":
        return Result(pa.table({"now": pa.array([database.now], pa.timestamp("us"))}))
    broken = database.broken_views
    names = [name for name in (*database.views, *broken) if sees(name)]
    texts = [view_text(database, name) for name in names]
    return Result(_texts(view=names, query=texts, broken=[broken.get(name) for name in names]))


def _texts(**columns: Sequence[str | None]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def view_text(database: Database, name: str) -> str | None:
    """The query of a view, if it has one in a text."""
    store, state = database.definitions.store, database.definitions.catalog.views.get(name)
    if store is not None and name in store.views:
        return store.views[name].query
    return None if state is None else state.typed.written.text or None


def _describe(database: Database, statement: Describe, _: Parameters) -> Result:
    name, source = _name(statement.relation), statement.source
    there = {table.name.lower(): table for table in database.definitions.relations()}
    table = there.get(name.lower())
    if table is None:
        known = [*database.tables, *database.views]
        raise source.unknown(f"there is no table or view {name!r}", statement.relation, nearest(name, known))
    names = [column.name for column in table.columns]
    key = {each.lower() for each in table.primary_key or ()}
    types = [str(column.type) for column in table.columns]
    keys = ["primary" if name.lower() in key else None for name in names]
    defaults = {name: str(default) for name, default in table.defaults}
    return Result(_texts(column=names, type=types, key=keys, default=[defaults.get(name) for name in names]))


def _explain(database: Database, statement: Explain, _: Parameters) -> Result:
    query, definitions = statement.query, database.definitions
    with pointing_into(query):
        if statement.analyze:
            found = measured(definitions, definitions.one_reads.unused_name(), query.text, {})
        else:
            found = definitions.compiled(query.text, {}).explanation
    text = str(found) if statement.why else found.brief()
    return Result(_texts(explanation=text.split("\n")), message=text)


@contextmanager
def _blaming(source: SqlText, node: exp.Table) -> Iterator[None]:
    """What is wrong with a name or a definition is told at the place of the name in the text."""
    try:
        yield
    except QueryError:
        raise
    except (SchemaError, PlanError) as error:
        raise source.unsupported(str(error), node, "") from error


_RUN: Mapping[type[Statement], Callable[[Database, Any, Parameters], Result]] = {
    AdvanceClock: _advance_clock,
    AddColumn: _add_column,
    CreateTable: _create_table,
    CreateTableAs: _create_table_as,
    CreateView: _create_view,
    Describe: _describe,
    Drop: _drop,
    DropColumn: _drop_column,
    Explain: _explain,
    RenameColumn: _rename_column,
    RenameTable: _rename_table,
    SetDefault: _set_default,
}
