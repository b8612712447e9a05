"""Aggregates of other systems: what sqlglot's translation of them would lose."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from ivme.query.dialect_asked import Asked
from ivme.query.dialect_functions import SPARKS
from ivme.query.dialect_written import written

Rule = Callable[[Asked, exp.Expr], exp.Expr | None]
"""What a node is in Spark's SQL, or None if it is the same there; refuses what has no translation."""

_DROPS_NULLS = SPARKS | {"snowflake", "clickhouse"}
"""Systems whose ARRAY_AGG leaves NULLs out, and is empty over nothing, as Spark's."""


def called(name: str, *arguments: exp.Expr | str) -> exp.Expr:
    """A call as Spark writes it; texts are its constants."""
    return exp.Anonymous(
        this=name, expressions=[exp.Literal.string(each) if isinstance(each, str) else each for each in arguments]
    )


def _array_agg(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """With its ORDER BY; of arguments that may be NULL only where NULLs are left out there, too."""
    value = node.this
    while isinstance(value, exp.Order | exp.Limit | exp.Distinct):
        if isinstance(value, exp.Limit):
            raise asked.refusal(
                f"LIMIT in {asked.sql(node)} is not supported", "use QUALIFY ROW_NUMBER() in a subquery"
            )
        value = value.expressions[0] if isinstance(value, exp.Distinct) else value.this
    if asked.dialect in _DROPS_NULLS:
        return called("ARRAY_AGG", node.this)
    if isinstance(node.parent, exp.IgnoreNulls):
        node.parent.replace(called("ARRAY_AGG", node.this))
        return None
    if not asked.is_filled(value):
        shown = asked.sql(value)
        raise asked.refusal(
            f"ARRAY_AGG keeps NULLs in {asked.dialect} and leaves them out in Spark, and {shown} may be NULL",
            f"write {asked.sql(node)} FILTER (WHERE {shown} IS NOT NULL), or declare the column NOT NULL",
        )
    return _of_rows(node, called("ARRAY_AGG", node.this), value)


def _of_rows(node: exp.Expr, call: exp.Expr, value: exp.Expr) -> exp.Expr | None:
    """The call, which is NULL where it sees no row: elsewhere than in groups, or behind a FILTER."""
    kept = node.parent if isinstance(node.parent, exp.Filter) else None
    select = node.find_ancestor(exp.Select)
    if kept is None and select is not None and select.args.get("group"):
        return call
    counted, shown = (_kept(each, kept) for each in (exp.Count(this=value.copy()), call))
    condition = exp.GT(this=counted, expression=exp.Literal.number(0))
    case = exp.Case(ifs=[exp.If(this=condition, true=shown)])
    if kept is None:
        return case
    kept.replace(case)
    return None


def _kept(call: exp.Expr, kept: exp.Filter | None) -> exp.Expr:
    return call if kept is None else exp.Filter(this=call, expression=kept.expression.copy())


def _percentile(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x), which sqlglot takes for the approximate one."""
    name = "PERCENTILE_CONT" if isinstance(node, exp.PercentileCont) else "PERCENTILE_DISC"
    if isinstance(node.parent, exp.WithinGroup):
        return called(name, node.this)
    fraction = node.args.get("quantile") or node.expression
    if not isinstance(fraction, exp.Literal) or fraction.is_string:
        raise asked.refusal(f"{asked.sql(node)} has a fraction that is not a constant", f"write {name}(0.5)")
    order = exp.Order(expressions=[exp.Ordered(this=node.this, nulls_first=True)])
    return exp.WithinGroup(this=called(name, fraction), expression=order)


def _quantile(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    if asked.dialect != "duckdb":
        raise asked.unknown(node)
    return _percentile(asked, node)


def _median(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    if asked.kind(node.this) in ("int", "float"):
        return None
    raise asked.refusal(
        f"{asked.sql(node)} has the digits of its argument in duckdb, and those of a float in Spark",
        "write MEDIAN(CAST(x AS DOUBLE))",
    )


def _extreme(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """MAX_BY, which in DuckDB steps over rows whose first argument is NULL."""
    if asked.is_filled(node.this):
        return None
    raise asked.refusal(
        f"{asked.sql(node)} steps over rows whose first argument is NULL in duckdb, and not in Spark",
        f"add FILTER (WHERE {asked.sql(node.this)} IS NOT NULL)",
    )


def _text(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """STRING_AGG, whose separator is a comma in BigQuery and SQLite unless it is said."""
    if node.args.get("separator") is None and asked.dialect in ("bigquery", "duckdb", "sqlite"):
        node.set("separator", exp.Literal.string(","))
    value = node.this
    while isinstance(value, exp.Order | exp.Distinct):
        value = value.expressions[0] if isinstance(value, exp.Distinct) else value.this
    written(asked, node, value)
    return None


def _count_if(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """COUNT_IF, which is a sum in DuckDB: NULL where no condition is true or false."""
    if isinstance(node.this, exp.Distinct):
        raise asked.unknown(node)
    one, nothing = (exp.Literal.number(number) for number in (1, 0))
    is_true, is_false = exp.Paren(this=node.this), exp.Not(this=exp.Paren(this=node.this.copy()))
    return exp.Sum(this=exp.Case(ifs=[exp.If(this=is_true, true=one), exp.If(this=is_false, true=nothing)]))


def _average(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    if asked.dialect not in ("tsql", "fabric", "redshift") or asked.kind(node.this) in ("float", "decimal"):
        return None
    raise asked.refusal(
        f"{asked.sql(node)} of integers is an integer in {asked.dialect}, and a float in Spark",
        "write AVG(CAST(x AS DOUBLE)), or SUM(x) DIV COUNT(x) without dialect=",
    )


ALWAYS: Mapping[str, Rule] = {
    "ArrayAgg": _array_agg,
    "PercentileCont": _percentile,
    "PercentileDisc": _percentile,
}
"""Rules for every system."""

AGGREGATES: Mapping[str, Mapping[str, Rule] | Rule] = {
    "Quantile": _quantile,
    "GroupConcat": _text,
    "Avg": _average,
    "Median": {"duckdb": _median},
    "CountIf": {"duckdb": _count_if},
    "ArgMax": {"duckdb": _extreme},
    "ArgMin": {"duckdb": _extreme},
}
"""Rules by sqlglot's name: for every system, or by system."""
