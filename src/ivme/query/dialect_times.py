"""Dates of other systems in Spark's words: their parts, units, differences and patterns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set

from sqlglot import exp

from ivme.query.dialect_aggregates import Rule, called
from ivme.query.dialect_asked import Asked
from ivme.query.dialect_functions import KNOWN, POSTGRES, TIME_FORMATS, TRINO

_PLAIN = frozenset({"YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "DOY", "DAYOFYEAR"})
_ISO_WEEK = POSTGRES | TRINO | {"redshift", "duckdb"}
_FROM_ZERO = POSTGRES | {"redshift", "duckdb", "snowflake"}
"""Systems that count days of the week from 0, a Sunday."""

_BOUNDARIES = frozenset({"duckdb", "snowflake", "bigquery", "tsql", "fabric", "redshift"})
"""Systems whose DATE_DIFF counts the boundaries between units; Spark's counts whole units."""

_UNITS = frozenset({"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"})
_NAMES = {"Dayname": "EEEE", "Monthname": "MMMM"}
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}


def _minus(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Sub(this=left, expression=right))


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _part_of(asked: Asked, node: exp.Expr, unit: str, moment: exp.Expr) -> exp.Expr:
    """EXTRACT and DATE_PART of a unit."""
    for units, systems, made in _PARTS:
        if unit in units and (systems is None or asked.dialect in systems):
            return made(asked, moment, unit)
    raise asked.unknown(node)


def _same_part(_: Asked, moment: exp.Expr, unit: str) -> exp.Expr:
    return exp.Extract(this=exp.var("DOY" if unit == "DAYOFYEAR" else unit), expression=moment)


def _whole_seconds(_: Asked, moment: exp.Expr, __: str) -> exp.Expr:
    return called("SECOND", moment)


def _from_zero(_: Asked, moment: exp.Expr, __: str = "") -> exp.Expr:
    return _minus(called("DAYOFWEEK", moment), _number(1))


def _from_one(_: Asked, moment: exp.Expr, __: str) -> exp.Expr:
    return called("DAYOFWEEK", moment)


def _from_monday(_: Asked, moment: exp.Expr, __: str = "") -> exp.Expr:
    return exp.Extract(this=exp.var("DAYOFWEEK_ISO"), expression=moment)


def _year_of_week(_: Asked, moment: exp.Expr, __: str) -> exp.Expr:
    return exp.Extract(this=exp.var("YEAROFWEEK"), expression=moment)


def _epoch(asked: Asked, moment: exp.Expr, _: str = "") -> exp.Expr:
    """The seconds since 1970, with their fraction."""
    if asked.kind(moment) == "other":
        raise asked.refusal(f"EPOCH of {asked.sql(moment)} is not translated", "write it for a date or a timestamp")
    micros = exp.cast(called("UNIX_MICROS", moment), "double")
    return exp.Paren(this=exp.Div(this=micros, expression=_number(1_000_000), typed=False, safe=False))


_PARTS: tuple[tuple[Set[str], Set[str] | None, Callable[[Asked, exp.Expr, str], exp.Expr]], ...] = (
    (_PLAIN, None, _same_part),
    ({"WEEK"}, _ISO_WEEK, _same_part),
    ({"SECOND"}, POSTGRES, _same_part),
    ({"SECOND"}, KNOWN | {"mysql", "tsql"}, _whole_seconds),
    ({"DOW", "DAYOFWEEK", "WEEKDAY"}, _FROM_ZERO, _from_zero),
    ({"DAYOFWEEK"}, {"bigquery"}, _from_one),
    ({"ISODOW", "DAYOFWEEKISO", "DAYOFWEEK_ISO"}, POSTGRES | {"duckdb", "snowflake"}, _from_monday),
    ({"ISOYEAR"}, POSTGRES | {"duckdb"}, _year_of_week),
    ({"EPOCH"}, POSTGRES | {"duckdb"}, _epoch),
)
"""What EXTRACT of a unit is in Spark, by systems; None is for all of them."""


def _extract(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    return _part_of(asked, node, node.this.name.upper(), node.expression)


def _date_part(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    unit, *rest = node.expressions
    if len(rest) != 1 or not unit.is_string:
        raise asked.unknown(node)
    return _part_of(asked, node, unit.this.upper(), rest[0])


def _day_of_week(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    return _from_zero(asked, node.this)


def _weekday(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    return _from_zero(asked, node.expressions[0])


def _iso_day(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    return _from_monday(asked, node.this)


def _name(_: Asked, node: exp.Expr) -> exp.Expr | None:
    return called("DATE_FORMAT", node.this, _NAMES[type(node).__name__])


def _seconds(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    return _epoch(asked, node.this)


def _unit(node: exp.Expr) -> str:
    unit = node.args.get("unit")
    return unit.name.upper() if unit is not None else "DAY"


def _truncated(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """DATE_TRUNC, whose weeks begin on Sunday in BigQuery; a date stays one where it does there."""
    unit = _unit(node)
    is_known = unit in _UNITS - {"WEEK"} or (unit == "WEEK" and asked.dialect in _ISO_WEEK | {"snowflake"})
    if asked.dialect not in KNOWN or not is_known or node.args.get("zone") is not None:
        raise asked.unknown(node)
    if asked.kind(node.this) == "date" and unit in {*_MONTHS, "WEEK"} and asked.dialect not in POSTGRES:
        return called("TRUNC", node.this, unit)
    return called("DATE_TRUNC", unit, node.this)


def _later(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """DATEADD and its like: a timestamp keeps its time of day, which sqlglot's translation loses."""
    number, unit = node.expression, _unit(node)
    if isinstance(number, exp.Interval):
        unit, number = _unit(number), number.this
    if unit not in _UNITS or number is None:
        raise asked.unknown(node)
    if number.is_string:
        number = exp.Literal.number(number.this)
    if isinstance(node, exp.DateSub | exp.DatetimeSub | exp.TimestampSub):
        number = exp.Neg(this=exp.Paren(this=number))
    kind = asked.kind(node.this)
    if kind not in ("date", "timestamp"):
        message = f"whether {asked.sql(node)} is a date or a timestamp depends on types that are not known here"
        raise asked.refusal(
            message, "write CAST(x AS DATE) or CAST(x AS TIMESTAMP) for its argument, or x + INTERVAL '1' DAY"
        )
    if kind == "timestamp" or unit in ("HOUR", "MINUTE", "SECOND"):
        return called("TIMESTAMPADD", exp.var(unit), number, node.this)
    if unit in _MONTHS:
        return called("ADD_MONTHS", node.this, _times(number, _MONTHS[unit]))
    return called("DATE_ADD", node.this, _times(number, 7 if unit == "WEEK" else 1))


def _times(number: exp.Expr, factor: int) -> exp.Expr:
    return number if factor == 1 else exp.Mul(this=exp.Paren(this=number), expression=_number(factor))


def _difference(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """DATE_DIFF: between boundaries of units there, or of whole units, as in Spark."""
    end, start = (each.this if isinstance(each, exp.TimeStrToTime) else each for each in (node.this, node.expression))
    unit = _unit(node)
    if unit == "DAY" and asked.dialect in _BOUNDARIES | {"mysql"}:
        return called("DATEDIFF", end, start)
    if asked.dialect in TRINO and unit in _UNITS:
        return called("TIMESTAMPDIFF", exp.var(unit), start, end)
    if asked.dialect not in _BOUNDARIES or unit not in _UNITS - {"WEEK"}:
        raise asked.unknown(node)
    if unit in _MONTHS:
        return _minus(_boundary(unit, end), _boundary(unit, start))
    return called("TIMESTAMPDIFF", exp.var(unit), called("DATE_TRUNC", unit, start), called("DATE_TRUNC", unit, end))


def _boundary(unit: str, moment: exp.Expr) -> exp.Expr:
    """The number of a moment's year, quarter or month."""
    year = called("YEAR", moment)
    if unit == "YEAR":
        return year
    months = exp.Mul(this=year, expression=_number(12 // _MONTHS[unit]))
    return exp.Paren(this=exp.Add(this=months, expression=called(unit, moment.copy())))


def _pattern(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """Patterns of dates, with the parts that mean the same."""
    pattern, known = node.args.get("format"), TIME_FORMATS.get(asked.dialect, "")
    rest = "" if pattern is None or not pattern.is_string else re.sub(f"%-?[{known}]", "", pattern.this)
    if not known or pattern is None or not pattern.is_string or re.search(r"[^\W\d_]|%", rest):
        shown = asked.sql(node)
        message = f"the pattern of {shown} has no translation from {asked.dialect}"
        raise asked.refusal(message, "write DATE_FORMAT(ts, 'yyyy-MM-dd HH:mm:ss') without dialect=")
    return None


_ZERO = dict.fromkeys(("duckdb", "snowflake"), _day_of_week)

TIMES: Mapping[str, Mapping[str, Rule] | Rule] = {
    "Extract": _extract,
    "DayOfWeek": _ZERO,
    "DayOfWeekIso": _iso_day,
    "Dayname": dict.fromkeys(("duckdb", "mysql"), _name),
    "Monthname": dict.fromkeys(("duckdb", "mysql"), _name),
    "TimeToUnix": {"duckdb": _seconds},
    "TimestampTrunc": _truncated,
    "DateTrunc": _truncated,
    **dict.fromkeys(("DateAdd", "DateSub", "DatetimeAdd", "DatetimeSub", "TimestampAdd"), _later),
    **dict.fromkeys(("TimestampSub", "TsOrDsAdd"), _later),
    **dict.fromkeys(("DateDiff", "DatetimeDiff", "TimestampDiff", "TsOrDsDiff"), _difference),
    **dict.fromkeys(("TimeToStr", "StrToDate", "StrToTime"), _pattern),
}

CALLS: Mapping[tuple[str, str], Rule] = {
    ("duckdb", "date_part"): _date_part,
    ("duckdb", "datepart"): _date_part,
    ("snowflake", "date_part"): _date_part,
    ("duckdb", "weekday"): _weekday,
}
"""Rules for functions that sqlglot does not know, by system and name."""
