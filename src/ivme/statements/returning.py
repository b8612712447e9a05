"""RETURNING: the rows that a change brings, or takes away, through a list of expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from ivme.engine.codes.arrow_types import arrow_schema, arrow_type
from ivme.engine.expression.arrow_expression import evaluate_columns
from ivme.query.expression import ColumnRef, Expression
from ivme.query.inference import type_of
from ivme.query.model import Table
from ivme.query.sql_text import DIALECT, refuse_other_arguments
from ivme.query.table_expression import Parameters, read_expression
from ivme.query.types import Type
from ivme.statements.change import changed_table
from ivme.statements.constants import with_time, with_values
from ivme.statements.model import Delete, Insert, Merge, Update

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions

Change = Insert | Update | Delete | Merge
Item = tuple[str, Expression, Type | None]
"""A column of the answer: its name, what it is over the rows of the table, and its type."""


def returned_schema(definitions: Definitions, statement: Change) -> pa.Schema:
    """The columns of the answer, without making the change; parameters in RETURNING are taken for texts."""
    given = Parameters(dict.fromkeys(statement.parameters, ""))
    items = _items(definitions, statement, given)
    return pa.schema([(name, arrow_type(type_ or Type("string"))) for name, _, type_ in items])


def returned_rows(
    definitions: Definitions, statement: Change, values: Parameters, changed: Sequence[pa.Table]
) -> pa.Table:
    """The answer for rows that came, or went; they have the columns of the table."""
    table = changed_table(definitions, statement.source, statement.table)
    schema = arrow_schema(table)
    declared = [each.rename_columns(schema.names).cast(schema) for each in changed]
    rows = pa.concat_tables([schema.empty_table(), *declared])
    names, arrays = [], []
    for name, expression, type_ in _items(definitions, statement, values):
        array = evaluate_columns(expression, rows)
        names.append(name)
        arrays.append(array.cast(arrow_type(type_ or Type("string"))))
    return pa.table(arrays, names=names)


def _items(definitions: Definitions, statement: Change, values: Parameters) -> list[Item]:
    table = changed_table(definitions, statement.source, statement.table)
    return [item for node in statement.returning for item in _item(statement, node, table, values)]


def _item(statement: Change, node: exp.Expr, table: Table, values: Parameters) -> Iterator[Item]:
    source = statement.source
    if isinstance(node, exp.Star) or node.is_star:
        refuse_other_arguments(source, node, ("this", "table"), "write RETURNING *")
        yield from ((column.name, ColumnRef(column.name), column.type) for column in table.columns)
        return
    inner = node.unalias()
    select = exp.Select(from_=exp.From(this=statement.table.copy()))
    read = with_values(source, with_time(inner, values), values)
    expression = read_expression(source, select, read, table, values)
    yield node.alias or node.name or inner.sql(dialect=DIALECT), expression, type_of(expression, table)
