"""Cases of CAST and TRY_CAST."""

from __future__ import annotations

from decimal import Decimal

from tests.functions.cases import DAYS, MOMENTS, Case, rows

CASTS: dict[str, list[Case]] = {
    "cast_int": [
        Case("CAST({} AS BIGINT)", ("string",), rows("12", " -7 ", "1.5", "x", "", "99999999999999999999", "+3")),
        Case("CAST({} AS BIGINT)", ("float",), rows(1.9, -1.9, 1e30, 1e18)),
        Case("CAST({} AS BIGINT)", ("decimal(20,2)",), rows(Decimal("1.99"), Decimal("-1.99"))),
        Case("CAST({} AS BIGINT)", ("bool",), rows(True, False)),
        Case("CAST({} AS BIGINT)", ("timestamp",), rows(*MOMENTS)),
        Case("CAST({} AS INT)", ("int",), rows(1, 2**31, -(2**31))),
        Case("CAST({} AS INT)", ("float",), rows(1.9, 3e9)),
        Case("CAST({} AS SMALLINT)", ("int",), rows(1, 40000)),
        Case("CAST({} AS TINYINT)", ("string",), rows("1", "200")),
    ],
    "cast_float": [
        Case("CAST({} AS DOUBLE)", ("string",), rows("1.5", " 1e3 ", "x", "Infinity", "-inf", "1_0", "")),
        Case("CAST({} AS DOUBLE)", ("decimal(20,2)",), rows(Decimal("0.10"))),
        Case("CAST({} AS DOUBLE)", ("timestamp",), rows(*MOMENTS)),
        Case("CAST({} AS DOUBLE)", ("int",), rows(2**53 + 1)),
    ],
    "cast_decimal": [
        Case("CAST({} AS DECIMAL(6, 2))", ("string",), rows("1.235", " 12 ", "x", "99999.99", "1e2")),
        Case("CAST({} AS DECIMAL(6, 2))", ("float",), rows(1.235, 2.345, 99999.0, -0.005)),
        Case("CAST({} AS DECIMAL(6, 2))", ("int",), rows(12, 99999)),
        Case("CAST({} AS DECIMAL(6, 2))", ("bool",), rows(True)),
        Case("CAST({} AS DECIMAL(20, 6))", ("timestamp",), rows(*MOMENTS)),
        Case("CAST({} AS DECIMAL(38, 10))", ("decimal(20,2)",), rows(Decimal("1.99"))),
    ],
    "cast_string": [
        Case("CAST({} AS STRING)", ("int",), rows(12, -7)),
        Case("CAST({} AS STRING)", ("float",), rows(1.5, 1e10, 1e-5, 0.0, 123456789.125)),
        Case("CAST({} AS STRING)", ("decimal(10,2)",), rows(Decimal("1.50"), Decimal("0.00"), Decimal("-0.05"))),
        Case("CAST({} AS STRING)", ("bool",), rows(True, False)),
        Case("CAST({} AS VARCHAR(3))", ("string",), rows("ab", "abcdef", "")),
        Case("CAST({} AS CHAR(4))", ("int",), rows(12, 123456)),
        Case("CAST({} AS STRING)", ("date",), rows(*DAYS)),
        Case("CAST({} AS STRING)", ("timestamp",), rows(*MOMENTS)),
    ],
    "cast_bool": [
        Case("CAST({} AS BOOLEAN)", ("string",), rows("true", " T ", "no", "0", "x", "on")),
        Case("CAST({} AS BOOLEAN)", ("int",), rows(0, 2)),
        Case("CAST({} AS BOOLEAN)", ("float",), rows(0.0, 0.5)),
        Case("CAST({} AS BOOLEAN)", ("decimal(10,2)",), rows(Decimal("0.00"), Decimal("0.01"))),
    ],
    "cast_date": [
        Case(
            "CAST({} AS DATE)",
            ("string",),
            rows(
                "2024-02-29",
                "2024-2-9",
                "2024",
                "2024-02",
                "2023-02-29",
                "x",
                " 2024-02-29 ",
                "2024-02-29 10:11:12",
                "2024-02-29T10",
            ),
        ),
        Case("CAST({} AS DATE)", ("timestamp",), rows(*MOMENTS)),
        Case("TO_DATE({})", ("string",), rows("2024-02-29", "x")),
        Case("DATE({})", ("string",), rows("2024-02-29")),
    ],
    "cast_timestamp": [
        Case(
            "CAST({} AS TIMESTAMP)",
            ("string",),
            rows(
                "2024-02-29 01:02:03",
                "2024-02-29",
                "2024-02-29T01:02",
                "2024-2-9 1:2:3",
                "x",
                "2024-02-29 25:00:00",
                "2024-02-29 01:02:03.123456",
                "2024-02",
                "2024-02-29 01",
                "2024-02-29 01:02:03.1234567",
            ),
        ),
        Case("CAST({} AS TIMESTAMP)", ("date",), rows(*DAYS[:9])),
        Case(
            "CAST({} AS TIMESTAMP)",
            ("string",),
            rows(
                "2024-02-29 01:02:03Z",
                "2024-02-29 01:02:03+02:00",
                "2024-02-29 01:02:03 UTC",
                "2024-02-29T01:02:03.5-0:30",
                "2024-02-29+01:00",
                "2024-02-29 01:02:",
                "2024-02-29 01:02:03.",
            ),
        ),
        Case("CAST({} AS TIMESTAMP)", ("int",), rows(0, -1, 1700000000)),
        Case("CAST({} AS TIMESTAMP)", ("float",), rows(0.5, -1.25, 1e9)),
        Case("CAST({} AS TIMESTAMP)", ("decimal(14,3)",), rows(Decimal("0.500"), Decimal("-1.250"))),
    ],
    "cast_timestamp_ntz": [
        Case(
            "CAST({} AS TIMESTAMP_NTZ)",
            ("string",),
            rows(
                *("2024-02-29 01:02:03", "2024-02-29 01:02:03+02:00", "2024-02-29T01:02:03Z", "2024-02-29", "x"),
                *("2024-02-29 01:02:03.5 UTC", "2024-02-29T01:02:03-0:30"),
            ),
        ),
        Case("TO_TIMESTAMP_NTZ({})", ("string",), rows("2024-02-29 01:02:03+02:00")),
    ],
    "cast_binary": [Case("CAST({} AS BINARY)", ("string",), rows("", "abc", "é"))],
    **{
        f"try_{name}": [Case(case.sql.replace("CAST(", "TRY_CAST(", 1), case.types, case.rows) for case in cases]
        for name, cases in (
            (
                "cast_int",
                [
                    Case("CAST({} AS BIGINT)", ("string",), rows("12", "x", "", "99999999999999999999")),
                    Case("CAST({} AS BIGINT)", ("float",), rows(1.5, 1e30)),
                    Case("CAST({} AS INT)", ("int",), rows(1, 2**31)),
                ],
            ),
            ("cast_float", [Case("CAST({} AS DOUBLE)", ("string",), rows("1.5", "x"))]),
            (
                "cast_decimal",
                [
                    Case("CAST({} AS DECIMAL(6, 2))", ("string",), rows("1.235", "x", "99999.99")),
                    Case("CAST({} AS DECIMAL(3, 1))", ("decimal(10,2)",), rows(Decimal("99.94"), Decimal("99.95"))),
                ],
            ),
            ("cast_bool", [Case("CAST({} AS BOOLEAN)", ("string",), rows("true", "x"))]),
            ("cast_date", [Case("CAST({} AS DATE)", ("string",), rows("2024-02-29", "2023-02-29", "x"))]),
            ("cast_timestamp_ntz", [Case("CAST({} AS TIMESTAMP_NTZ)", ("string",), rows("2024-02-29 01:02:03Z", "x"))]),
            ("cast_timestamp", [Case("CAST({} AS TIMESTAMP)", ("string",), rows("2024-02-29 01:02:03", "x"))]),
        )
    },
}
