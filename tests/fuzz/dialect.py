"""How each function is written for ivme (Spark's SQL) and for DuckDB, and why where the two differ.

This is the only place where a text is translated. A rule without a reason is written the same way in both. Where the
two systems differ, Spark is right, and the reason says what DuckDB would do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any


@dataclass(frozen=True, slots=True)
class Rule:
    """A function: the kinds of its arguments, that of its value, and both spellings ({0}, {1} are the arguments)."""

    name: str
    arguments: tuple[str, ...]
    result: str
    spark: str
    duck: str = ""
    reason: str = ""

    def written(self, dialect: str, arguments: list[str]) -> str:
        template = self.duck if dialect == "duck" and self.duck else self.spark
        return template.format(*arguments)


_DOUBLE = "CAST({0} AS DOUBLE) / CAST({1} AS DOUBLE)"
_NULLS = "{0} IS NOT DISTINCT FROM {1}"

RULES = (
    # Arithmetic. `int` and `float` arguments have a known bound, so that nothing overflows.
    Rule("add", ("int", "int"), "int", "({0} + {1})"),
    Rule("subtract", ("int", "int"), "int", "({0} - {1})"),
    Rule("multiply", ("int", "int"), "int", "({0} * {1})"),
    Rule("modulo", ("int", "divisor"), "int", "({0} % {1})"),
    Rule("divide", ("int", "divisor"), "float", "({0} / {1})", f"({_DOUBLE})", "Spark divides integers as doubles"),
    Rule("negate", ("int",), "int", "(- {0})"),
    Rule("abs", ("int",), "int", "ABS({0})"),
    Rule("round", ("int",), "int", "ROUND({0}, -1)"),
    Rule("add", ("float", "float"), "float", "({0} + {1})"),
    Rule("subtract", ("float", "int"), "float", "({0} - {1})"),
    Rule("multiply", ("float", "float"), "float", "({0} * {1})"),
    Rule("divide", ("float", "divisor"), "float", "({0} / {1})", f"({_DOUBLE})"),
    Rule("negate", ("float",), "float", "(- {0})"),
    Rule("abs", ("float",), "float", "ABS({0})"),
    Rule("round", ("float",), "float", "ROUND({0}, 1)", "spark_round({0}, 1)", "Spark rounds the printed digits"),
    Rule("floor", ("float",), "int", "FLOOR({0})", "CAST(FLOOR({0}) AS BIGINT)", "DuckDB gives a double"),
    Rule("ceil", ("float",), "int", "CEIL({0})", "CAST(CEIL({0}) AS BIGINT)", "DuckDB gives a double"),
    # Text
    Rule("upper", ("string",), "string", "UPPER({0})"),
    Rule("lower", ("string",), "string", "LOWER({0})"),
    Rule("trim", ("string",), "string", "TRIM({0})"),
    Rule("length", ("string",), "int", "LENGTH({0})"),
    Rule("substring", ("string",), "string", "SUBSTRING({0}, 2)"),
    Rule("substring", ("string",), "string", "SUBSTRING({0}, 1, 1)"),
    Rule("substring", ("string",), "string", "SUBSTRING({0}, -1)"),
    Rule("substring", ("string",), "string", "SUBSTRING({0}, 0, 1)", "SUBSTRING({0}, 1, 1)", "Spark reads 0 as 1"),
    Rule("concat", ("string", "string"), "string", "({0} || {1})"),
    Rule("concat", ("string", "string"), "string", "CONCAT({0}, {1})", "({0} || {1})", "DuckDB's CONCAT skips NULL"),
    Rule("like", ("string",), "bool", "{0} LIKE 'a%'"),
    Rule("like", ("string",), "bool", "{0} LIKE '%b'"),
    Rule("like", ("string",), "bool", "{0} LIKE '_'"),
    Rule("like", ("string",), "bool", "{0} NOT LIKE '%a%b%'"),
    Rule("like escape", ("string",), "bool", "{0} LIKE 'a!%%' ESCAPE '!'"),
    Rule("like", ("string",), "bool", r"{0} LIKE 'a\\_%'", r"{0} LIKE 'a\_%' ESCAPE '\'", "Spark's escape is \\"),
    # Conversions
    Rule("cast int", ("float",), "int", "CAST({0} AS BIGINT)", "CAST(TRUNC({0}) AS BIGINT)", "DuckDB rounds"),
    Rule("cast int", ("bool",), "int", "CAST({0} AS BIGINT)"),
    Rule("cast int", ("digits",), "int", "CAST({0} AS BIGINT)"),
    Rule("cast float", ("int",), "float", "CAST({0} AS DOUBLE)"),
    Rule("cast string", ("int",), "string", "CAST({0} AS STRING)", "CAST({0} AS VARCHAR)"),
    Rule("cast string", ("bool",), "string", "CAST({0} AS STRING)", "CAST({0} AS VARCHAR)"),
    Rule("cast string", ("decimal",), "string", "CAST({0} AS STRING)", "CAST({0} AS VARCHAR)"),
    Rule("cast string", ("date",), "string", "CAST({0} AS STRING)", "CAST({0} AS VARCHAR)"),
    Rule("cast string", ("timestamp",), "string", "CAST({0} AS STRING)", "CAST({0} AS VARCHAR)"),
    Rule("cast string", ("float",), "string", "CAST({0} AS STRING)", "spark_text({0})", "Spark writes 1.0E7"),
    Rule("cast bool", ("int",), "bool", "CAST({0} AS BOOLEAN)"),
    Rule("cast date", ("timestamp",), "date", "CAST({0} AS DATE)"),
    Rule("cast timestamp", ("date",), "timestamp", "CAST({0} AS TIMESTAMP)"),
    # Time
    Rule("year", ("date",), "int", "YEAR({0})"),
    Rule("month", ("timestamp",), "int", "MONTH({0})"),
    Rule("day", ("date",), "int", "DAY({0})"),
    Rule("extract", ("date",), "int", "EXTRACT(MONTH FROM {0})"),
    Rule("extract", ("timestamp",), "int", "EXTRACT(YEAR FROM {0})"),
    # Conditions over any kind: both arguments have one type.
    Rule("equal", ("same", "same"), "bool", "{0} = {1}"),
    Rule("not equal", ("same", "same"), "bool", "{0} <> {1}"),
    Rule("less", ("same", "same"), "bool", "{0} < {1}"),
    Rule("less or equal", ("same", "same"), "bool", "{0} <= {1}"),
    Rule("greater", ("same", "same"), "bool", "{0} > {1}"),
    Rule("greater or equal", ("same", "same"), "bool", "{0} >= {1}"),
    Rule("null-safe equal", ("same", "same"), "bool", "{0} <=> {1}", _NULLS, "DuckDB has no <=>"),
    Rule("distinct from", ("same", "same"), "bool", "{0} IS DISTINCT FROM {1}"),
    Rule("is null", ("any",), "bool", "{0} IS NULL"),
    Rule("is not null", ("any",), "bool", "{0} IS NOT NULL"),
    Rule("in", ("same", "same", "same"), "bool", "{0} IN ({1}, {2})"),
    Rule("not in", ("same", "same", "same"), "bool", "{0} NOT IN ({1}, {2})"),
    Rule("in with null", ("same", "same"), "bool", "{0} IN ({1}, NULL)"),
    Rule("between", ("same", "same", "same"), "bool", "{0} BETWEEN {1} AND {2}"),
    Rule("not between", ("same", "same", "same"), "bool", "{0} NOT BETWEEN {1} AND {2}"),
    Rule("mixed comparison", ("int", "float"), "bool", "{0} < {1}"),
    Rule("mixed comparison", ("date", "timestamp"), "bool", "{0} <= {1}"),
    Rule("and", ("bool", "bool"), "bool", "({0} AND {1})"),
    Rule("or", ("bool", "bool"), "bool", "({0} OR {1})"),
    Rule("not", ("bool",), "bool", "(NOT {0})"),
    Rule("is true", ("bool",), "bool", "{0} IS TRUE"),
    Rule("is not false", ("bool",), "bool", "{0} IS NOT FALSE"),
    # Choices, of any kind
    Rule("coalesce", ("same", "same"), "same", "COALESCE({0}, {1})"),
    Rule("nullif", ("same", "same"), "same", "NULLIF({0}, {1})"),
    Rule("case", ("same", "bool", "same"), "same", "CASE WHEN {1} THEN {0} ELSE {2} END"),
    Rule("case without else", ("same", "bool"), "same", "CASE WHEN {1} THEN {0} END"),
    Rule("case of a value", ("same", "int", "int"), "same", "CASE {1} WHEN {2} THEN {0} END"),
    Rule("if", ("same", "bool", "same"), "same", "IF({1}, {0}, {2})"),
)

DECIMAL_DIVISION = "Spark keeps decimals, rounded half up to the scale of its rule; DuckDB gives a double"
DECIMAL_TO_INT = "DuckDB rounds, Spark cuts the digits off"
PATHS = "UNION ALL lists a row for each path, which never ends on a cycle: DuckDB is asked for UNION, under DISTINCT"
DOUBLING = "DuckDB joins only the newest rows of a recursion with themselves: it gets the left-linear step"
NEGATIVE_ZERO = "a column holds 0.0 where -0.0 came in, which DuckDB keeps and CAST to STRING would tell: it gets 0.0"
STAR = "SELECT * shows the columns of USING first in Spark, and where the left table has them in DuckDB: it gets a list"
SUMS = "aggregates and DISTINCT are computed in Python from DuckDB's joined rows: exactly, and in Spark's types"
"""Rules that no template tells; `expressions`, `views` and `oracle` follow them."""


def install(connection: Any) -> None:
    """Spark's functions that DuckDB cannot spell, as Python functions of the connection."""
    connection.create_function("spark_round", _round, ["DOUBLE", "BIGINT"], "DOUBLE")
    connection.create_function("spark_text", _text, ["DOUBLE"], "VARCHAR")
    connection.create_function("spark_divide", _divide, ["VARCHAR", "VARCHAR", "BIGINT"], "VARCHAR")


def _round(number: float, digits: int) -> float:
    exact = Decimal(repr(number))
    return float(exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, Context(prec=60)))


def _text(number: float) -> str:
    """Java's Double.toString."""
    if math.isnan(number) or math.isinf(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    digits, _, exponent = f"{Decimal(repr(number)):E}".partition("E")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return f"{digits}{'' if '.' in digits else '.0'}E{int(exponent)}"


def _divide(left: str, right: str, scale: int) -> str:
    quotient = Context(prec=80).divide(Decimal(left), Decimal(right))
    return str(quotient.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=80)))
