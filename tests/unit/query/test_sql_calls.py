"""Functions by all the names and shapes that they are written with."""

from __future__ import annotations

import pytest

from ivme.errors import QueryError
from ivme.query.expression import Call
from ivme.query.model import table
from ivme.query.table_expression import Parameters, parse_condition

T = table("T", {"d": "date", "z": "timestamp", "s": "string", "t": "string", "n": "int", "f": "float", "x": "binary"})

WRITTEN = {
    "DATE_SUB(d, n)": "date_sub(d, n)",
    "DATEADD(d, 3)": "date_add(d, 3)",
    "DATEADD(HOUR, 3, z)": "TIMESTAMPADD(HOUR, 3, z)",
    "DATE_DIFF(d, z)": "datediff(d, z)",
    "DATEDIFF(DAY, d, z)": "TIMESTAMPDIFF(DAY, d, z)",
    "DATE_PART('week', d)": "weekofyear(d)",
    "EXTRACT(DOW FROM d)": "dayofweek(d)",
    "EXTRACT(SECONDS FROM z)": "EXTRACT(SECOND FROM z)",
    "DATE_TRUNC('MONTH', d)": "date_trunc('MONTH', d)",
    "TRUNC(d, 'yy')": "trunc(d, 'yy')",
    "TO_DATE(s)": "CAST(s AS DATE)",
    "DATE_FORMAT(d, 'yyyy-MM')": "date_format(d, 'yyyy-MM')",
    "DATE_FORMAT(DATE_ADD(d, 1), 'EEEE')": "date_format(date_add(d, 1), 'EEEE')",
    "LOG10(f)": "log10(f)",
    "LOG(f)": "ln(f)",
    "LOG(10, f)": "log(10, f)",
    "LTRIM(s)": "ltrim(s)",
    "TRIM(TRAILING 'x' FROM s)": "TRIM(TRAILING 'x' FROM s)",
    "BTRIM(s, 'x')": "TRIM(BOTH 'x' FROM s)",
    "POSITION('a' IN s)": "locate('a', s)",
    "STRPOS(s, 'a')": "locate('a', s)",
    "INSTR(s, 'a')": "locate('a', s)",
    "MID(s, 2, 3)": "substring(s, 2, 3)",
    "SUBSTRING(s FROM 2 FOR 3)": "substring(s, 2, 3)",
    "NVL2(n, 1, 2)": "CASE WHEN NOT (n IS NULL) THEN 1 ELSE 2 END",
    "DECODE(n, 1, 'x', 'y')": "CASE WHEN n <=> 1 THEN 'x' ELSE 'y' END",
    "ZEROIFNULL(n)": "coalesce(n, 0)",
    "NULLIFZERO(n)": "nullif(n, 0)",
    "s LIKE ANY ('a%', 'b%')": "(s LIKE 'a%') OR (s LIKE 'b%')",
    "s LIKE ALL ('a%', 'b%')": "(s LIKE 'a%') AND (s LIKE 'b%')",
    "s NOT ILIKE 'A%'": "NOT (s ILIKE 'A%')",
    "s NOT RLIKE 'a'": "NOT (s RLIKE 'a')",
    "n << 2": "shiftleft(n, 2)",
    "n DIV 2": "n DIV 2",
    "LPAD(n, 5, 0)": "lpad(CAST(n AS STRING), 5, CAST(0 AS STRING))",
    "n LIKE '1%'": "CAST(n AS STRING) LIKE '1%'",
    "UPPER(d)": "upper(CAST(d AS STRING))",
    "CAST(n AS SMALLINT)": "CAST(n AS SMALLINT)",
    "TRY_CAST(s AS DECIMAL(5, 2))": "TRY_CAST(s AS DECIMAL(5, 2))",
    "CAST(s AS TIMESTAMP_NTZ)": "CAST(s AS TIMESTAMP_NTZ)",
    "TIMESTAMP_NTZ '2024-01-02 03:04:05'": "TIMESTAMP '2024-01-02 03:04:05'",
    "PI() * f": "3.141592653589793 * f",
    "X'1F' = x": "X'1F' = x",
}


@pytest.mark.parametrize(("text", "expected"), WRITTEN.items())
def test_a_function_is_read_by_each_of_its_names(text: str, expected: str) -> None:
    tested = parse_condition(f"({text}) IS NULL", T, Parameters({}))
    assert isinstance(tested, Call)
    assert expected == str(tested.arguments[0])


REFUSED = {
    "NOW()": "NOW is not the same each time",
    "now() IS NULL OR n": "NOW is not the same each time",
    "CURRENT_DATE": "CURRENT_DATE is not the same each time",
    "CURRENT_TIMESTAMP()": "CURRENT_TIMESTAMP is not the same each time",
    "RANDOM()": "RANDOM is not the same each time",
    "UNIX_TIMESTAMP()": "UNIX_TIMESTAMP is not the same each time",
    "UPPER(x)": "needs a string; x is of type binary",
    "MAKE_TIMESTAMP(1, 2, 3, 4, 5, 6, 'UTC')": "is not supported here",
    "PMOD(n)": "the function PMOD does not take 1 arguments",
    "NVL2(n, 1)": "NVL2 needs three arguments",
    "LOCATE('a', s, 1, 2)": "the function LOCATE does not take 4 arguments",
    "POSITION('a', s, 1, 2)": "does not take 4 arguments",
    "LPAD(s, 3, ' ', 'y')": "the function LPAD does not take 4 arguments",
    "INITCAP(s, ',')": "is not supported here",
    "CEIL(f, i)": "CEIL needs a constant number of digits",
    "DATE_TRUNC(s, d)": "DATE_TRUNC of a unit that is not a constant text",
    "TRUNC(f, 2)": "TRUNC of numbers is not a function of Spark",
    "DATE_FORMAT(d, s)": "DATE_FORMAT of a pattern that is not a constant text",
    "CAST(d AS BIGINT)": "needs a number, string, bool or timestamp",
    "CAST(n AS DATE)": "needs a date, timestamp or string",
    "CAST(f AS FLOAT)": "ivme's floats have 64 bits",
    "REPEAT('ab', 2000000000)": "the text would be longer than 16,777,216 characters",
    "LPAD('a', 2000000000)": "the text would be longer than 16,777,216 characters",
    "n DIV 0": "division by zero",
    "PMOD(n, 0)": "division by zero",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items())
def test_what_cannot_be_read_is_refused_by_the_name_that_is_written(text: str, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        parse_condition(f"({text}) IS NULL", T, Parameters({}))
    assert message in str(raised.value)
