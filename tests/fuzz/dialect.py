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


_EARLY = "LEAST({0}, DATE '9000-01-01')"
"""A date that has later ones."""

_DOUBLE = "CAST({0} AS DOUBLE) / CAST({1} AS DOUBLE)"
_HOURS = "DATE_SUB('hour', {0}, {1})"
_ALL = "REGEXP_REPLACE({0}, '[ab]+', '#', 'g')"
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
    Rule("number function", ("int", "divisor"), "int", "MOD({0}, {1})"),
    Rule(
        *("number function", ("int", "divisor"), "int", "PMOD({0}, {1})"),
        *("CASE WHEN {0} % {1} < 0 THEN ({0} % {1} + {1}) % {1} ELSE {0} % {1} END", "DuckDB has no PMOD"),
    ),
    Rule("number function", ("int", "divisor"), "int", "({0} DIV {1})", "({0} // {1})", "DuckDB writes //"),
    Rule("number function", ("float",), "float", "SIGN({0})", "CAST(SIGN({0}) AS DOUBLE)", "DuckDB gives an integer"),
    Rule("number function", ("float",), "float", "SQRT(ABS({0}))"),
    Rule(
        "number function", ("int",), "float", "POWER({0}, 2)", "CAST(POWER({0}, 2) AS DOUBLE)", "DuckDB keeps the type"
    ),
    Rule("bit operation", ("int", "int"), "int", "({0} & {1})"),
    Rule("bit operation", ("int", "int"), "int", "({0} | {1})"),
    Rule("bit operation", ("int", "int"), "int", "({0} ^ {1})", "xor({0}, {1})", "DuckDB's ^ is a power"),
    Rule("bit operation", ("int",), "int", "(~ {0})"),
    Rule(
        "bit operation",
        ("int",),
        "int",
        "BIT_COUNT({0})",
        "CAST(BIT_COUNT({0}) AS BIGINT)",
        "DuckDB gives a narrow integer",
    ),
    Rule("bit operation", ("int",), "int", "(ABS({0}) << 2)"),
    Rule("bit operation", ("int",), "int", "SHIFTRIGHT({0}, 1)", "({0} >> 1)", "DuckDB has the operator only"),
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
    Rule("text search", ("string",), "bool", "{0} ILIKE 'A%'"),
    Rule(
        "text search", ("string",), "bool", "{0} RLIKE '^[ab]+'", "regexp_matches({0}, '^[ab]+')", "DuckDB has no RLIKE"
    ),
    Rule("text search", ("string",), "bool", "{0} RLIKE 'a.b'", "regexp_matches({0}, 'a.b')", "DuckDB has no RLIKE"),
    Rule("text search", ("string",), "string", "REGEXP_EXTRACT({0}, '([a-z])(b)', 2)"),
    Rule("text search", ("string",), "string", "REGEXP_REPLACE({0}, '[ab]+', '#')", _ALL, "DuckDB replaces one"),
    Rule("text function", ("string",), "string", "REPLACE({0}, 'a', 'xy')"),
    Rule("text function", ("string", "string"), "string", "REPLACE({0}, 'b', {1})"),
    Rule("text function", ("string",), "string", "LEFT({0}, 2)"),
    Rule("text function", ("string",), "string", "RIGHT({0}, 1)"),
    Rule("text function", ("string",), "string", "LPAD({0}, 3, 'xy')"),
    Rule("text function", ("string",), "string", "RPAD({0}, 3, '-')"),
    Rule("text function", ("string",), "string", "REPEAT({0}, 2)"),
    Rule("text function", ("string",), "string", "REVERSE({0})"),
    Rule("text function", ("string",), "string", "LTRIM({0})"),
    Rule("text function", ("string",), "string", "RTRIM({0})"),
    Rule(
        "text function",
        ("string",),
        "string",
        "TRIM(BOTH 'a' FROM {0})",
        "TRIM({0}, 'a')",
        "DuckDB has the characters behind",
    ),
    Rule("text function", ("string",), "string", "TRANSLATE({0}, 'ab', 'x')"),
    Rule("text function", ("string",), "string", "SPLIT_PART({0}, 'a', 2)"),
    Rule("text function", ("string", "string"), "string", "CONCAT_WS('-', {0}, {1})"),
    Rule("text function", ("string",), "string", "HEX({0})"),
    Rule("text function", ("string",), "string", "MD5({0})"),
    Rule("text search", ("string",), "int", "POSITION('b' IN {0})"),
    Rule("text search", ("string",), "int", "INSTR({0}, 'a')"),
    Rule("text search", ("string",), "int", "OCTET_LENGTH({0})", "STRLEN({0})", "DuckDB's is of bytes only"),
    Rule("text search", ("string",), "bool", "STARTSWITH({0}, 'a')", "starts_with({0}, 'a')", "another name"),
    Rule("text search", ("string", "string"), "bool", "ENDSWITH({0}, {1})", "ends_with({0}, {1})", "another name"),
    Rule("text search", ("string", "string"), "bool", "CONTAINS({0}, {1})"),
    # Conversions
    Rule("checked cast", ("string",), "int", "TRY_CAST({0} AS BIGINT)"),
    Rule("checked cast", ("int",), "int", "CAST({0} AS INT)", "CAST({0} AS BIGINT)", "ivme's integers are wide"),
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
    Rule("part of a moment", ("date",), "int", "QUARTER({0})"),
    Rule("part of a moment", ("date",), "int", "WEEKOFYEAR({0})"),
    Rule("part of a moment", ("timestamp",), "int", "WEEKDAY({0})", "(ISODOW({0}) - 1)", "DuckDB begins on Sunday"),
    Rule("part of a moment", ("date",), "int", "DAYOFWEEK({0})", "(DAYOFWEEK({0}) + 1)", "DuckDB counts from 0"),
    Rule("part of a moment", ("date",), "int", "DAYOFYEAR({0})"),
    Rule("part of a moment", ("timestamp",), "int", "HOUR({0})"),
    Rule("part of a moment", ("timestamp",), "int", "EXTRACT(MINUTE FROM {0})"),
    Rule("part of a moment", ("timestamp",), "int", "SECOND({0})"),
    Rule(
        "difference of moments",
        ("date", "date"),
        "int",
        "DATEDIFF({0}, {1})",
        "DATE_DIFF('day', {1}, {0})",
        "DuckDB begins with the earlier one",
    ),
    Rule(
        "difference of moments",
        ("timestamp", "timestamp"),
        "int",
        "TIMESTAMPDIFF(HOUR, {0}, {1})",
        _HOURS,
        "another name",
    ),
    Rule(
        "later moment",
        ("date",),
        "date",
        "({0} - INTERVAL '90' DAY)",
        "CAST({0} - INTERVAL 90 DAY AS DATE)",
        "DuckDB gives a timestamp",
    ),
    Rule(
        "later moment",
        ("date",),
        "date",
        "ADD_MONTHS({0}, -13)",
        "CAST({0} - INTERVAL 13 MONTH AS DATE)",
        "DuckDB gives a timestamp",
    ),
    Rule(
        "later moment",
        ("date",),
        "date",
        f"({_EARLY} + INTERVAL '1' MONTH)",
        f"CAST({_EARLY} + INTERVAL 1 MONTH AS DATE)",
        "DuckDB gives a timestamp",
    ),
    Rule(
        "later moment",
        ("date", "int"),
        "date",
        f"DATE_ADD({_EARLY}, {{1}} % 1000)",
        f"({_EARLY} + CAST({{1}} % 1000 AS INT))",
        "DuckDB adds narrow ones",
    ),
    Rule(
        "later moment",
        ("timestamp",),
        "timestamp",
        "({0} + INTERVAL '90' MINUTE)",
        "({0} + INTERVAL 90 MINUTE)",
        "both spellings",
    ),
    Rule("later moment", ("timestamp",), "timestamp", "DATE_TRUNC('month', {0})"),
    Rule("later moment", ("timestamp",), "timestamp", "DATE_TRUNC('hour', {0})"),
    Rule(
        "later moment",
        ("date",),
        "timestamp",
        "DATE_TRUNC('week', {0})",
        "CAST(DATE_TRUNC('week', {0}) AS TIMESTAMP)",
        "DuckDB gives a date",
    ),
    Rule(
        "later moment",
        ("date",),
        "date",
        "TRUNC({0}, 'QUARTER')",
        "CAST(DATE_TRUNC('quarter', {0}) AS DATE)",
        "DuckDB has one function for both",
    ),
    Rule("later moment", ("date",), "date", "LAST_DAY({0})"),
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
    Rule("choice", ("same", "same"), "same", "GREATEST({0}, {1})"),
    Rule("choice", ("same", "same", "same"), "same", "LEAST({0}, {1}, {2})"),
    Rule(
        "choice",
        ("same", "any", "same"),
        "same",
        "NVL2({1}, {0}, {2})",
        "CASE WHEN {1} IS NOT NULL THEN {0} ELSE {2} END",
        "DuckDB has no NVL2",
    ),
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
