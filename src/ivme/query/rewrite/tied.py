"""Subqueries with LIMIT or set operations that are tied to the query around them, as plain SELECTs that say the same.

EXISTS (SELECT ... LIMIT 1)                          EXISTS (SELECT ...)
EXISTS (a UNION b), x IN (a UNION b)                 EXISTS a OR EXISTS b, x IN a OR x IN b
(SELECT x FROM S WHERE ... ORDER BY y DESC LIMIT 1)  (SELECT MAX_BY(x, y) FROM S WHERE ...), with care for NULL

Of rows that ORDER BY does not tell apart, the last takes the least x, NULL first; behind DESC the greatest.
"""

from __future__ import annotations

from sqlglot import exp

from ivme.query.exact_text import exact_text
from ivme.query.rewrite.clauses import is_aggregated
from ivme.query.sql_text import is_set

_CLAUSES = ("order", "limit", "offset")


def without_limit(query: exp.Expr) -> exp.Expr:
    """A query that has rows where that one has: a LIMIT of one row or more, and an order, say nothing then."""
    inner = query.unnest()
    if not isinstance(inner, exp.Query) or is_set(inner.args.get("offset")):
        return query
    if is_set(inner.args.get("limit")) and not _limit(inner):
        return query
    made = inner.copy()
    for clause in _CLAUSES:
        made.set(clause, None)
    return made


def sides_of_union(query: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """The two queries of which UNION has the rows; None for all other queries."""
    inner = query.unnest()
    if not isinstance(inner, exp.Union) or any(is_set(inner.args.get(c)) for c in (*_CLAUSES, "with_", "by_name")):
        return None
    return inner.this, inner.expression


def first_row(query: exp.Expr) -> exp.Select | None:
    """The value of the first row as an aggregate of all rows; None if it is not the value of one row in an order."""
    select = query.unnest()
    if not isinstance(select, exp.Select) or _limit(select) != 1 or is_set(select.args.get("offset")):
        return None
    order = select.args.get("order")
    keys = [] if order is None else order.expressions
    if is_aggregated(select) or len(select.expressions) != 1 or len(keys) > 1 or is_set(select.args.get("with_")):
        return None
    item = select.expressions[0]
    value = item.unalias().unnest()
    if isinstance(value, exp.Star) or isinstance(value.this, exp.Star):
        return None
    made = select.copy()
    for clause in (*_CLAUSES, "distinct"):
        made.set(clause, None)
    made.set("expressions", [_least(value) if not keys else _first(value, _key(keys[0].this.unnest(), item), keys[0])])
    return made


def _limit(query: exp.Expr) -> int | None:
    """The number of rows that LIMIT leaves; None if there is none, or if it is not a number."""
    clause = query.args.get("limit")
    number = None if clause is None else clause.args.get("expression") or clause.args.get("count")
    if not isinstance(number, exp.Literal) or number.is_string or not number.this.isdigit():
        return None
    return int(number.this)


def _key(key: exp.Expr, item: exp.Expr) -> exp.Expr:
    """What is ordered by: a position, or the name of the only column, is that column."""
    is_position = isinstance(key, exp.Literal) and not key.is_string
    is_name = isinstance(key, exp.Column) and not key.table and key.name.lower() == item.alias.lower()
    return item.unalias().unnest() if is_position or is_name else key


def _first(value: exp.Expr, key: exp.Expr, ordered: exp.Expr) -> exp.Expr:
    """The value where the key is first; rows without a key come first or last."""
    if exact_text(value) == exact_text(key):
        extreme = (exp.Max if ordered.args.get("desc") else exp.Min)(this=value.copy())
        every = _is(exp.EQ, exp.Count(this=value.copy()), exp.Count(this=exp.Star()))
        return exp.Case(ifs=[exp.If(this=every, true=extreme)]) if ordered.args.get("nulls_first") else extreme
    without = exp.Case(ifs=[exp.If(this=exp.Is(this=key.copy(), expression=exp.Null()), true=value.copy())])
    missing = exp.Case(ifs=[exp.If(this=exp.Is(this=key.copy(), expression=exp.Null()), true=exp.Literal.number(1))])
    found = exp.ArgMax if ordered.args.get("desc") else exp.ArgMin
    known = found(this=value.copy(), expression=key.copy())
    nulls = _least(without, exp.Count(this=missing.copy()))
    if ordered.args.get("nulls_first"):
        ifs = [exp.If(this=_is(exp.EQ, exp.Count(this=missing), exp.Literal.number(0)), true=known)]
        return exp.Case(ifs=ifs, default=nulls)
    some = _is(exp.GT, exp.Count(this=key.copy()), exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=some, true=known)], default=nulls)


def _least(value: exp.Expr, rows: exp.Expr | None = None) -> exp.Expr:
    """The least value of some rows, of which there are `rows`, NULL first."""
    every = _is(exp.EQ, exp.Count(this=value.copy()), exp.Count(this=exp.Star()) if rows is None else rows)
    return exp.Case(ifs=[exp.If(this=every, true=exp.Min(this=value.copy()))])


def _is(test: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return test(this=left, expression=right)
