"""Functions of dates and timestamps, in the Gregorian calendar and without time zones."""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeVar

from ivme.query import sql_values as values
from ivme.query.functions.date_patterns import formatted, parsed, pattern_parts, readable_parts
from ivme.query.functions.definition import DATED, INSTANTS, INTEGERS, TEXT, Function

Moment = TypeVar("Moment", bound=datetime.date)
EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_DAY = EPOCH.toordinal()
_MICROSECOND = datetime.timedelta(microseconds=1)
_SECONDS = "yyyy-MM-dd HH:mm:ss"
_RANGE = "the date is not between the years 1 and 9999"
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
MICROSECONDS = {
    "WEEK": 7 * 86_400_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}
"""The units of TIMESTAMPADD, TIMESTAMPDIFF and DATE_TRUNC, in months or in microseconds."""

UNITS = {
    **{unit: unit for unit in (*MONTHS, *MICROSECONDS)},
    **dict.fromkeys(("YYYY", "YY"), "YEAR"),
    **dict.fromkeys(("MM", "MON"), "MONTH"),
    "DD": "DAY",
}
"""The units of DATE_TRUNC and TRUNC by all their names."""

_OF_DATES = ("YEAR", "QUARTER", "MONTH", "WEEK")


def micros(moment: Any) -> int:
    """Microseconds since 1970-01-01."""
    return (values.to_timestamp(moment) - EPOCH) // _MICROSECOND


def moment_of(number: int) -> datetime.datetime:
    """The timestamp so many microseconds after 1970-01-01."""
    return _in_range(lambda: EPOCH + datetime.timedelta(microseconds=number))


def _in_range(compute: Callable[[], Moment]) -> Moment:
    try:
        return compute()
    except (OverflowError, ValueError):
        raise OverflowError(_RANGE) from None


def add_days(date: Any, count: Any) -> datetime.date:
    day, days = values.to_date(date), values.to_int(count)
    return _in_range(lambda: day + datetime.timedelta(days=days))


def add_months(moment: Moment, count: int) -> Moment:
    """So many months later, on the same day of the month or else on the last one."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + count, 12)
    if not 1 <= year <= 9999:
        raise OverflowError(_RANGE)
    last = calendar.monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def _add_months(date: Any, count: Any) -> datetime.date:
    return add_months(values.to_date(date), values.to_int(count))


def unit_named(name: Any, known: Any = UNITS) -> str:
    """The unit of time that a text names."""
    found = UNITS.get(str(name).upper())
    if found is None or found not in known:
        raise ValueError(
            f"{name!r} is not one of the units {', '.join(unit for unit in UNITS if UNITS[unit] in known)}"
        )
    return found


def _timestampadd(unit: Any, count: Any, moment: Any) -> datetime.datetime:
    name, number, start = unit_named(unit), values.to_int(count), values.to_timestamp(moment)
    if name in MONTHS:
        return add_months(start, number * MONTHS[name])
    return _in_range(lambda: start + _MICROSECOND * (number * MICROSECONDS[name]))


def months_apart(start: datetime.datetime, end: datetime.datetime) -> int:
    """The whole months from one moment to another."""
    months = (end.year - start.year) * 12 + end.month - start.month
    rests = (start.day, start.time()), (end.day, end.time())
    if months > 0 and rests[1] < rests[0]:
        return months - 1
    return months + 1 if months < 0 and rests[1] > rests[0] else months


def _timestampdiff(unit: Any, start: Any, end: Any) -> int:
    name, first, last = unit_named(unit), values.to_timestamp(start), values.to_timestamp(end)
    if name in MONTHS:
        distance, size = months_apart(first, last), MONTHS[name]
    else:
        distance, size = (last - first) // _MICROSECOND, MICROSECONDS[name]
    return abs(distance) // size * (1 if distance >= 0 else -1)


def _datediff(end: Any, start: Any) -> int:
    return (values.to_date(end) - values.to_date(start)).days


def _months_between(end: Any, start: Any) -> float:
    """Whole months if both are on the same or the last day of a month; otherwise a month has 31 days; 8 digits."""
    later, earlier = values.to_timestamp(end), values.to_timestamp(start)
    months = (later.year - earlier.year) * 12 + later.month - earlier.month
    if later.day == earlier.day or (_is_last(later) and _is_last(earlier)):
        return float(months)
    seconds = (later.day - earlier.day) * 86400 + _clock(later) // 10**6 - _clock(earlier) // 10**6
    return float(values.rounded(months + seconds / (31 * 86400), 8))


def _is_last(moment: datetime.datetime) -> bool:
    return moment.day == calendar.monthrange(moment.year, moment.month)[1]


def _clock(moment: datetime.datetime) -> int:
    """Microseconds since midnight."""
    return (moment - datetime.datetime(moment.year, moment.month, moment.day)) // _MICROSECOND


def truncated(unit: str, moment: datetime.datetime) -> datetime.datetime:
    """The first moment of the year, quarter, ... that a moment is in; weeks begin on Monday."""
    if unit in MONTHS:
        size = MONTHS[unit]
        return datetime.datetime(moment.year, (moment.month - 1) // size * size + 1, 1)
    if unit == "WEEK":
        day = moment.toordinal() - moment.weekday()
        return _in_range(lambda: datetime.datetime.fromordinal(day))
    return moment - _MICROSECOND * (_clock(moment) % MICROSECONDS[unit])


def _date_trunc(unit: Any, moment: Any) -> datetime.datetime:
    return truncated(unit_named(unit), values.to_timestamp(moment))


def _unit_of_dates(unit: Any) -> str:
    return unit_named(unit, _OF_DATES)


def _trunc(date: Any, unit: Any) -> datetime.date:
    return truncated(_unit_of_dates(unit), values.to_timestamp(values.to_date(date))).date()


def _last_day(date: Any) -> datetime.date:
    day = values.to_date(date)
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])


def _next_day(date: Any, name: Any) -> datetime.date:
    """The first such weekday after a date."""
    wanted = values.text(name).strip().lower()
    found = [i for i, weekday in enumerate(_WEEKDAYS) if wanted in (weekday, weekday[:3], weekday[:2])]
    if not found:
        raise ValueError(f"{name!r} is not a day of the week; write MON, TUE, ...")
    day = values.to_date(date)
    return add_days(day, (found[0] - day.weekday() - 1) % 7 + 1)


def _make_timestamp(year: int, month: int, day: int, hour: int, minute: int, second: Any) -> datetime.datetime:
    """A second of 60 is the next minute's 0, as in Spark."""
    exact = values.to_decimal(second, 16, 6)
    whole = int(exact)
    if not 0 <= exact <= 60:
        raise ValueError("the second must be between 0 and 60")
    start = datetime.datetime(year, month, day, hour, minute)
    return _in_range(lambda: start + datetime.timedelta(seconds=whole, microseconds=int((exact - whole) * 10**6)))


def _date_format(moment: Any, pattern: Any) -> str:
    return formatted(values.to_timestamp(moment), pattern_parts(values.text(pattern)))


def _to_date(text: Any, pattern: Any) -> datetime.date:
    return parsed(values.text(text), values.text(pattern), readable_parts(values.text(pattern))).date()


def _to_timestamp(text: Any, pattern: Any) -> datetime.datetime:
    return parsed(values.text(text), values.text(pattern), readable_parts(values.text(pattern)))


def _unix_timestamp(moment: Any, pattern: Any = _SECONDS) -> int:
    """Whole seconds since 1970-01-01; those of a moment before it are cut towards it, as in Spark."""
    found = micros(_to_timestamp(moment, pattern) if isinstance(moment, str) else moment)
    return abs(found) // 10**6 * (1 if found >= 0 else -1)


def _from_unixtime(seconds: Any, pattern: Any = _SECONDS) -> str:
    return formatted(moment_of(values.to_int(seconds) * 10**6), pattern_parts(values.text(pattern)))


def _extract_second(moment: Any) -> Decimal:
    found = values.to_timestamp(moment)
    return Decimal(found.second * 10**6 + found.microsecond).scaleb(-6)


def _part_of_date(sql: str, part: Callable[[datetime.date], int], form: str = "") -> Function:
    return Function(1, 1, lambda value: part(values.to_date(value)), sql, "int", DATED, fails="dates", form=form)


def _part_of_time(name: str) -> Function:
    sql = f"{name.upper()}(a)" if name == "second" else f"EXTRACT({name.upper()} FROM a), {name.upper()}(a)"
    return Function(1, 1, lambda value: getattr(values.to_timestamp(value), name), sql, "int", DATED, fails="dates")


def _extracted(name: str) -> str:
    return f"EXTRACT({name.upper()} FROM a), {name.upper()}(a)"


def _named(pattern: str, sql: str) -> Function:
    return Function(
        1, 1, lambda value: values.to_date(value).strftime(pattern), sql, "string", DATED, runs="by row", fails="dates"
    )


def _counted(unit: int, sql: str) -> Function:
    return Function(1, 1, lambda value: micros(value) // unit, sql, "int", INSTANTS, fails="never")


def _of_count(apply: Callable[..., Any], sql: str, gives: str, takes: tuple[str, ...] = INTEGERS) -> Function:
    return Function(1, 1, apply, sql, gives, takes)


def _moved(apply: Callable[..., Any], sql: str) -> Function:
    return Function(2, 2, apply, sql, "date", DATED, (INTEGERS,))


def _by_pattern(
    apply: Callable[..., Any], sql: str, gives: str, takes: tuple[str, ...], check: Callable[..., Any]
) -> Function:
    runs, fails = ("by code", "may") if takes == TEXT else ("by row", "constants")
    return Function(2, 2, apply, sql, gives, takes, (TEXT,), runs=runs, fails=fails, check=check, checked=(1,))


DATES: dict[str, Function] = {
    "year": _part_of_date(_extracted("year"), lambda date: date.year),
    "quarter": _part_of_date(_extracted("quarter"), lambda date: (date.month + 2) // 3),
    "month": _part_of_date(_extracted("month"), lambda date: date.month),
    "weekofyear": _part_of_date("EXTRACT(WEEK FROM a), WEEKOFYEAR(a)", lambda date: date.isocalendar()[1]),
    "day": _part_of_date("EXTRACT(DAY FROM a), DAY(a), DAYOFMONTH(a)", lambda date: date.day),
    "dayofweek": _part_of_date("EXTRACT(DAYOFWEEK FROM a), DAYOFWEEK(a)", lambda date: date.isoweekday() % 7 + 1),
    "weekday": _part_of_date("WEEKDAY(a)", lambda date: date.weekday()),
    "dayofweek_iso": _part_of_date(
        "EXTRACT(DAYOFWEEK_ISO FROM a)", lambda date: date.isoweekday(), "EXTRACT(DAYOFWEEK_ISO FROM {0})"
    ),
    "dayofyear": _part_of_date("EXTRACT(DOY FROM a), DAYOFYEAR(a)", lambda date: date.timetuple().tm_yday),
    "yearofweek": _part_of_date(
        "EXTRACT(YEAROFWEEK FROM a)", lambda date: date.isocalendar()[0], "EXTRACT(YEAROFWEEK FROM {0})"
    ),
    "hour": _part_of_time("hour"),
    "minute": _part_of_time("minute"),
    "second": _part_of_time("second"),
    "extract_second": Function(
        *(1, 1, _extract_second, "EXTRACT(SECOND FROM a)", "decimal(8,6)", DATED),
        fails="dates",
        form="EXTRACT(SECOND FROM {0})",
    ),
    "dayname": _named("%a", "DAYNAME(a)"),
    "monthname": _named("%b", "MONTHNAME(a)"),
    "date_add": _moved(add_days, "DATE_ADD(a, days), a + days, a + INTERVAL 'n' DAY"),
    "date_sub": _moved(lambda date, count: add_days(date, -values.to_int(count)), "DATE_SUB(a, days), a - days"),
    "add_months": _moved(_add_months, "ADD_MONTHS(a, months), a + INTERVAL 'n' MONTH"),
    "timestampadd": Function(
        *(3, 3, _timestampadd, "TIMESTAMPADD(unit, n, a), DATEADD(unit, n, a), a + INTERVAL 'n' HOUR", "timestamp"),
        *(TEXT, (INTEGERS, DATED)),
        form="TIMESTAMPADD({unit}, {1}, {2})",
        check=unit_named,
        checked=(0,),
    ),
    "datediff": Function(2, 2, _datediff, "DATEDIFF(end, start)", "int", DATED, (DATED,), fails="dates"),
    "timestampdiff": Function(
        *(3, 3, _timestampdiff, "TIMESTAMPDIFF(unit, start, end), DATEDIFF(unit, start, end)", "int"),
        *(TEXT, (DATED, DATED)),
        fails="dates",
        form="TIMESTAMPDIFF({unit}, {1}, {2})",
        check=unit_named,
        checked=(0,),
    ),
    "months_between": Function(
        2, 2, _months_between, "MONTHS_BETWEEN(end, start)", "float", DATED, (DATED,), runs="by row", fails="dates"
    ),
    "date_trunc": Function(
        2,
        2,
        _date_trunc,
        "DATE_TRUNC(unit, a)",
        "timestamp",
        TEXT,
        (DATED,),
        fails="dates",
        check=unit_named,
        checked=(0,),
    ),
    "trunc": Function(
        2, 2, _trunc, "TRUNC(a, unit)", "date", DATED, (TEXT,), fails="dates", check=_unit_of_dates, checked=(1,)
    ),
    "last_day": Function(1, 1, _last_day, "LAST_DAY(a)", "date", DATED, fails="dates"),
    "next_day": Function(2, 2, _next_day, "NEXT_DAY(a, weekday)", "date", DATED, (TEXT,), runs="by row"),
    "make_date": Function(
        3, 3, datetime.date, "MAKE_DATE(year, month, day)", "date", INTEGERS, (INTEGERS,), runs="by row"
    ),
    "make_timestamp": Function(
        *(6, 6, _make_timestamp, "MAKE_TIMESTAMP(year, month, day, hour, minute, second)", "timestamp", INTEGERS),
        (INTEGERS, INTEGERS, INTEGERS, INTEGERS, ("int", "decimal")),
        runs="by row",
    ),
    "to_date": _by_pattern(_to_date, "TO_DATE(a, pattern)", "date", TEXT, readable_parts),
    "to_timestamp": _by_pattern(_to_timestamp, "TO_TIMESTAMP(a, pattern)", "timestamp", TEXT, readable_parts),
    "date_format": _by_pattern(_date_format, "DATE_FORMAT(a, pattern)", "string", INSTANTS, pattern_parts),
    "unix_date": Function(
        1, 1, lambda date: date.toordinal() - _EPOCH_DAY, "UNIX_DATE(a)", "int", ("date",), fails="never"
    ),
    "date_from_unix_date": _of_count(lambda days: add_days(EPOCH, days), "DATE_FROM_UNIX_DATE(a)", "date"),
    "unix_timestamp": Function(
        *(1, 2, _unix_timestamp, "UNIX_TIMESTAMP(a), UNIX_TIMESTAMP(a, pattern), TO_UNIX_TIMESTAMP(a, pattern)", "int"),
        *(DATED, (TEXT,)),
        runs="by row",
        check=readable_parts,
        checked=(1,),
    ),
    "from_unixtime": Function(
        *(1, 2, _from_unixtime, "FROM_UNIXTIME(a), FROM_UNIXTIME(a, pattern)", "string", INTEGERS, (TEXT,)),
        runs="by row",
        check=pattern_parts,
        checked=(1,),
    ),
    "unix_seconds": _counted(10**6, "UNIX_SECONDS(a)"),
    "unix_millis": _counted(1000, "UNIX_MILLIS(a)"),
    "unix_micros": _counted(1, "UNIX_MICROS(a)"),
    "timestamp_seconds": _of_count(
        values.to_timestamp, "TIMESTAMP_SECONDS(a)", "timestamp", ("int", "decimal", "float")
    ),
    "timestamp_millis": _of_count(lambda count: moment_of(count * 1000), "TIMESTAMP_MILLIS(a)", "timestamp"),
    "timestamp_micros": _of_count(moment_of, "TIMESTAMP_MICROS(a)", "timestamp"),
}
