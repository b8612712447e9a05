"""Cases of the functions of numbers, and of those that choose."""

from __future__ import annotations

from decimal import Decimal

from tests.functions.cases import DAYS, FLOATS, MOMENTS, Case, rows


def _of_floats(sql: str, *more: float, exact: bool = False) -> list[Case]:
    return [
        Case(sql, ("float",), rows(*FLOATS, *more), exact),
        Case(sql, ("int",), rows(0, 1, -1, 4, 1000), exact),
        Case(sql, ("decimal(10,2)",), rows(Decimal("0.00"), Decimal("2.25"), Decimal("-1.50")), exact),
    ]


NUMBERS: dict[str, list[Case]] = {
    "greatest": [
        Case("GREATEST({}, {})", ("int", "int"), rows((1, 2), (3, -3), (5, 5))),
        Case("GREATEST({}, {}, {})", ("string", "string", "string"), rows(("a", "b", "B"), ("", "日", "é"))),
        Case("GREATEST({}, {})", ("date", "date"), rows((DAYS[0], DAYS[1]))),
        Case("GREATEST({}, {})", ("int", "float"), rows((1, 2.5), (3, 2.5))),
        Case("GREATEST({}, {})", ("decimal(10,2)", "int"), rows((Decimal("1.50"), 2), (Decimal("2.50"), 2))),
        Case("GREATEST({}, {})", ("bool", "bool"), rows((True, False), (False, False))),
    ],
    "least": [
        Case("LEAST({}, {})", ("int", "int"), rows((1, 2), (3, -3), (5, 5))),
        Case("LEAST({}, {}, {})", ("string", "string", "string"), rows(("a", "b", "B"), ("", "日", "é"))),
        Case("LEAST({}, {})", ("timestamp", "timestamp"), rows((MOMENTS[0], MOMENTS[1]))),
        Case(
            "LEAST({}, {})",
            ("decimal(10,2)", "decimal(6,4)"),
            rows((Decimal("1.50"), Decimal("1.4999")), (Decimal("-1.50"), Decimal("1.4999"))),
        ),
    ],
    "power": [
        Case(
            "POWER({}, {})",
            ("float", "float"),
            rows(
                (2.0, 10.0), (0.0, 0.0), (0.0, -1.0), (-8.0, 3.0), (2.0, 0.5), (10.0, 400.0), (1.5, -2.0), (-8.0, 0.5)
            ),
            exact=False,
        ),
        Case("POWER({}, {})", ("int", "int"), rows((2, 10), (10, -2), (0, 0)), exact=False),
    ],
    "sqrt": _of_floats("SQRT({})", exact=True),
    "cbrt": _of_floats("CBRT({})", 27.0),
    "exp": _of_floats("EXP({})", 710.0, -800.0),
    "ln": [*_of_floats("LN({})"), *_of_floats("LOG({})")],
    "log": [
        Case(
            "LOG({}, {})",
            ("float", "float"),
            rows((2.0, 8.0), (10.0, 0.001), (0.0, 8.0), (2.0, 0.0), (-1.0, 2.0), (0.5, 4.0), (1.0, 2.0)),
            exact=False,
        )
    ],
    "log10": _of_floats("LOG10({})"),
    "log2": _of_floats("LOG2({})"),
    "log1p": _of_floats("LOG1P({})", -1.0, -2.0),
    "expm1": _of_floats("EXPM1({})"),
    "sin": _of_floats("SIN({})"),
    "cos": _of_floats("COS({})"),
    "tan": _of_floats("TAN({})"),
    "asin": _of_floats("ASIN({})"),
    "acos": _of_floats("ACOS({})"),
    "atan": _of_floats("ATAN({})"),
    "sinh": _of_floats("SINH({})"),
    "cosh": _of_floats("COSH({})"),
    "tanh": _of_floats("TANH({})"),
    "atan2": [Case("ATAN2({}, {})", ("float", "float"), rows((1.0, 2.0), (0.0, 0.0), (-1.0, 0.0)), exact=False)],
    "hypot": [Case("HYPOT({}, {})", ("float", "float"), rows((3.0, 4.0), (0.0, 0.0), (1e300, 1e300)), exact=False)],
    "degrees": _of_floats("DEGREES({})"),
    "radians": _of_floats("RADIANS({})"),
    "rint": [Case("RINT({})", ("float",), rows(0.5, 1.5, 2.5, -0.5, 1e300))],
    "sign": _of_floats("SIGN({})", exact=True),
    "factorial": [Case("FACTORIAL({})", ("int",), rows(0, 1, 5, 20, 21, -1))],
    "modulo": [
        Case("MOD({}, {})", ("int", "int"), rows((7, 3), (-7, 3), (7, -3), (7, 0))),
        Case(
            "{} % {}",
            ("decimal(10,2)", "decimal(4,1)"),
            rows((Decimal("7.25"), Decimal("2.5")), (Decimal("-7.25"), Decimal("2.5"))),
        ),
        Case("{} % {}", ("float", "float"), rows((7.5, 2.0), (-7.5, 2.0))),
    ],
    "pmod": [
        Case("PMOD({}, {})", ("int", "int"), rows((7, 3), (-7, 3), (7, -3), (-7, -3), (7, 0))),
        Case(
            "PMOD({}, {})",
            ("decimal(10,2)", "decimal(4,1)"),
            rows((Decimal("7.25"), Decimal("2.5")), (Decimal("-7.25"), Decimal("2.5"))),
        ),
        Case("PMOD({}, {})", ("float", "float"), rows((7.5, 2.0), (-7.5, 2.0), (-7.5, -2.0))),
    ],
    "div": [
        Case("{} DIV {}", ("int", "int"), rows((7, 3), (-7, 3), (7, -3), (7, 0), (2**62, 3))),
        Case(
            "{} DIV {}",
            ("decimal(10,2)", "decimal(4,1)"),
            rows(
                (Decimal("7.25"), Decimal("2.5")), (Decimal("-7.25"), Decimal("2.5")), (Decimal("1.00"), Decimal("0.0"))
            ),
        ),
    ],
    "round": [
        Case("ROUND({}, {})".replace("{}, {}", "{}, -1"), ("int",), rows(15, 14, -15, 25)),
        Case("ROUND({}, 1)", ("float",), rows(2.25, 2.35, -2.25, 1e300, 0.05)),
        Case("ROUND({}, 1)", ("decimal(10,2)",), rows(Decimal("2.25"), Decimal("-2.25"))),
        Case("ROUND({}, -2)", ("decimal(10,2)",), rows(Decimal("250.00"), Decimal("-249.99"))),
        Case("ROUND({})", ("float",), rows(2.5, -2.5, 0.4)),
    ],
    **{
        f"{name.lower()}_to": [
            *(
                Case(
                    f"{name}({{}}, {digits})",
                    ("decimal(5,2)",),
                    rows(*map(Decimal, ("12.50", "-12.55", "999.99", "0.00"))),
                )
                for digits in (0, 1, 2, 5, -1, -4)
            ),
            *(
                Case(f"{name}({{}}, {digits})", ("float",), rows(3.1411, -3.1419, 0.0, 1e20))
                for digits in (2, 0, -1, 20)
            ),
            *(Case(f"{name}({{}}, {digits})", ("int",), rows(35, -35, 2**63 - 1)) for digits in (-1, 0, 2)),
        ]
        for name in ("CEIL", "FLOOR")
    },
    "bround": [
        Case("BROUND({}, 0)", ("float",), rows(2.5, 3.5, -2.5, 0.4)),
        Case("BROUND({}, 1)", ("decimal(10,2)",), rows(Decimal("2.25"), Decimal("2.35"), Decimal("-2.25"))),
        Case("BROUND({}, -1)", ("int",), rows(15, 25, 35)),
    ],
    "bit_and": [Case("{} & {}", ("int", "int"), rows((12, 10), (-1, 5), (0, 7)))],
    "bit_or": [Case("{} | {}", ("int", "int"), rows((12, 10), (-1, 5), (0, 7)))],
    "bit_xor": [Case("{} ^ {}", ("int", "int"), rows((12, 10), (-1, 5), (0, 7)))],
    "bit_not": [Case("~{}", ("int",), rows(0, 5, -1))],
    "bit_count": [Case("BIT_COUNT({})", ("int",), rows(0, 255, 2**40))],
    "shiftleft": [
        Case("SHIFTLEFT(CAST({} AS BIGINT), {})", ("int", "int"), rows((1, 3), (-1, 3), (1, 64), (1, -1), (3, 40)))
    ],
    "shiftright": [
        Case("SHIFTRIGHT(CAST({} AS BIGINT), {})", ("int", "int"), rows((16, 3), (-16, 3), (16, 64), (16, -1)))
    ],
    "shiftrightunsigned": [
        Case("SHIFTRIGHTUNSIGNED(CAST({} AS BIGINT), {})", ("int", "int"), rows((16, 3), (-16, 3), (16, 64)))
    ],
    "nullif": [
        Case("NULLIF({}, {})", ("int", "int"), rows((1, 1), (1, 2))),
        Case("NULLIF({}, '')", ("string",), rows("", "a")),
    ],
    "coalesce": [
        Case("COALESCE({}, {})", ("int", "int"), rows((1, 2))),
        Case("NVL({}, {})", ("string", "string"), rows(("a", "b"))),
        Case("IFNULL({}, {})", ("int", "int"), rows((1, 2))),
        Case("ZEROIFNULL({})", ("int",), rows(1, 0)),
    ],
    "case": [
        Case("NVL2({}, {}, {})", ("int", "string", "string"), rows((1, "a", "b"))),
        Case("IF({}, {}, {})", ("bool", "int", "int"), rows((True, 1, 2), (False, 1, 2))),
        Case("DECODE({}, 1, 'x', 2, 'y', 'z')", ("int",), rows(1, 2, 3)),
    ],
    "null_safe_eq": [
        Case("{} IS DISTINCT FROM {}", ("int", "int"), rows((1, 1), (1, 2))),
        Case("{} IS NOT DISTINCT FROM {}", ("string", "string"), rows(("a", "a"), ("a", "b"))),
        Case("EQUAL_NULL({}, {})", ("int", "int"), rows((1, 1), (1, 2))),
        Case("{} IS TRUE", ("bool",), rows(True, False)),
        Case("{} IS NOT FALSE", ("bool",), rows(True, False)),
    ],
}
