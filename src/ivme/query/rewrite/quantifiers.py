"""IN, ANY and ALL: what they compare, and which of them say the same."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ivme.query.rewrite.clauses import is_aggregated

Test = Callable[[exp.Expr], exp.Expr]
"""From the only column of a subquery to a condition, which may have columns of the query around."""


def as_in(node: exp.Expr) -> exp.Expr:
    """`x = ANY (query)` as IN, and `x <> ALL (query)` as NOT IN."""
    kinds = ((exp.EQ, exp.Any, False), (exp.NEQ, exp.All, True))
    for comparison, quantifier, negated in kinds:
        if isinstance(node, comparison) and isinstance(node.expression, quantifier):
            query = node.expression.this.unnest()
            if isinstance(query, exp.Query):
                made = exp.In(this=node.this.copy(), query=exp.Subquery(this=query.copy()))
                return exp.Not(this=made) if negated else made
    return node


def quantified(node: exp.Expr) -> tuple[exp.Expr, Test, bool] | None:
    """The query of a comparison with ANY or ALL, what a row must fulfil to decide it, and whether it is ALL."""
    side = node.expression if isinstance(node, exp.Binary) else None
    if not isinstance(side, exp.Any | exp.All) or not isinstance(side.this.unnest(), exp.Query):
        return None
    comparison, value, is_all = type(node), node.this, isinstance(side, exp.All)

    def test(item: exp.Expr) -> exp.Expr:
        made: exp.Expr = comparison(this=value.copy(), expression=item)
        if is_all:
            made = exp.Not(this=exp.Coalesce(this=made, expressions=[exp.Boolean(this=False)]))
        return made

    return side.this.unnest(), test, is_all


def values_of(node: exp.Expr) -> list[exp.Expr]:
    inner = node.unnest()
    return list(inner.expressions) if isinstance(inner, exp.Tuple) else [inner]


def is_one_row(query: exp.Expr) -> bool:
    """Whether a query is an aggregate of all its rows."""
    select = query.unnest()
    return (
        isinstance(select, exp.Select)
        and is_aggregated(select)
        and select.args.get("group") is None
        and select.args.get("having") is None
    )
