"""One SQL expression over the rows of one table, as `update` and `delete_where` take it, with its parameters' values.

It is read as a part of a SELECT from the table, so that it means what it means in a view; unlike there, a parameter
stands for a value that is known, and may stand wherever a constant may.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlglot import exp

from ivme.errors import SchemaError, UnknownNameError, shown
from ivme.query.expression import Expression, Literal, is_predicate
from ivme.query.inference import BOOL, literal_type, type_of
from ivme.query.model import Table
from ivme.query.names import check_text
from ivme.query.one_type import cast_to
from ivme.query.sql_expression import Scalars
from ivme.query.sql_from import read_from
from ivme.query.sql_kinds import compared
from ivme.query.sql_scope import Key, KnownTables
from ivme.query.sql_strictness import refuse_gaps, refuse_odd_names
from ivme.query.sql_text import DIALECT, SqlText, read_statements, refuse_other_arguments
from ivme.query.sql_where import Body
from ivme.query.types import Type

_ONE = "write one expression over the table's columns"
_NUMBERS = ("int", "decimal", "float")


@dataclass(frozen=True, slots=True)
class Parameters:
    """The values of parameters, and which of them were requested."""

    given: Mapping[str, Any]
    used: set[str] = field(default_factory=set)
    moment: datetime = field(default_factory=lambda: datetime.now(UTC).replace(tzinfo=None))
    """When the statement began, in UTC."""

    def refuse_unused(self) -> None:
        """Refuses values for parameters that no text has."""
        unused = [name for name in self.given if name not in self.used]
        if unused:
            raise UnknownNameError(f"there is no parameter :{unused[0]} in what is to be changed; leave it out")


@dataclass(frozen=True, slots=True)
class _Valued(Scalars):
    """Expressions whose parameters have values."""

    values: Parameters

    def translate(self, node: exp.Expr, depth: int = 0) -> Expression:
        if not isinstance(node, exp.Placeholder) or not node.this:
            return Scalars.translate(self, node, depth)
        if node.name not in self.values.given:
            raise self.source.unknown(f"the parameter :{node.name} has no value", node, f"give {node.name}=...")
        self.values.used.add(node.name)
        return literal(self.values.given[node.name], f"the parameter :{node.name}")


def literal(value: Any, what: str) -> Literal:
    """A Python value as a constant."""
    if isinstance(value, list | tuple | Mapping):
        raise SchemaError(
            f"{what} is an array or a struct, which conditions here do not take; name the rows by other columns"
        )
    if value is not None and (literal_type(value) is None or value != value):
        raise SchemaError(f"{what} is {shown(value)}, which no column holds")
    return Literal(value)


def parse_condition(text: str, table: Table, values: Parameters) -> Expression:
    """A condition over a table's rows.

    >>> from ivme.query.model import table
    >>> str(parse_condition("a = :a AND b IS NULL", table("R", {"a": "int", "b": "int"}), Parameters({"a": 1})))
    '(a = 1) AND (b IS NULL)'
    """
    source, select = _select(text, f"SELECT * FROM {_quoted(table.name)} WHERE {text}", "where")
    where = select.args.get("where")
    if where is None:
        raise source.broken("there is no condition", None, _ONE)
    refuse_other_arguments(source, where, ("this",), _ONE)
    return read_condition(source, select, where.this, table, values)


def read_condition(source: SqlText, select: exp.Select, node: exp.Expr, table: Table, values: Parameters) -> Expression:
    """A condition over the rows of the table that a SELECT is from."""
    body, expression = _read(source, select, node, table, values)
    kind = body.kind(Key(0, expression))
    if is_predicate(expression) is False or kind not in (None, "bool"):
        written = node.sql(dialect=DIALECT)
        raise source.unsupported(f"{written} is not a condition", node, compared(written, kind))
    return expression if kind == "bool" else cast_to(expression, None, BOOL)


def parse_value(text: str, table: Table, wanted: Type, values: Parameters) -> Expression:
    """An expression over a table's rows as a column takes it: numbers are converted as Spark does, nothing else is."""
    source, select = _select(text, f"SELECT {text} FROM {_quoted(table.name)}", "expressions")
    if len(select.expressions) != 1 or isinstance(select.expressions[0], exp.Star | exp.Alias):
        raise source.unsupported("this is not one expression", None, _ONE)
    return read_value(source, select, select.expressions[0], table, wanted, values)


def read_value(
    source: SqlText, select: exp.Select, node: exp.Expr, table: Table, wanted: Type, values: Parameters
) -> Expression:
    """A value for a column, from the rows of the table that a SELECT is from."""
    expression = read_expression(source, select, node, table, values)
    own = type_of(expression, table)
    check_assignable(source, node, own, wanted)
    return cast_to(expression, own, wanted)


def read_expression(
    source: SqlText, select: exp.Select, node: exp.Expr, table: Table, values: Parameters
) -> Expression:
    """An expression over the rows of the table that a SELECT is from."""
    return _read(source, select, node, table, values)[1]


def check_assignable(source: SqlText, node: exp.Expr | int | None, own: Type | None, wanted: Type) -> None:
    """Refuses values of another kind than the column's; numbers are of one kind."""
    if own is not None and own.kind != wanted.kind and not {own.kind, wanted.kind}.issubset(_NUMBERS):
        message = f"the value is of type {own}, and the column of type {wanted}"
        raise source.unsupported(message, node, f"CAST it AS {wanted}, or give a value of that type")


def _select(given: str, text: str, clause: str) -> tuple[SqlText, exp.Select]:
    check_text(given)
    source, statements = read_statements(text, ("SELECT",), _ONE)
    refuse_gaps(source, statements)
    refuse_odd_names(source, statements)
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        raise source.unsupported("this is not one expression", None, _ONE)
    refuse_other_arguments(source, statements[0], ("expressions", "from_", clause), _ONE)
    return source, statements[0]


def _read(
    source: SqlText, select: exp.Select, node: exp.Expr, table: Table, values: Parameters
) -> tuple[Body, Expression]:
    scope = read_from(source, select, KnownTables(source, [table]), {}).scope
    scalars = _Valued(scope, (0,), values)
    scalars.refuse_queries(node)
    expression = scalars.translate(node)
    body = Body(scope)
    body.check_kinds(Key(0, expression), node)
    return body, expression


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
