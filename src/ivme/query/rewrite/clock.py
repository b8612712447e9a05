"""NOW() in WHERE, and the option `expire`: rows are compared with the clock of the database, which is a table.

    SELECT a FROM R WHERE ts > NOW() - INTERVAL '7' DAY
    SELECT a FROM R, ivme_clock WHERE ts > ivme_clock.`#now` - INTERVAL '7' DAY

The clock has one row, which `db.advance` replaces. So moving it on is a change like any other: it is logged, it takes
effect with all that follows from it or not at all, and followers of a view get the rows that come and go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ivme.errors import PlanError, shown
from ivme.query.clock import CLOCK_TABLE, NOW
from ivme.query.model import Table
from ivme.query.names import CLOCK
from ivme.query.rewrite.clauses import condition_of, own_nodes, replaced, set_where
from ivme.query.rewrite.script import column
from ivme.query.sql_text import DIALECT, SqlText

if TYPE_CHECKING:
    from collections.abc import Iterable

_NEVER = "9999-12-31 23:59:59.999999"
"""The expiry of rows that never leave."""


def with_clock(source: SqlText, node: exp.Expr, expire: object = None) -> exp.Expr:
    """The query over the clock, if it compares rows with NOW(), or if they expire."""
    if expire is None and not reads_clock(node):
        return node
    made = node.copy()
    if expire is not None:
        _expire(source, made, expire)
    for select in list(made.find_all(exp.Select)):
        conditions = condition_of(select)
        if any(_has_now(each) for each in conditions):
            set_where(select, [replaced(each, _time) if _has_now(each) else each.copy() for each in conditions])
            _join_clock(select)
    return made


def reads_clock(node: exp.Expr) -> bool:
    """Whether a query has NOW() somewhere."""
    return any(map(_is_now, node.find_all(exp.CurrentTimestamp, exp.Anonymous)))


def with_expiry(source: SqlText, node: exp.Expr, expire: object) -> str:
    """The text of a query whose rows expire, with the condition in its WHERE.

    >>> from ivme.query.sql import one_statement
    >>> with_expiry(*one_statement("SELECT a FROM R"), "ts")
    "SELECT a FROM R WHERE COALESCE(ts, CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP)) > CURRENT_TIMESTAMP()"
    """
    made = node.copy()
    _expire(source, made, expire)
    return made.sql(DIALECT)


def with_clock_table(tables: tuple[Table, ...], nodes: Iterable[exp.Expr]) -> tuple[Table, ...]:
    """The tables, and that of the clock if queries read it and it is not there yet."""
    is_read = any(each.name == CLOCK for node in nodes for each in node.find_all(exp.Table))
    return (*tables, CLOCK_TABLE) if is_read and all(each.name != CLOCK for each in tables) else tables


def _is_now(node: exp.Expr) -> bool:
    return isinstance(node, exp.CurrentTimestamp) or (isinstance(node, exp.Anonymous) and node.name.lower() == "now")


def _has_now(condition: exp.Expr) -> bool:
    """Whether a comparison reads the time; in other conditions NOW() stays, and is refused."""
    is_compared = isinstance(condition, exp.LT | exp.LTE | exp.GT | exp.GTE | exp.Between)
    return is_compared and any(_is_now(each) for each in own_nodes(condition))


def _time(node: exp.Expr) -> exp.Expr | None:
    return column(CLOCK, NOW) if _is_now(node) else None


def _join_clock(select: exp.Select) -> None:
    tables = [each.this for each in (select.args.get("from_"), *(select.args.get("joins") or ())) if each is not None]
    if not any(isinstance(each, exp.Table) and each.alias_or_name == CLOCK for each in tables):
        select.append("joins", exp.Join(this=exp.Table(this=exp.to_identifier(CLOCK)), kind="CROSS"))


def _expire(source: SqlText, node: exp.Expr, expire: object) -> None:
    """Adds the condition that the expiry of a row is still to come; a row whose expiry is NULL never leaves."""
    if not isinstance(node, exp.Select) or node.args.get("from_") is None:
        instead = "compare with NOW() in the WHERE of each SELECT"
        raise source.unsupported("the option expire is for a single SELECT with FROM", node, instead)
    never = exp.Cast(this=exp.Literal.string(_NEVER), to=exp.DataType.build("TIMESTAMP"))
    moment = exp.Coalesce(this=read_expiry(expire), expressions=[never])
    condition = exp.GT(this=moment, expression=exp.CurrentTimestamp())
    set_where(node, [*(each.copy() for each in condition_of(node)), condition])


def read_expiry(expire: object) -> exp.Expr:
    """The expression that the option is; PlanError if it is not one.

    >>> read_expiry("ts + INTERVAL '7' DAY").sql("spark")
    "ts + INTERVAL '7' DAY"
    """
    message = f"expire must be an SQL expression, as ts + INTERVAL '7' DAY is one; it is {shown(expire)}"
    if not isinstance(expire, str):
        raise PlanError(message)
    try:
        found = sqlglot.parse_one(expire, dialect=DIALECT)
    except SqlglotError:
        raise PlanError(message) from None
    if isinstance(found, exp.Query | exp.Command | exp.Alias) or found.find(exp.Query) is not None or _is_now(found):
        raise PlanError(message)
    for node in found.walk():
        node._meta = None  # offsets of this text are not those of the query
    return found
