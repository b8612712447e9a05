"""Queries in the SQL of other systems, translated to Spark's by sqlglot.

    create_view("v", 'SELECT "city", total::int / orders FROM sales', dialect="postgres")

Where the system of a text rounds the quotient of two integers, so does the translation, and NULLs come where they came.
sqlglot translates functions by name; those that mean something else get that meaning by a rule, and those that nobody
compared are refused. From here on the view is the translated text: errors quote it, and a directory stores it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from ivme.errors import ParseError, PlanError, UnsupportedError, shown
from ivme.query.dialect_aggregates import AGGREGATES, ALWAYS, Rule
from ivme.query.dialect_asked import Asked, asked
from ivme.query.dialect_functions import SPARKS, may_differ, means_the_same
from ivme.query.dialect_numbers import NUMBERS
from ivme.query.dialect_texts import TEXTS
from ivme.query.dialect_times import CALLS, TIMES
from ivme.query.model import Table
from ivme.query.sql_text import DIALECT

_UNTESTED = ("", "dax", "prql", "solr", "tableau")
"""What sqlglot reads although it is not SQL, or not a system's."""

_CUT_OFF = ("clickhouse", "databricks", "fabric", "hive", "spark", "spark2", "sqlite", "tsql")
"""Systems whose casts of fractions to integers cut off, as Spark's do."""

_FRACTIONS = ("float", "decimal", "unknown")
_RULES: Mapping[str, Mapping[str, Rule] | Rule] = {**AGGREGATES, **NUMBERS, **TEXTS, **TIMES}


def dialects() -> list[str]:
    """The names of the systems whose SQL is read."""
    found = sqlglot.Dialect.classes.items()  # ivme's own are there, too, once they are imported
    return sorted(name for name, each in found if name not in _UNTESTED and each.__module__.startswith("sqlglot."))


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


def translated(text: str, dialect: str, tables: Iterable[Table] = (), *, wide: bool = False) -> str:
    """A query of another system in Spark's words. `wide` says that all integers have 64 bits there.

    >>> translated("SELECT s || 'x' AS k FROM t ORDER BY a", "postgres")
    "SELECT s || 'x' AS k FROM t ORDER BY a NULLS LAST"
    """
    try:
        parsed = [each for each in sqlglot.parse(text, read=dialect) if each is not None]
    except SqlglotError as error:
        raise _unread(text, dialect, error) from error
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Query):
        raise ParseError(f"this is not one query in the SQL of {dialect}", text=text, instead="write one SELECT")
    statement = parsed[0]
    about = asked(text, statement, dialect, tables, wide=wide)
    _rounded(statement, about)
    _translate(statement, about)
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


def _rounded(statement: exp.Query, asked: Asked) -> None:
    """Makes quotients of integers whole numbers, if their system rounds them so; casts to integers that round are
    refused, since Spark's cut off."""
    for each in list(statement.find_all(exp.Div, exp.Cast)):
        if isinstance(each, exp.Cast):
            if asked.dialect not in _CUT_OFF and _may_round(each) and asked.kind(each.this) in _FRACTIONS:
                raise asked.refusal(
                    f"{asked.sql(each)} rounds in {asked.dialect}, and cuts off in Spark",
                    "round, or cut off, before: CAST(ROUND(...) AS INT), or CAST(FLOOR(...) AS INT)",
                )
        elif isinstance(each, exp.Div) and each.args.get("typed"):
            _divided(each, asked)


def _divided(each: exp.Div, asked: Asked) -> None:
    kinds = {asked.kind(each.this), asked.kind(each.expression)}
    if kinds == {"int"} and each.find(exp.Sum) is None:  # what a sum of integers is depends on their width
        each.replace(exp.IntDiv(this=each.this, expression=each.expression))
    elif asked.wide and kinds == {"int"} and asked.dialect == "postgres" and _sums(each.this, each.expression):
        return
    elif kinds <= {"int", "unknown"}:
        message = f"whether {asked.sql(each)} is rounded depends on types that are not known here"
        raise asked.refusal(message, "write CAST(... AS DOUBLE) for one of the two, or declare the columns")


def _sums(*nodes: exp.Expr) -> bool:
    """Whether one of some integers is a sum, or is added up or multiplied from one."""
    inner = [part for node in nodes if isinstance(node, exp.Paren | exp.Binary) for part in node.iter_expressions()]
    return any(isinstance(node, exp.Sum) for node in nodes) or (bool(inner) and _sums(*inner))


def _may_round(cast: exp.Cast) -> bool:
    """Whether a cast is one to an integer, of what is not a whole number already."""
    whole = isinstance(cast.this, exp.Round | exp.Floor | exp.Ceil) and cast.this.args.get("decimals") is None
    is_said = isinstance(cast.this, exp.Placeholder | exp.Null)  # `$1::int` says of which type a value is
    return bool(cast.to.is_type(*exp.DataType.INTEGER_TYPES)) and not whole and not is_said


def _translate(statement: exp.Query, asked: Asked) -> None:
    """Gives every function its meaning, the innermost first."""
    for node in reversed(list(statement.walk())):
        rule = _rule(node, asked.dialect)
        made = rule(asked, node) if rule else None
        if made is not None:
            node.replace(made)


def _rule(node: exp.Expr, dialect: str) -> Rule | None:
    name = type(node).__name__
    if name in ALWAYS:
        return ALWAYS[name]
    if dialect in SPARKS:
        return None
    if isinstance(node, exp.Anonymous):
        word = node.name.lower()
        return CALLS.get((dialect, word), _refused if may_differ(word, dialect) else None)
    found = _RULES.get(name)
    rule = found.get(dialect) if isinstance(found, Mapping) else found
    if rule is None and isinstance(node, exp.Func) and not means_the_same(name, dialect):
        return _refused
    return rule


def _refused(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    raise asked.unknown(node)
