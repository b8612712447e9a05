"""INTERVALs: how they are written, and what a date or timestamp becomes with them."""

from __future__ import annotations

import datetime

import pytest

from ivme.errors import QueryError
from ivme.query.expression import Call, Expression, Literal
from ivme.query.model import table
from ivme.query.table_expression import Parameters, parse_condition

T = table("T", {"d": "date", "z": "timestamp", "s": "string", "n": "int"})
UNTYPED = table("U", ["d"])


def read(text: str) -> Expression:
    tested = parse_condition(f"({text}) IS NULL", T, Parameters({}))
    assert isinstance(tested, Call)
    return tested.arguments[0]


CONSTANTS = {
    "DATE '1998-12-01' - INTERVAL '90' DAY": datetime.date(1998, 9, 2),
    "CAST('2000-01-01' AS DATE) + INTERVAL 30 DAYS": datetime.date(2000, 1, 31),
    "(CAST('2000-01-01' AS DATE) + 30 days)": datetime.date(2000, 1, 31),
    "(CAST('2000-01-31' AS DATE) - 1 month)": datetime.date(1999, 12, 31),
    "DATE '2000-01-31' + INTERVAL '1' MONTH": datetime.date(2000, 2, 29),
    "DATE '2000-01-31' + INTERVAL 1 MONTH 3 DAYS": datetime.date(2000, 3, 3),
    "DATE '2000-01-31' + INTERVAL '1 month 3 days'": datetime.date(2000, 3, 3),
    "DATE '2000-01-31' + (INTERVAL '1' MONTH + INTERVAL '3' DAY)": datetime.date(2000, 3, 3),
    "DATE '2000-01-01' - (- INTERVAL '1' WEEK)": datetime.date(2000, 1, 8),
    "DATE '2000-01-01' + INTERVAL '-2' QUARTERS": datetime.date(1999, 7, 1),
    "INTERVAL '1' DAY + DATE '2000-01-01'": datetime.date(2000, 1, 2),
    "DATE '2000-01-01' + INTERVAL '1day'": datetime.date(2000, 1, 2),
    "DATE '2000-01-01' + INTERVAL ' -1  DAY '": datetime.date(1999, 12, 31),
    "DATE '2000-01-01' + INTERVAL '24' HOUR": datetime.datetime(2000, 1, 2),
    "DATE '2000-01-01' + 1 - 2": datetime.date(1999, 12, 31),
    "1 + DATE '2000-01-01'": datetime.date(2000, 1, 2),
    "TIMESTAMP '2000-01-01 00:00:00' - INTERVAL '1.5' SECOND": datetime.datetime(1999, 12, 31, 23, 59, 58, 500000),
    "TIMESTAMP '2000-01-01' + INTERVAL '-1 02:03:04' DAY TO SECOND": datetime.datetime(1999, 12, 30, 21, 56, 56),
    "TIMESTAMP '2000-01-01 00:00:00' + INTERVAL '02:30' HOUR TO MINUTE": datetime.datetime(2000, 1, 1, 2, 30),
    "TIMESTAMP '2000-01-01 00:00:00' + INTERVAL 1 MONTH 2 HOURS": datetime.datetime(2000, 2, 1, 2),
    "DATE_ADD(DATE '2000-01-01', 30)": datetime.date(2000, 1, 31),
}


@pytest.mark.parametrize(("text", "expected"), CONSTANTS.items())
def test_constants_are_folded(text: str, expected: datetime.date) -> None:
    assert Literal(expected) == read(text)


SHOWN = {
    "d + INTERVAL '1' DAY": "date_add(d, 1)",
    "d - INTERVAL '1' DAY": "date_sub(d, 1)",
    "d - INTERVAL 1 YEAR": "add_months(d, -12)",
    "d + INTERVAL '2' HOUR": "TIMESTAMPADD(HOUR, 2, CAST(d AS TIMESTAMP))",
    "z - INTERVAL '90' MINUTE": "TIMESTAMPADD(MINUTE, -90, z)",
    "z + INTERVAL '1' MONTH": "TIMESTAMPADD(MONTH, 1, z)",
    "z + INTERVAL '1 02:00:00' DAY TO SECOND": "TIMESTAMPADD(HOUR, 2, TIMESTAMPADD(DAY, 1, z))",
    "d + n": "date_add(d, n)",
    "d - n": "date_sub(d, n)",
    "n + d": "date_add(d, n)",
    "d + INTERVAL '1' DAY - INTERVAL '1' MONTH": "add_months(date_add(d, 1), -1)",
}


@pytest.mark.parametrize(("text", "expected"), SHOWN.items())
def test_an_interval_becomes_a_function_of_the_moment(text: str, expected: str) -> None:
    assert expected == str(read(text))


REFUSED = {
    "d + INTERVAL n DAY": "an INTERVAL of a value that is not a constant is not supported",
    "s + INTERVAL '1' DAY": "an INTERVAL is added to s, which is of type string",
    "n + INTERVAL '1' DAY": "an INTERVAL is added to n, which is of type int",
    "NULL + INTERVAL '1' DAY": "of no known type",
    "d + INTERVAL '1.5' DAY": "the INTERVAL 1.5 DAY is not supported",
    "d + INTERVAL '1 day and more'": "the INTERVAL '1 day and more' is not supported",
    "d + INTERVAL '1-2' DAY TO SECOND": "the INTERVAL '1-2' DAY TO SECOND is not supported",
    "d + INTERVAL '1 02:03' DAY TO SECOND": "is not supported",
    "d - d": "a difference of dates or timestamps is not supported",
    "z - d": "a difference of dates or timestamps is not supported",
    "INTERVAL '1' DAY - d": "INTERVAL",
    "DATE '9999-12-31' + INTERVAL '1' DAY": "the date is not between the years 1 and 9999",
    "DATE '2023-02-29' + INTERVAL '1' DAY": "'2023-02-29' is not a date",
    "d + 1.5": "computes with a value of type date",
    "d + INTERVAL '1 day 2'": "the INTERVAL '1 day 2' is not supported",
    "d + INTERVAL '1 day, 2 hours'": "the INTERVAL '1 day, 2 hours' is not supported",
    "d + INTERVAL ''": "is not supported",
    "(n + 30 days)": "an INTERVAL is added to n, which is of type int",
    "(d + 30 apples)": "not supported",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items())
def test_what_is_not_an_interval_of_a_moment_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        read(text)
    assert message in str(raised.value)


def test_a_moment_of_no_known_type_is_refused() -> None:
    with pytest.raises(QueryError, match="of no known type"):
        parse_condition("d + INTERVAL '1' DAY IS NULL", UNTYPED, Parameters({}))
