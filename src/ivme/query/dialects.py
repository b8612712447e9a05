"""Queries in the SQL of other systems, translated to Spark's by sqlglot.

    create_view("v", 'SELECT "city", total::int / orders FROM sales', dialect="postgres")

Where the system of a text rounds the quotient of two integers, so does the translation, and NULLs come where they came.
What sqlglot cannot translate is refused, and so are casts that round there and cut off here. From here on the view is
the translated text: errors quote it, and a directory stores it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from ivme.errors import ParseError, PlanError, UnsupportedError, shown
from ivme.query.model import Table
from ivme.query.sql_text import DIALECT
from ivme.query.sql_types import type_node

_UNTESTED = ("", "dax", "prql", "solr", "tableau")
"""What sqlglot reads although it is not SQL, or not a system's."""

_CUT_OFF = ("clickhouse", "databricks", "fabric", "hive", "spark", "spark2", "sqlite", "tsql")
"""Systems whose casts of fractions to integers cut off, as Spark's do."""

_MARK = "rounded"


def dialects() -> list[str]:
    """The names of the systems whose SQL is read."""
    return sorted(each for each in sqlglot.Dialect.classes if each not in _UNTESTED)


def in_spark(query: str, options: Mapping[str, object], tables: Iterable[Table] = ()) -> tuple[str, dict[str, object]]:
    """A query and the options of its view, both without the `dialect` that the options may name."""
    if "dialect" not in options:
        return query, dict(options)
    rest = {name: value for name, value in options.items() if name != "dialect"}
    dialect = options["dialect"]
    if not isinstance(dialect, str) or dialect.lower() not in dialects():
        raise PlanError(f"there is no dialect {shown(dialect)}; the dialects are {', '.join(dialects())}")
    if dialect.lower() == DIALECT or not isinstance(query, str):
        return query, rest
    return translated(query, dialect.lower(), tables), rest


def translated(text: str, dialect: str, tables: Iterable[Table] = ()) -> str:
    """A query of another system in Spark's words.

    >>> translated("SELECT s || 'x' AS k FROM t ORDER BY a", "postgres")
    "SELECT s || 'x' AS k FROM t ORDER BY a NULLS LAST"
    """
    try:
        parsed = [each for each in sqlglot.parse(text, read=dialect) if each is not None]
    except SqlglotError as error:
        raise _unread(text, dialect, error) from error
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Query):
        raise ParseError(f"this is not one query in the SQL of {dialect}", text=text, instead="write one SELECT")
    statement = _rounded(text, parsed[0], dialect, tables)
    try:
        return statement.sql(DIALECT, unsupported_level=ErrorLevel.RAISE)
    except SqlglotError as error:
        message = f"this cannot be translated from {dialect}: {str(error).splitlines()[0]}"
        raise UnsupportedError(message, text=text, instead="write that part in Spark's SQL") from error


def _unread(text: str, dialect: str, error: SqlglotError) -> ParseError:
    found = getattr(error, "errors", None) or [{}]
    line, column = found[0].get("line"), found[0].get("col")
    position = None
    if line and column:
        before = sum(len(each) + 1 for each in text.split("\n")[: line - 1])
        position = min(before + column - len(found[0].get("highlight") or " "), len(text))
    reason = found[0].get("description") or str(error).splitlines()[0]
    return ParseError(f"this is not SQL of {dialect}: {reason}", text=text, position=position)


def _rounded(text: str, statement: exp.Query, dialect: str, tables: Iterable[Table]) -> exp.Query:
    """The statement in which a quotient of integers is a whole number, if its system rounds it so; casts to integers
    that round are refused, since Spark's cut off."""
    marked: list[exp.Expr] = [each for each in statement.find_all(exp.Div) if each.args.get("typed")]
    if dialect not in _CUT_OFF:
        marked += [each for each in statement.find_all(exp.Cast) if _may_round(each)]
    if not marked:
        return statement
    for number, each in enumerate(marked):
        each.meta[_MARK] = number
    types = _types(statement, dialect, tables)
    for number, each in enumerate(marked):
        kinds = types.get(number, {"unknown"})
        if isinstance(each, exp.Cast):
            if kinds & {"fraction", "unknown"}:
                raise UnsupportedError(
                    f"{each.sql(dialect)} rounds in {dialect}, and cuts off in Spark",
                    text=text,
                    instead="round, or cut off, before: CAST(ROUND(...) AS INT), or CAST(FLOOR(...) AS INT)",
                )
        elif kinds == {"int"} and each.find(exp.Sum) is None:  # what a sum of integers is depends on their width
            each.replace(exp.IntDiv(this=each.this, expression=each.expression))
        elif not kinds & {"fraction", "other"}:
            message = f"whether {each.sql(dialect)} is rounded depends on types that are not known here"
            instead = "write CAST(... AS DOUBLE) for one of the two, or declare the columns"
            raise UnsupportedError(message, text=text, instead=instead)
    return statement


def _may_round(cast: exp.Cast) -> bool:
    """Whether a cast is one to an integer, of what is not a whole number already."""
    whole = isinstance(cast.this, exp.Round | exp.Floor | exp.Ceil) and cast.this.args.get("decimals") is None
    return bool(cast.to.is_type(*exp.DataType.INTEGER_TYPES)) and not whole


def _types(statement: exp.Query, dialect: str, tables: Iterable[Table]) -> dict[int, set[str]]:
    """For each marked quotient or cast the kinds of what it is computed from."""
    schema = MappingSchema(dialect=dialect)
    for table in tables:
        if all(column.type is not None for column in table.columns):
            columns = {column.name: type_node(column.type) for column in table.columns if column.type is not None}
            schema.add_table(table.name, columns, dialect=dialect, match_depth=False)
    try:
        qualified = qualify(statement.copy(), schema=schema, dialect=dialect, validate_qualify_columns=False)
        typed = annotate_types(qualified, schema=schema, dialect=dialect)
    except SqlglotError:
        return {}  # names that are not there: the view is refused for them, with their place
    found = [each for each in typed.find_all(exp.Div, exp.Cast) if _MARK in each.meta]
    return {
        each.meta[_MARK]: {_kind(part) for part in (each.this, each.args.get("expression")) if part} for each in found
    }


def _kind(node: exp.Expr) -> str:
    if node.is_type(*exp.DataType.INTEGER_TYPES):
        return "int"
    if node.is_type(*exp.DataType.REAL_TYPES):
        return "fraction"
    known = node.type is not None and not node.is_type(exp.DataType.Type.UNKNOWN, exp.DataType.Type.NULL)
    return "other" if known else "unknown"
