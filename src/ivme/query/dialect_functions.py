"""Which functions mean in other systems what they mean in Spark, by sqlglot's names for them.

A function is here if it was compared: with DuckDB and PostgreSQL by running both, with others by what is known of them.
Those that are neither here nor in a table of rules are refused, since sqlglot translates by name.
"""

from __future__ import annotations

import re
from collections.abc import Set
from functools import cache

from ivme.query.functions import FUNCTIONS
from ivme.query.spellings import WORDS

POSTGRES = frozenset({"postgres", "materialize", "risingwave"})
TRINO = frozenset({"trino", "presto", "athena"})
SPARKS = frozenset({"databricks", "hive", "spark2"})
"""Systems with Spark's functions."""

KNOWN = POSTGRES | TRINO | {"redshift", "duckdb", "snowflake", "bigquery"}
_SERVERS = KNOWN | {"mysql", "oracle", "sqlite", "tsql", "fabric"}

EVERYWHERE = frozenset(
    {
        "Abs", "Acos", "All", "And", "Any", "AnyValue", "ApproxDistinct", "Array", "Asin", "Atan", "Atan2",
        "Between", "Case", "Cbrt", "Coalesce", "Contains", "Cos", "Cosh", "Count", "CountIf", "CumeDist",
        "CurrentDate", "CurrentTime", "CurrentTimestamp", "Day", "DayOfMonth", "DayOfYear", "Degrees", "DenseRank",
        "EndsWith", "Exists", "Exp", "Explode", "FirstValue", "Hour", "If", "Lag", "LastValue", "Lead", "List",
        "LogicalAnd", "LogicalOr", "Lower", "Max", "Min", "Minute", "Month", "NthValue", "Ntile", "Nullif", "Nvl2",
        "Or", "PercentRank", "Pi", "Posexplode", "Pow", "Quarter", "Radians", "Rand", "Rank", "Reverse",
        "RowNumber", "Sign", "Sin", "Sinh", "Sqrt", "StartsWith", "StddevPop", "StddevSamp", "Struct", "Sum", "Tan",
        "Tanh", "TimeStrToTime", "TsOrDsToDate", "TsOrDsToTimestamp", "Unnest", "Upper", "Uuid", "VariancePop",
        "Year",
    }
)  # fmt: skip

_BY_SYSTEMS: tuple[tuple[str, Set[str]], ...] = (
    ("BitwiseAndAgg BitwiseOrAgg BitwiseXorAgg Stddev Variance", KNOWN),
    (
        "Corr CovarPop CovarSamp RegrAvgx RegrAvgy RegrCount RegrIntercept RegrR2 RegrSlope RegrSxx RegrSxy RegrSyy",
        KNOWN | {"oracle"},
    ),
    ("Replace", _SERVERS - {"oracle"}),
    ("Repeat Translate", POSTGRES | TRINO | {"redshift", "duckdb", "snowflake"}),
    ("Trim", POSTGRES | {"redshift", "duckdb", "snowflake", "mysql", "sqlite"}),
    ("Concat", KNOWN - {"redshift"} | {"mysql", "tsql", "fabric"}),
    ("ConcatWs", POSTGRES | TRINO | {"duckdb", "mysql"}),
    ("MD5", POSTGRES | {"redshift", "duckdb", "snowflake", "mysql"}),
    ("Ascii BitLength Chr TimestampFromParts Trunc", POSTGRES | {"duckdb"}),
    ("Overlay RegexpCount UnixToTime", POSTGRES),
    ("Hex SHA SHA2 RegexpExtract", {"duckdb"}),
    ("ArgMax ArgMin", TRINO | {"snowflake"}),
    ("Levenshtein", POSTGRES | {"snowflake"}),
    ("Mode", POSTGRES | {"duckdb", "snowflake"}),
    ("Median", {"redshift", "snowflake", "oracle"}),
    ("Week", TRINO | {"duckdb"}),
    ("WeekOfYear", TRINO | {"duckdb", "mysql"}),
    ("DayOfWeek", {"bigquery", "mysql"}),
    ("Dayname Monthname", {"snowflake"}),
    ("Second", _SERVERS),
    ("LastDay", {"duckdb", "snowflake", "mysql", "oracle", "redshift"}),
    ("DateFromParts", POSTGRES | {"duckdb", "snowflake", "bigquery"}),
)

_SAME = {name: systems for names, systems in _BY_SYSTEMS for name in names.split()}

_TIME = POSTGRES | TRINO | {"redshift", "duckdb", "snowflake", "bigquery", "mysql"}
TIME_FORMATS = {
    **dict.fromkeys(_TIME, "YmdHMS"),
    "duckdb": "YmdHMSbBaAIpjyf",
}
"""The parts of a date's pattern, as strftime has them, that mean the same."""


def means_the_same(name: str, dialect: str) -> bool:
    """Whether the function of a node has one meaning there and in Spark."""
    return name in EVERYWHERE or dialect in _SAME.get(name, ())


_CALLED: tuple[tuple[str, Set[str]], ...] = (
    ("every", POSTGRES | {"snowflake"}),
    ("mean", {"duckdb"}),
    ("bit_count octet_length", POSTGRES | {"duckdb"}),
    ("btrim", {"redshift"}),
)
_SAME_CALLS = {word: systems for words, systems in _CALLED for word in words.split()}


@cache
def _builtins() -> frozenset[str]:
    written = " ".join(each.sql for each in FUNCTIONS.values())
    return frozenset(each.lower() for each in re.findall(r"\b([A-Z_0-9]+)\(", written)) | frozenset(WORDS)


def may_differ(word: str, dialect: str) -> bool:
    """Whether a function that sqlglot does not know there is one of Spark's by its name, and nobody compared it."""
    return word in _builtins() and dialect not in _SAME_CALLS.get(word, ())
