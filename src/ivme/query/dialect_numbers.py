"""Numbers and casts of other systems in Spark's words: logarithms, rounding, choices, types."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from ivme.query.dialect_aggregates import Rule, called
from ivme.query.dialect_asked import Asked
from ivme.query.dialect_functions import KNOWN, POSTGRES, TRINO
from ivme.query.dialect_written import written

_COMMON = POSTGRES | {"redshift", "duckdb", "sqlite", "exasol", "teradata"}
"""Systems whose LOG of one argument is of base 10."""

_BASE_FIRST = POSTGRES | {"duckdb", "snowflake", "oracle", "mysql", "trino", "athena", "bigquery", "tsql"}
"""Systems of which sqlglot knows whether the base comes first."""

_HALF_AWAY = TRINO | {"duckdb", "snowflake", "bigquery", "oracle", "tsql", "fabric", "sqlite"}
"""Systems that round a half of a float away from zero, as Spark does."""

_SKIPS_NULLS = POSTGRES | {"redshift", "duckdb", "tsql", "fabric"}
_IS_NULL = TRINO | {"snowflake", "bigquery", "mysql", "oracle"}
"""Systems whose GREATEST is NULL if an argument is."""

_SCALES = {"duckdb": (18, 3), "mysql": (10, 0), **dict.fromkeys(("snowflake", *TRINO), (38, 0))} | dict.fromkeys(
    ("tsql", "fabric", "redshift"), (18, 0)
)
"""The digits of a DECIMAL that says none."""

_CUTS = POSTGRES | TRINO | {"redshift", "tsql", "fabric", "mysql"}
"""Systems whose CAST to VARCHAR(n) cuts off."""

_SAME_LENGTH = frozenset({"duckdb", "sqlite"})
"""Systems that do not look at the n of VARCHAR(n)."""

_TEXTS = (exp.DType.VARCHAR, exp.DType.NVARCHAR, exp.DType.TEXT)
_PADDED = (exp.DType.CHAR, exp.DType.NCHAR)


def _log(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """LOG(x) of base 10, and LOG(base, x)."""
    if node.expression is None:
        if asked.dialect not in _COMMON:
            raise asked.unknown(node)
        return _logarithm(asked, called("LOG10", node.this))
    if asked.dialect not in _BASE_FIRST:
        raise asked.unknown(node)
    return _logarithm(asked, called("LOG", node.this, node.expression)) if asked.dialect == "duckdb" else None


def _logarithm(asked: Asked, node: exp.Expr) -> exp.Expr:
    """A logarithm, which is -Infinity of 0 in DuckDB, and NULL in Spark."""
    number = node.expressions[-1]
    if asked.dialect != "duckdb" or (isinstance(number, exp.Literal) and number.this.strip("0.")):
        return node
    least = exp.cast(exp.Literal.string("-Infinity"), "double")
    is_zero = exp.EQ(this=exp.Paren(this=number.copy()), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=is_zero, true=least)], default=node)


def _ln(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    return _logarithm(asked, called("LN", node.this))


def _round(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """ROUND, which in PostgreSQL rounds the half of a float to the even number."""
    if node.args.get("truncate") or (node.args.get("casts_non_integer_decimals") and asked.dialect not in KNOWN):
        raise asked.unknown(node)
    if asked.dialect in _HALF_AWAY or asked.kind(node.this) in ("int", "decimal"):
        return None
    if asked.dialect == "postgres":
        is_float = _is_double(asked, node.this)
        if node.args.get("decimals") is not None or is_float is False:  # PostgreSQL rounds to digits decimals only
            return None
        if is_float:
            return called("BROUND", node.this)
    raise asked.refusal(
        f"{asked.sql(node)} may round a half to the even number in {asked.dialect}, and not in Spark",
        "round a decimal: ROUND(CAST(x AS DECIMAL(18, 6)))",
    )


def _is_double(asked: Asked, node: exp.Expr) -> bool | None:
    """Whether a number is a float in PostgreSQL, where 2.5 and the mean of integers are decimals; None if unknown."""
    if isinstance(node, exp.Literal | exp.IntDiv):
        return False
    if isinstance(node, exp.Column):
        return {"float": True, "int": False, "decimal": False}.get(asked.kind(node))
    if isinstance(node, exp.Cast):
        return bool(node.to.is_type(*exp.DataType.FLOAT_TYPES))
    if not isinstance(node, exp.Paren | exp.Neg | exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Avg | exp.Sum | exp.Abs):
        return None
    parts = {_is_double(asked, each) for each in node.iter_expressions()}
    return True if True in parts else None if None in parts else False


def _whole(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """FLOOR and CEIL of one argument."""
    if node.args.get("decimals") is not None or node.args.get("to") is not None:
        raise asked.unknown(node)
    return None


def _choice(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """GREATEST and LEAST, which step over NULLs in Spark."""
    arguments = [node.this, *node.expressions]
    name = "GREATEST" if isinstance(node, exp.Greatest) else "LEAST"
    if asked.dialect in _SKIPS_NULLS:
        return called(name, *arguments)
    if asked.dialect not in _IS_NULL:
        raise asked.unknown(node)
    nothing: list[exp.Expr] = [exp.Is(this=exp.Paren(this=each.copy()), expression=exp.Null()) for each in arguments]
    condition = exp.not_(exp.or_(*nothing))
    return exp.Case(ifs=[exp.If(this=condition, true=called(name, *arguments))])


def _cast(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """Casts to types that have other digits, lengths or parts there."""
    to = node.args["to"]
    if to.is_type(exp.DType.DECIMAL) and not to.expressions:
        return _decimal(asked, node)
    if to.is_type(exp.DType.TIME, exp.DType.TIMETZ):
        raise asked.refusal(
            f"{asked.sql(node)} is a time of day, which Spark does not have", "write DATE_FORMAT(x, 'HH:mm')"
        )
    if to.is_type(*_PADDED) and asked.dialect not in _SAME_LENGTH | {"mysql"}:
        raise asked.refusal(f"{asked.sql(node)} is filled up with blanks in {asked.dialect}", "write RPAD(x, n, ' ')")
    if not to.is_type(*_TEXTS, *_PADDED):
        return None
    written(asked, node, node.this)
    return _cut(asked, node) if to.expressions else None


def _decimal(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    if isinstance(node.this, exp.IntDiv):  # PostgreSQL's DIV(a, b)
        return exp.Paren(this=node.this)
    scale = _SCALES.get(asked.dialect)
    if scale is None:
        message = f"{asked.sql(node)} keeps other digits in {asked.dialect} than in Spark, where it is DECIMAL(10, 0)"
        raise asked.refusal(message, "say how many: DECIMAL(18, 6)")
    digits = [exp.DataTypeParam(this=exp.Literal.number(each)) for each in scale]
    node.args["to"].set("expressions", digits)
    return None


def _cut(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    length = node.args["to"].expressions[0].this
    text = type(node)(this=node.this, to=exp.DataType.build("text"))
    if asked.dialect in _SAME_LENGTH:
        return text
    if asked.dialect in _CUTS and length.is_int:
        return called("LEFT", text, length.copy())
    raise asked.refusal(f"{asked.sql(node)} looks at the length of the text, and Spark does not", "write LEFT(x, n)")


def _any_of(_: Asked, node: exp.Expr) -> exp.Expr | None:
    """`a = ANY(ARRAY[...])` and `a = ANY($1)` as `a IN (...)`."""
    listed = node.expression.this.unnest() if isinstance(node.expression, exp.Any) else None
    if isinstance(listed, exp.Placeholder):
        return exp.In(this=node.this, expressions=[listed])
    if not isinstance(listed, exp.Array) or not listed.expressions:
        return None
    return exp.In(this=node.this, expressions=listed.expressions)


NUMBERS: Mapping[str, Mapping[str, Rule] | Rule] = {
    "Log": _log,
    "Ln": _ln,
    "Round": _round,
    "Floor": _whole,
    "Ceil": _whole,
    "Greatest": _choice,
    "Least": _choice,
    "Cast": _cast,
    "TryCast": _cast,
    "EQ": _any_of,
}
