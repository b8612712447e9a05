"""Cases of the functions of dates and timestamps."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

from tests.functions.cases import DAYS, MOMENTS, Case, rows

_CLOCK = ("hour", "minute", "second")


def _of_dates(sql: str) -> list[Case]:
    return [Case(sql, ("date",), rows(*DAYS)), Case(sql, ("timestamp",), rows(*MOMENTS))]


_ADDED = rows(*((day, count) for day in DAYS[:7] for count in (0, 1, -1, 30, -400)))
_MONTHS = rows(*((day, count) for day in DAYS[:6] for count in (0, 1, -1, 12, -13)))
_SHIFTED = rows(*((moment, count) for moment in MOMENTS[:5] for count in (0, 1, -1, 25)))

DATES: dict[str, list[Case]] = {
    **{name: _of_dates(f"{name.upper()}({{}})") for name in ("year", "quarter", "month", "day")},
    "weekofyear": [*_of_dates("WEEKOFYEAR({})"), *_of_dates("EXTRACT(WEEK FROM {})")],
    "dayofweek": [*_of_dates("DAYOFWEEK({})"), *_of_dates("EXTRACT(DOW FROM {})")],
    "weekday": _of_dates("WEEKDAY({})"),
    "dayofyear": [*_of_dates("DAYOFYEAR({})"), *_of_dates("EXTRACT(DOY FROM {})")],
    "yearofweek": _of_dates("EXTRACT(YEAROFWEEK FROM {})"),
    "dayofweek_iso": _of_dates("EXTRACT(DAYOFWEEK_ISO FROM {})"),
    **{name: [Case(f"{name.upper()}({{}})", ("timestamp",), rows(*MOMENTS))] for name in _CLOCK},
    "extract_second": [Case("EXTRACT(SECOND FROM {})", ("timestamp",), rows(*MOMENTS))],
    "dayname": _of_dates("DAYNAME({})"),
    "monthname": _of_dates("MONTHNAME({})"),
    "date_add": [
        Case("DATE_ADD({}, {})", ("date", "int"), _ADDED),
        Case("{} + INTERVAL '90' DAY", ("date",), rows(*DAYS[:5])),
        Case("{} + 30", ("date",), rows(*DAYS[:5])),
        Case("INTERVAL 2 WEEKS + {}", ("date",), rows(*DAYS[:5])),
    ],
    "date_sub": [
        Case("DATE_SUB({}, {})", ("date", "int"), _ADDED),
        Case("{} - INTERVAL '1' DAY", ("date",), rows(*DAYS[:5])),
        Case("{} - 7", ("date",), rows(*DAYS[:5])),
    ],
    "add_months": [
        Case("ADD_MONTHS({}, {})", ("date", "int"), _MONTHS),
        Case("{} + INTERVAL '1' MONTH", ("date",), rows(*DAYS[:9])),
        Case("{} - INTERVAL 1 YEAR", ("date",), rows(*DAYS[:9])),
        Case("{} + INTERVAL '1-2' YEAR TO MONTH", ("date",), rows(*DAYS[:9])),
    ],
    "timestampadd": [
        *(
            Case(f"TIMESTAMPADD({unit}, {{1}}, {{0}})", ("timestamp", "int"), _SHIFTED)
            for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND")
        ),
        Case("DATEADD(MONTH, {1}, {0})", ("timestamp", "int"), _SHIFTED),
        Case("{} + INTERVAL '1' HOUR", ("date",), rows(*DAYS[:5])),
        Case("{} - INTERVAL 90 MINUTES", ("timestamp",), rows(*MOMENTS)),
        Case("{} + INTERVAL '1 02:03:04.5' DAY TO SECOND", ("timestamp",), rows(*MOMENTS[:6])),
        Case("{} - INTERVAL '1 02:03' DAY TO MINUTE", ("timestamp",), rows(*MOMENTS[:6])),
        Case("{} + INTERVAL '1' MONTH", ("timestamp",), rows(*MOMENTS[:6])),
        Case("{} - INTERVAL '1.5' SECOND", ("timestamp",), rows(*MOMENTS[:6])),
    ],
    "datediff": [
        Case("DATEDIFF({}, {})", ("date", "date"), rows(*pairwise(DAYS))),
        Case("DATEDIFF({}, {})", ("timestamp", "date"), rows(*zip(MOMENTS, DAYS, strict=False))),
    ],
    "timestampdiff": [
        *(
            Case(
                f"TIMESTAMPDIFF({unit}, {{}}, {{}})",
                ("timestamp", "timestamp"),
                rows(*pairwise(MOMENTS)),
            )
            for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND")
        ),
        Case("DATEDIFF(MONTH, {}, {})", ("date", "date"), rows(*pairwise(DAYS))),
    ],
    "months_between": [
        Case("MONTHS_BETWEEN({}, {})", ("date", "date"), rows(*pairwise(DAYS))),
        Case("MONTHS_BETWEEN({}, {})", ("timestamp", "timestamp"), rows(*pairwise(MOMENTS))),
    ],
    "date_trunc": [
        *(
            Case(f"DATE_TRUNC('{unit}', {{}})", ("timestamp",), rows(*MOMENTS))
            for unit in (
                "year",
                "QUARTER",
                "month",
                "week",
                "day",
                "hour",
                "minute",
                "second",
                "millisecond",
                "microsecond",
                "mm",
                "yy",
            )
        ),
        Case("DATE_TRUNC('month', {})", ("date",), rows(*DAYS[:9])),
    ],
    "trunc": [
        Case(f"TRUNC({{}}, '{unit}')", ("date",), rows(*DAYS))
        for unit in ("year", "QUARTER", "MM", "week", "mon", "yy")
    ],
    "last_day": _of_dates("LAST_DAY({})"),
    "next_day": [
        Case(
            "NEXT_DAY({}, {})",
            ("date", "string"),
            rows((DAYS[0], "MON"), (DAYS[0], "thursday"), (DAYS[1], "Su"), (DAYS[1], "x")),
        )
    ],
    "make_date": [
        Case(
            "MAKE_DATE({}, {}, {})",
            ("int", "int", "int"),
            rows((2024, 2, 29), (2023, 2, 29), (2000, 13, 1), (1, 1, 1)),
        )
    ],
    "make_timestamp": [
        Case(
            "MAKE_TIMESTAMP({}, {}, {}, {}, {}, {})",
            ("int", "int", "int", "int", "int", "decimal(8,6)"),
            rows(
                (2024, 2, 29, 23, 59, Decimal("59.500000")),
                (2024, 2, 29, 24, 0, Decimal("1.000000")),
                (2024, 2, 29, 1, 0, Decimal("60.000000")),
            ),
        )
    ],
    "to_date": [
        Case(
            "TO_DATE({}, 'yyyy-MM-dd')", ("string",), rows("2024-02-29", "2024-2-29", "2023-02-29", "x", " 2024-02-29")
        ),
        Case("TO_DATE({}, 'd/M/yyyy')", ("string",), rows("1/2/2024", "01/12/2024", "32/1/2024", "1/2/24")),
        Case("TO_DATE({}, 'yyyyMMdd')", ("string",), rows("20240229", "2024022", "202402291")),
        Case("TO_DATE({}, 'dd MMM yyyy')", ("string",), rows("01 Feb 2024", "01 feb 2024", "1 Feb 2024")),
    ],
    "to_timestamp": [
        Case(
            "TO_TIMESTAMP({}, 'yyyy-MM-dd HH:mm:ss')",
            ("string",),
            rows("2024-02-29 01:02:03", "2024-02-29 24:02:03", "2024-02-29 1:02:03"),
        ),
        Case(
            "TO_TIMESTAMP({}, 'yyyy-MM-dd HH:mm:ss.SSS')",
            ("string",),
            rows(
                "2024-02-29 01:02:03.250", "2024-02-29 01:02:03.25", "2024-02-29 01:02:03.", "2024-02-29 01:02:03.2505"
            ),
        ),
    ],
    "date_format": [
        Case(f"DATE_FORMAT({{}}, '{pattern}')", ("timestamp",), rows(*MOMENTS))
        for pattern in (
            *(
                "yyyy-MM-dd",
                "yy/M/d",
                "y",
                "MMM d, yyyy",
                "MMMM",
                "E",
                "EEEE",
                "HH:mm:ss.SSS",
                "h:m:s a",
                "hh a",
                "D",
                "DDD",
            ),
            *("yyyy-MM-dd''T''HH:mm:ssSSSSSS".replace("''", "\\'"), "Q", "QQ", "yyyyMM", "H"),
        )
    ]
    + [Case("DATE_FORMAT({}, 'yyyy-MM')", ("date",), rows(*DAYS))],
    "unix_date": [Case("UNIX_DATE({})", ("date",), rows(*DAYS))],
    "date_from_unix_date": [Case("DATE_FROM_UNIX_DATE({})", ("int",), rows(0, 1, -1, 19000, -700000))],
    "unix_timestamp": [
        Case("UNIX_TIMESTAMP({})", ("timestamp",), rows(*MOMENTS)),
        Case("UNIX_TIMESTAMP({})", ("date",), rows(*DAYS)),
        Case("UNIX_TIMESTAMP({})", ("string",), rows("2024-02-29 01:02:03", "2024-02-29", "x")),
        Case("UNIX_TIMESTAMP({}, 'dd/MM/yyyy')", ("string",), rows("29/02/2024", "1/2/2024", "30/02/2024")),
        Case("TO_UNIX_TIMESTAMP({}, 'yyyy-MM-dd')", ("string",), rows("2024-02-29", "1969-12-31", "x")),
    ],
    "from_unixtime": [
        Case("FROM_UNIXTIME({})", ("int",), rows(0, -1, 1715907723, -62135596800)),
        Case("FROM_UNIXTIME({}, 'yyyy/MM/dd HH')", ("int",), rows(0, 1715907723)),
    ],
    "unix_seconds": [Case("UNIX_SECONDS({})", ("timestamp",), rows(*MOMENTS))],
    "unix_millis": [Case("UNIX_MILLIS({})", ("timestamp",), rows(*MOMENTS))],
    "unix_micros": [Case("UNIX_MICROS({})", ("timestamp",), rows(*MOMENTS))],
    "timestamp_seconds": [
        Case("TIMESTAMP_SECONDS({})", ("int",), rows(0, 1, -1, 1700000000)),
        Case("TIMESTAMP_SECONDS({})", ("float",), rows(0.5, -1.25, 1e9)),
    ],
    "timestamp_millis": [Case("TIMESTAMP_MILLIS({})", ("int",), rows(0, 1, -1, 1700000000123))],
    "timestamp_micros": [Case("TIMESTAMP_MICROS({})", ("int",), rows(0, 1, -1, 1700000000123456))],
}
