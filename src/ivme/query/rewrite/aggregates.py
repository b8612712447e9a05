"""Aggregates as the language of blocks has them: FILTER becomes CASE.

COUNT(*) FILTER (WHERE a > 1), SUM(b) FILTER (WHERE a > 1), MAX_BY(c, b) FILTER (WHERE a > 1)
COUNT(CASE WHEN a > 1 THEN 1 END), SUM(CASE WHEN a > 1 THEN b END), MAX_BY(c, CASE WHEN a > 1 THEN b END)

Every aggregate leaves out rows whose value is NULL; MAX_BY and MIN_BY those that have nothing to compare.
"""

from __future__ import annotations

from sqlglot import exp

from ivme.query.rewrite.clauses import replaced


def plain_aggregates(select: exp.Select) -> exp.Select:
    """The SELECT without FILTER."""
    places = ("expressions", "having")
    if not any(found for place in places for found in _filters(select.args.get(place))):
        return select
    made = select.copy()
    made.set("expressions", [replaced(item, _without_filter) for item in select.expressions])
    if select.args.get("having") is not None:
        made.set("having", replaced(select.args["having"], _without_filter))
    return made


def _filters(value: object) -> list[exp.Expr]:
    nodes = value if isinstance(value, list) else [value]
    return [found for node in nodes if isinstance(node, exp.Expr) for found in node.find_all(exp.Filter)]


def _without_filter(node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node, exp.Filter):
        return None
    aggregate: exp.Expr = node.this.copy()
    condition = node.expression.this
    if isinstance(aggregate, exp.WithinGroup):  # the percentile of what is ordered
        for each in aggregate.expression.expressions:
            each.set("this", _where(condition, each.this))
    elif isinstance(aggregate, exp.ArgMax | exp.ArgMin):
        aggregate.set("expression", _where(condition, aggregate.expression))
    elif isinstance(aggregate, exp.Anonymous):  # the parser has no class for MEAN, EVERY, SOME and STD
        for value in aggregate.expressions[:1]:
            aggregate.set("expressions", [_filtered(condition, value), *aggregate.expressions[1:]])
    else:
        aggregate.set("this", _filtered(condition, aggregate.this))
    return aggregate


def _filtered(condition: exp.Expr, argument: exp.Expr | None) -> exp.Expr:
    """The argument of an aggregate where the condition is true, NULL elsewhere; DISTINCT and ORDER BY stay."""
    if argument is None or isinstance(argument, exp.Star):
        return _where(condition, exp.Literal.number(1))
    if isinstance(argument, exp.Order):
        if isinstance(argument.this, exp.Distinct):  # ordered by itself: by anything else it is refused
            for each in argument.expressions:
                each.set("this", _where(condition, each.this))
        argument.set("this", _filtered(condition, argument.this))
        return argument
    if isinstance(argument, exp.Distinct):
        argument.set("expressions", [_where(condition, each) for each in argument.expressions])
        return argument
    return _where(condition, argument)


def _where(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])
