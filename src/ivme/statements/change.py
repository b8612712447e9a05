"""INSERT, UPDATE and DELETE: from statements to changes of a batch.

A condition or a value over the table's own columns is evaluated when the batch is committed (`table_change`), as
`Database.update` does. One with a subquery is a SELECT of the rows that go and those that come.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from ivme.engine.codes.arrow_types import arrow_schema, arrow_type, declared_type
from ivme.engine.expression.arrow_expression import evaluate_columns
from ivme.engine.ingest.rows import to_arrow
from ivme.engine.runtime import table_change
from ivme.query.column_defaults import as_assigned
from ivme.query.expression import ColumnRef
from ivme.query.model import Column, Table
from ivme.query.one_type import cast_to
from ivme.query.sql_scope import nearest, same_name
from ivme.query.sql_text import SqlText
from ivme.query.table_expression import Parameters, check_assignable, read_condition, read_value
from ivme.query.types import Type
from ivme.query.written import in_place_of
from ivme.statements.constants import constant_node, value_of, with_time, with_values
from ivme.statements.files import read_file
from ivme.statements.model import Delete, File, Insert, Select, Update, Values
from ivme.statements.select import Rows, made_rows, select_rows

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions
    from ivme.engine.runtime.batch import Batch

_OLD, _NEW = "old {}", "new {}"
"""What the columns of rows that go and of rows that come are called in a SELECT of both."""


def changed_table(definitions: Definitions, source: SqlText, node: exp.Table) -> Table:
    """The table that a statement changes; an error at its place if there is none, or it is a view."""
    name = ".".join(part.name for part in node.parts)
    tables = {state.table.name: state.table for state in definitions.catalog.tables.values()}
    quoted = all(part.args.get("quoted") for part in node.parts)
    for known, table in tables.items():
        if known == name or (not quoted and known.lower() == name.lower()):
            return table
    if name.lower() in {view.lower() for view in definitions.views}:
        raise source.unknown(f"{name} is a view, which follows its tables", node, "change the tables that it reads")
    raise source.unknown(f"there is no table {name!r}", node, nearest(name, tables) or "make it by CREATE TABLE")


def positions(source: SqlText, table: Table, named: Sequence[exp.Identifier]) -> list[int]:
    """The places of columns of a table, each named once."""
    found: list[int] = []
    for node in named:
        place = next((i for i, name in enumerate(table.column_names) if same_name(node, name)), None)
        if place is None:
            message = f"table {table.name} has no column {node.name!r}"
            raise source.unknown(message, node, nearest(node.name, table.column_names))
        if place in found:
            raise source.unsupported(f"the column {node.name} is named twice", node, "name it once")
        found.append(place)
    return found


# INSERT


def named_places(source: SqlText, table: Table, named: Sequence[exp.Identifier]) -> list[int]:
    """The places of the columns that are named after the table; of all, if none are."""
    return positions(source, table, named) if named else list(range(len(table.columns)))


Taken = list[pa.Table]
"""The rows that a change brings or takes away, for RETURNING."""


def insert(definitions: Definitions, statement: Insert, values: Parameters, batch: Batch, taken: Taken) -> int:
    """Adds the rows of an INSERT or a COPY to a batch; how many they are."""
    table, rows = _inserted(definitions, statement, values, batch)
    add = {"insert": batch.insert, "upsert": batch.upsert, "replace": batch.replace}[statement.how]
    add(table.name, rows)
    if statement.returning:
        taken.append(to_arrow(rows, table))
    return len(rows)


def _inserted(
    definitions: Definitions, statement: Insert, values: Parameters, batch: Batch
) -> tuple[Table, pa.Table | list[tuple[object, ...]]]:
    """The table and the rows that come."""
    source = statement.source
    table = changed_table(definitions, source, statement.table)
    places = named_places(source, table, statement.columns)
    if isinstance(statement.rows, File):
        data = _file_rows(source, statement, values, _part(table, places))
        return table, whole_rows(table, places, data.columns, data.num_rows, values)
    if isinstance(statement.rows, Select):
        types = [declared_type(table, table.columns[place]) for place in places]
        selected = select_rows(definitions, statement.rows, values.given, types, batch)
        values.used.update(values.given)
        columns = _converted(source, selected, table, places, statement.rows.start)
        return table, whole_rows(table, places, columns, selected.data.num_rows, values)
    if statement.rows == ((),) and not statement.columns:
        return table, [tuple(table.default_row(values.moment))]
    return table, _values(source, table, places, statement.rows, values)


def is_default(node: exp.Expr, table: Table) -> bool:
    """Whether an expression is the word DEFAULT, and not a column of that name."""
    is_word = isinstance(node, exp.Var) or (isinstance(node, exp.Column) and not node.this.args.get("quoted"))
    return is_word and node.name.upper() == "DEFAULT" and table.column("default") is None


def _file_rows(source: SqlText, statement: Insert, values: Parameters, table: Table) -> pa.Table:
    """The rows of a file: COPY goes by the names of its columns, INSERT ... SELECT * by their places."""
    assert isinstance(statement.rows, File)
    if statement.is_copy:
        return read_file(source, statement.rows, values, table)
    data = read_file(source, statement.rows, values, None)
    if data.num_columns != len(table.columns):
        message = f"the file has {data.num_columns} columns for {len(table.columns)} of table {table.name}"
        raise source.unsupported(message, source.tokens[-1].start, "name the columns after the table, or use COPY")
    return pa.table(
        [_as_number(*each) for each in zip(data.columns, table.columns, strict=True)], names=data.column_names
    )


def _as_number(data: pa.ChunkedArray, column: Column) -> pa.Array | pa.ChunkedArray:
    """A column of numbers of a file in the type of a column of numbers, as INSERT ... SELECT has them; others as is."""
    assert column.type is not None
    if not pa.types.is_floating(data.type) or column.type.kind not in ("decimal", "int"):
        return data
    cast = cast_to(ColumnRef("c"), Type("float"), column.type)
    return evaluate_columns(cast, pa.table([data.cast(pa.float64())], names=["c"]))


def _part(table: Table, places: Sequence[int]) -> Table:
    return Table(table.name, tuple(table.columns[place] for place in places))


def _values(
    source: SqlText, table: Table, places: Sequence[int], rows: Values, values: Parameters
) -> list[tuple[object, ...]]:
    types = [declared_type(table, table.columns[place]) for place in places]
    made, defaults = [], table.default_row(values.moment)
    for nodes in rows:
        if len(nodes) != len(places):
            message = f"the row has {len(nodes)} values for {len(places)} columns"
            raise source.unsupported(message, nodes[0] if nodes else None, "give a value for each column")
        row = list(defaults)
        for place, type_, node in zip(places, types, nodes, strict=True):
            if not is_default(node, table):
                row[place] = value_of(source, node, type_, values)
        made.append(tuple(row))
    return made


def _converted(
    source: SqlText, rows: Rows, table: Table, places: Sequence[int], start: int
) -> list[pa.Array | pa.ChunkedArray]:
    """The columns of a query in the types of the table's, which take numbers of every type and nothing else."""
    if len(rows.columns) != len(places):
        message = f"the query has {len(rows.columns)} columns for {len(places)} of table {table.name}"
        raise source.unsupported(message, start, "select a column for each, in their order")
    columns = []
    for number, place in enumerate(places):
        wanted, own = declared_type(table, table.columns[place]), rows.columns[number].type
        check_assignable(source, start, own, wanted)
        cast = cast_to(ColumnRef("c"), own, wanted)
        column = rows.data.column(number)
        columns.append(column if own == wanted else evaluate_columns(cast, pa.table([column], names=["c"])))
    return columns


def whole_rows(
    table: Table, places: Sequence[int], columns: Sequence[pa.Array | pa.ChunkedArray], rows: int, values: Parameters
) -> pa.Table:
    """Rows of a table, with the defaults of the columns that are not given."""
    given, defaults = dict(zip(places, columns, strict=True)), table.default_row(values.moment)
    arrays = [
        given[place] if place in given else pa.repeat(pa.scalar(defaults[place], field.type), rows)
        for place, field in enumerate(arrow_schema(table))
    ]
    return pa.table(arrays, names=list(table.column_names))


# UPDATE and DELETE


def has_query(*nodes: exp.Expr | None) -> bool:
    """Whether some of the expressions have a subquery."""
    return any(node is not None and node.find(exp.Query, exp.Exists) is not None for node in nodes)


def delete(
    definitions: Definitions, statement: Delete, values: Parameters, batch: Batch, counts: list[int], taken: Taken
) -> None:
    """Adds a DELETE to a batch; `counts` gets the number of rows, and `taken` those that go, if they are requested."""
    source, where = statement.source, statement.where
    table = changed_table(definitions, source, statement.table)
    if statement.returning or has_query(where):
        select = _select(statement.table, table, [], where, values, source)
        old = made_rows(definitions, source, select, batch).data
        batch.delete(table.name, old.rename_columns(list(table.column_names)))
        taken.append(old)
        counts.append(old.num_rows)
        return
    condition = None
    if where is not None:
        where = with_values(source, where, values)
        condition = read_condition(source, _from(statement.table), where, table, values)
    batch.change(table.name, table_change.DeleteWhere(condition, counts.append))


def update(
    definitions: Definitions, statement: Update, values: Parameters, batch: Batch, counts: list[int], taken: Taken
) -> None:
    """Adds an UPDATE to a batch; `counts` gets the number of rows, and `taken` the new ones, if they are requested."""
    source, where = statement.source, statement.where
    table = changed_table(definitions, source, statement.table)
    places = positions(source, table, [name for name, _ in statement.values])
    types = [declared_type(table, table.columns[place]) for place in places]
    written = [node for _, node in statement.values]
    given = [with_time(node, values) for node in with_defaults(table, places, written, values)]
    nodes = [as_assigned(node, type_) for node, type_ in zip(given, types, strict=True)]
    if statement.returning or has_query(where, *nodes):
        select = _select(statement.table, table, nodes, where, values, source)
        rows = made_rows(definitions, source, select, batch)
        taken.append(replace_rows(source, table, places, rows, nodes, batch))
        counts.append(int(rows.data.num_rows))
        return
    from_ = _from(statement.table)
    condition = None
    if where is not None:
        condition = read_condition(source, from_, with_values(source, where, values), table, values)
    read = partial(read_value, source, from_, table=table, values=values)
    made = {place: read(node, wanted=type_) for place, node, type_ in zip(places, nodes, types, strict=True)}
    batch.change(table.name, table_change.Update(condition, made, counts.append))


def with_defaults(table: Table, places: Sequence[int], nodes: Sequence[exp.Expr], values: Parameters) -> list[exp.Expr]:
    """The values that columns get, with constants in the place of DEFAULT."""
    defaults = table.default_row(values.moment)
    return [
        in_place_of(constant_node(defaults[place], "default"), node) if is_default(node, table) else node
        for place, node in zip(places, nodes, strict=True)
    ]


def _from(table: exp.Table) -> exp.Select:
    return exp.Select(from_=exp.From(this=table.copy()))


def _select(
    node: exp.Table, table: Table, new: Sequence[exp.Expr], where: exp.Expr | None, values: Parameters, source: SqlText
) -> exp.Select:
    """The rows that a condition holds for, and expressions over them."""
    select = _from(node)
    select.set("expressions", [*old_columns(node, table), *new_columns(source, new, values)])
    if where is not None:
        select.set("where", exp.Where(this=with_values(source, where, values)))
    return select


def old_columns(node: exp.Table, table: Table) -> list[exp.Expr]:
    """All columns of a table, as the rows that go have them."""
    return [
        exp.alias_(column(node, name), _OLD.format(number), quoted=True)
        for number, name in enumerate(table.column_names)
    ]


def column(node: exp.Table | exp.Expr, name: str) -> exp.Column:
    """A column of an occurrence of a table."""
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(node.alias_or_name, quoted=True))


def new_columns(source: SqlText, nodes: Sequence[exp.Expr], values: Parameters) -> list[exp.Expr]:
    """Expressions for the rows that come."""
    made = [with_values(source, node, values) for node in nodes]
    return [
        exp.alias_(exp.cast(node, "string") if isinstance(node, exp.Null) else node, _NEW.format(number), quoted=True)
        for number, node in enumerate(made)
    ]


def replace_rows(
    source: SqlText, table: Table, places: Sequence[int], rows: Rows, nodes: Sequence[exp.Expr], batch: Batch
) -> pa.Table:
    """Takes the old rows away and adds the new ones, which it returns."""
    width = len(table.columns)
    old = [rows.data.column(number) for number in range(width)]
    new = list(old)
    for place, number, node in zip(places, range(width, rows.data.num_columns), nodes, strict=True):
        new[place] = assigned(source, node, rows, number, table, place)
    batch.delete(table.name, pa.table(old, names=list(table.column_names)))
    come = pa.table(new, names=list(table.column_names))
    batch.insert(table.name, come)
    return come


def assigned(
    source: SqlText, node: exp.Expr, rows: Rows, number: int, table: Table, place: int
) -> pa.Array | pa.ChunkedArray:
    """A column of a SELECT as a column of the table takes it."""
    wanted, own = declared_type(table, table.columns[place]), rows.columns[number].type
    if isinstance(node, exp.Null):
        return pa.nulls(rows.data.num_rows, arrow_type(wanted))
    check_assignable(source, node, own, wanted)
    if own == wanted:
        return rows.data.column(number)
    data = pa.table([rows.data.column(number)], names=["c"])
    return evaluate_columns(cast_to(ColumnRef("c"), own, wanted), data)
