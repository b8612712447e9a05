"""DEFAULT of a column: a constant, or the time of the statement. It is read once, when the table is declared."""

from __future__ import annotations

from sqlglot import exp

from ivme.query.expression import evaluate
from ivme.query.model import Table
from ivme.query.sql_text import DIALECT, SqlText
from ivme.query.table import Default
from ivme.query.table_expression import Parameters, read_value
from ivme.query.types import Type
from ivme.query.written import in_place_of

NOTHING = Table("values", ())
"""What expressions without columns are over."""

_TIMES = {"date": "DATE", "timestamp": "TIMESTAMP"}
_INSTEAD = "write a constant, or now() for a TIMESTAMP and current_date() for a DATE; give other values in INSERT"


def from_nothing() -> exp.Select:
    """A SELECT from a table without columns."""
    return exp.Select(from_=exp.From(this=exp.Table(this=exp.to_identifier(NOTHING.name, quoted=True))))


def cast_text(text: str, type_: str) -> exp.Expr:
    """A constant of a type that is written as a string."""
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build(type_, dialect="spark"))


def as_assigned(node: exp.Expr, wanted: Type) -> exp.Expr:
    """A value as a column takes it: a string for a date or a timestamp is a literal of that type."""
    if isinstance(node, exp.Literal) and node.is_string and wanted.kind in _TIMES:
        return in_place_of(cast_text(node.name, _TIMES[wanted.kind]), node)
    return node


def is_time(node: exp.Expr) -> bool:
    """Whether an expression is NOW() or the like, and nothing else."""
    named = isinstance(node, exp.Anonymous) and node.name.upper() == "NOW" and not node.expressions
    return named or isinstance(node, exp.CurrentTimestamp | exp.CurrentDate)


def read_default(source: SqlText, node: exp.Expr, type_: Type) -> Default | None:
    """What DEFAULT says of a column of that type; None for NULL, which is the default anyway."""
    node = node.unnest()
    if is_time(node):
        if type_.kind not in _TIMES or (isinstance(node, exp.CurrentDate) and type_.kind != "date"):
            raise source.unsupported(
                f"{node.sql(dialect=DIALECT)} cannot be the DEFAULT of a column of type {type_}", node, _INSTEAD
            )
        return Default(is_time=True)
    if type_.is_nested or node.find(exp.Column, exp.Placeholder, exp.Query) is not None:
        raise source.unsupported("this is not supported as a DEFAULT", node, _INSTEAD)
    value = evaluate(read_value(source, from_nothing(), as_assigned(node, type_), NOTHING, type_, Parameters({})), {})
    return None if value is None else Default(value)
