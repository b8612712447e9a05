"""Values that other systems write in another way where they become texts: casts, ||, CONCAT, STRING_AGG."""

from __future__ import annotations

from sqlglot import exp

from ivme.query.dialect_asked import Asked
from ivme.query.dialect_functions import POSTGRES

_MOMENTS = POSTGRES | {"redshift", "duckdb"}
"""Systems in which a date and an interval are a timestamp."""


def written(asked: Asked, node: exp.Expr, value: exp.Expr) -> None:
    """Sees to it that a value which becomes a text in a node is written there as in its system, or refuses it."""
    inner = value.unnest()
    if asked.kind(inner) == "float" and not isinstance(inner, exp.Sign) and not _is_plain(inner):
        message = f"{asked.sql(node)} writes a float as {asked.dialect} does, and Spark writes others, such as 1.0E10"
        raise asked.refusal(message, "write CAST(CAST(x AS DECIMAL(18, 6)) AS STRING)")
    if isinstance(inner, exp.Sign):  # a float in Spark
        inner.replace(exp.cast(inner.copy(), "bigint"))
    elif asked.dialect in _MOMENTS and _is_later_date(asked, inner):
        inner.replace(exp.cast(inner.copy(), "timestamp"))
    elif _is_truncated_date(asked, inner):
        raise asked.refusal(
            f"{asked.sql(node)} writes a timestamp in {asked.dialect}, and Spark a date or one without its zone",
            "truncate a timestamp: DATE_TRUNC('month', CAST(x AS TIMESTAMP))",
        )


def _is_plain(node: exp.Expr) -> bool:
    """Whether a number is a constant that is written as it stands there."""
    number = node.this if isinstance(node, exp.Neg) else node
    return isinstance(number, exp.Literal) and "e" not in number.this.lower()


def _is_later_date(asked: Asked, node: exp.Expr) -> bool:
    if not isinstance(node, exp.Add | exp.Sub):
        return False
    sides = [node.this.unnest(), node.expression.unnest()]
    return any(isinstance(each, exp.Interval) for each in sides) and any(
        asked.kind(each) == "date" or _is_later_date(asked, each) for each in sides
    )


def _is_truncated_date(asked: Asked, node: exp.Expr) -> bool:
    """Whether a rule has made a node of DATE_TRUNC of a date, which is none there."""
    if not isinstance(node, exp.Anonymous) or asked.dialect not in _MOMENTS:
        return False
    name = node.name.upper()
    return name == "TRUNC" or (name == "DATE_TRUNC" and asked.kind(node.expressions[1]) == "date")
