"""Random scalar expressions of every kind, rows for them, and what `evaluate` makes of both."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from ivme.errors import DataError
from ivme.query import sql_values
from ivme.query.expression import Call, ColumnRef, Expression, Literal, evaluate
from ivme.query.functions import FUNCTIONS
from ivme.query.model import table
from ivme.query.types import Type

COLUMNS = {
    "i": "int",
    "j": "int",
    "f": "float",
    "g": "float",
    "n": "decimal(10, 2)",
    "m": "decimal(25, 4)",
    "s": "string",
    "t": "string",
    "b": "bool",
    "c": "bool",
    "d": "date",
    "z": "timestamp",
    "x": "binary",
}
TABLE = table("v", COLUMNS)

INTS = st.one_of(st.integers(-3, 3), st.integers(-(2**63) + 1, 2**63 - 1))
FLOATS = st.one_of(st.sampled_from([0.0, 1.0, -2.5, 0.125, 2.5, 1e300]), st.floats(allow_nan=False))
NARROW = st.decimals(-(10**6), 10**6, places=2, allow_nan=False)
WIDE = st.decimals(-(10**19), 10**19, places=4, allow_nan=False)
TEXTS = st.one_of(
    st.sampled_from(["", "a", "ab", "aB ", " b", "a\nb", "ß", "12", "2024-02-29", "a%b", "a_b", "true", "x\\"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
DATES = st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))
MOMENTS = st.datetimes().map(lambda moment: moment.replace(fold=0))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": INTS,
    "j": INTS,
    "f": FLOATS,
    "g": FLOATS,
    "n": NARROW,
    "m": WIDE,
    "s": TEXTS,
    "t": TEXTS,
    "b": st.booleans(),
    "c": st.booleans(),
    "d": DATES,
    "z": MOMENTS,
    "x": st.binary(max_size=3),
}
LITERALS: dict[str, st.SearchStrategy[Any]] = {
    "int": INTS,
    "float": FLOATS,
    "decimal": NARROW,
    "string": TEXTS,
    "bool": st.booleans(),
    "date": DATES,
    "timestamp": MOMENTS,
    "binary": st.binary(max_size=3),
}
KINDS: dict[str, list[str]] = {
    kind: [name for name, declared in COLUMNS.items() if declared.startswith(kind)] for kind in LITERALS
}


@st.composite
def expressions(draw: Any, kind: str, depth: int = 3) -> Expression:
    """An expression of a kind that SQL accepts; what it computes may still be in error."""
    if depth == 0 or (depth < 3 and draw(st.booleans())):
        if draw(st.integers(0, 4)) == 0:
            return Literal(draw(st.one_of(LITERALS[kind], LITERALS[kind], st.none())))
        return ColumnRef(draw(st.sampled_from(KINDS[kind])))

    def sub(*kinds: str) -> Expression:
        found: Expression = draw(expressions(draw(st.sampled_from(kinds)), depth - 1))
        return found

    def call(function: str, *arguments: Expression) -> Expression:
        return Call(function, arguments)

    shape = draw(st.integers(0, 13))
    if shape == 0:
        branches = [part for _ in range(draw(st.integers(1, 2))) for part in (sub("bool"), sub(*mixes(kind)))]
        return call("case", *branches, *([sub(*mixes(kind))] if draw(st.booleans()) else []))
    if shape == 1:
        return call("coalesce", *(sub(*mixes(kind)) for _ in range(draw(st.integers(1, 3)))))
    if shape == 3:
        choice = draw(st.sampled_from(["greatest", "least"]))
        return call(choice, *(sub(*mixes(kind)) for _ in range(draw(st.integers(2, 3)))))
    if shape == 2:
        return call("nullif", sub(kind), sub(kind))
    made: Expression = draw(st.sampled_from(FORMS[kind]))(sub, call, draw)
    return made


def mixes(kind: str) -> tuple[str, ...]:
    return {"decimal": ("decimal", "int"), "float": ("float", "float", "int"), "timestamp": ("timestamp", "date")}.get(
        kind, (kind,)
    )


NUMBERS = ("int", "float", "decimal")
ANYTHING = tuple(LITERALS)
OPERATORS = st.sampled_from(["add", "subtract", "multiply"])
COMPARISONS = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq"])
PATTERNS = st.one_of(TEXTS, st.text("ab%_\\.", max_size=4)).map(Literal)
PLACES = st.integers(-3, 4).map(Literal)
DAYS = st.one_of(DATES.map(str), st.sampled_from(["2024-02-29", "2024", "nonsense"])).map(Literal)
DECIMALS = st.sampled_from([(5, 0), (12, 2), (30, 10)])


def same_kind(sub: Any, draw: Any, number: int) -> list[Expression]:
    group = draw(st.sampled_from([NUMBERS, ("string",), ("date", "timestamp"), ("bool",), ("binary",)]))
    return [sub(*group) for _ in range(number)]


FORMS: dict[str, list[Any]] = {
    "int": [
        lambda sub, call, draw: call(draw(OPERATORS), sub("int"), sub("int")),
        lambda sub, call, _: call("modulo", sub("int"), sub("int")),
        lambda sub, call, draw: call(draw(st.sampled_from(["negate", "abs"])), sub("int")),
        lambda sub, call, draw: call(draw(st.sampled_from(["floor", "ceil"])), sub("int", "float")),
        lambda sub, call, draw: call("round", sub("int"), *([draw(PLACES)] if draw(st.booleans()) else [])),
        lambda sub, call, _: call("length", sub("string", "binary")),
        lambda sub, call, draw: call(draw(st.sampled_from(["year", "month", "day"])), sub("date", "timestamp")),
        lambda sub, call, _: call("cast_int", sub(*NUMBERS, "bool", "string")),
    ],
    "float": [
        lambda sub, call, draw: call(draw(OPERATORS), sub("float"), sub(*NUMBERS)),
        lambda sub, call, draw: call(draw(st.sampled_from(["divide", "modulo"])), sub(*NUMBERS), sub("float")),
        lambda sub, call, _: call("divide", sub("int"), sub("int")),
        lambda sub, call, draw: call(draw(st.sampled_from(["negate", "abs"])), sub("float")),
        lambda sub, call, draw: call("round", sub("float"), draw(PLACES)),
        lambda sub, call, _: call("cast_float", sub(*NUMBERS, "bool", "string")),
    ],
    "decimal": [
        lambda sub, call, draw: call(draw(OPERATORS), sub("decimal"), sub("decimal", "int")),
        lambda sub, call, draw: call(draw(OPERATORS), sub("int"), sub("decimal")),
        lambda sub, call, draw: call(
            draw(st.sampled_from(["divide", "modulo"])), sub("decimal"), sub("decimal", "int")
        ),
        lambda sub, call, draw: call(draw(st.sampled_from(["negate", "abs", "floor", "ceil"])), sub("decimal")),
        lambda sub, call, draw: call("round", sub("decimal"), draw(PLACES)),
        lambda sub, call, draw: call("cast_decimal", sub(*NUMBERS, "string", "bool"), *map(Literal, draw(DECIMALS))),
    ],
    "string": [
        lambda sub, call, draw: call(draw(st.sampled_from(["lower", "upper", "trim"])), sub("string")),
        lambda sub, call, draw: call("substring", sub("string"), *draw(st.lists(PLACES, min_size=1, max_size=2))),
        lambda sub, call, _: call("concat", sub("string"), sub("string"), sub(*ANYTHING)),
        lambda sub, call, _: call("concat", sub("string"), sub("string")),
        lambda sub, call, _: call("cast_string", sub(*ANYTHING)),
    ],
    "bool": [
        lambda sub, call, draw: call(draw(st.sampled_from(["and", "or"])), sub("bool"), sub("bool"), sub("bool")),
        lambda sub, call, _: call("not", sub("bool")),
        lambda sub, call, draw: call(draw(COMPARISONS), *same_kind(sub, draw, 2)),
        lambda sub, call, draw: call(draw(COMPARISONS), sub("date", "timestamp"), draw(DAYS)),
        lambda sub, call, draw: call("in", *same_kind(sub, draw, 3)),
        lambda sub, call, _: call("is_null", sub(*ANYTHING)),
        lambda sub, call, draw: call("like", sub("string"), draw(PATTERNS)),
        lambda sub, call, _: call("like", sub("string"), sub("string"), Literal("!")),
        lambda sub, call, _: call("cast_bool", sub("int", "float", "bool", "string")),
    ],
    "date": [lambda sub, call, _: call("cast_date", sub("date", "timestamp", "string"))],
    "timestamp": [lambda sub, call, _: call("cast_timestamp", sub("date", "timestamp", "string"))],
    "binary": [lambda sub, call, _: call("nullif", sub("binary"), sub("binary"))],
}

_LISTED = (
    "and",
    "or",
    "not",
    "fails",
    "order_key",
    "like",
    "in",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "null_safe_eq",
    "is_null",
)
_UNITS = st.sampled_from(["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND", "no"])
_REGULAR = st.sampled_from(["a", "^a", "b$", "[a-c]+", "(a)(b)?", "a.b", r"\d+", "x|", "(?i)A"])
_SHOWN = st.sampled_from(["yyyy-MM-dd", "d.M.y", "HH:mm:ss.SSS", "MMM d, h a", "DDD", "EEEE"])
_SMALL = st.integers(-3, 12)
_CONSTANTS: dict[str, dict[int, st.SearchStrategy[Any]]] = {
    **{name: {0: _UNITS} for name in ("timestampadd", "timestampdiff", "date_trunc")},
    "trunc": {1: _UNITS},
    **{name: {1: _REGULAR} for name in ("rlike", "regexp_extract", "regexp_count", "regexp_substr")},
    "regexp_extract": {1: _REGULAR, 2: st.integers(0, 2)},
    "regexp_replace": {1: _REGULAR, 2: st.sampled_from(["", "x", "[$0]", "$1"])},
    **{name: {1: _SHOWN} for name in ("date_format", "to_date", "to_timestamp")},
    **{name: {1: _SMALL} for name in ("repeat", "lpad", "rpad", "left", "right")},
    "space": {0: _SMALL},
    "sha2": {1: st.sampled_from([0, 224, 256, 512, 7])},
    **{name: {1: st.sampled_from([8, 16, 32])} for name in ("cast_int", "try_cast_int")},
    **{name: {0: st.integers(-1, 12000), 1: _SMALL, 2: _SMALL} for name in ("make_date", "make_timestamp")},
}
"""Constants for arguments that would otherwise fail for almost every row, or take gigabytes."""


@st.composite
def table_calls(draw: Any, name: str, depth: int = 1) -> Expression:
    """A call of a function of the table, with arguments of the kinds that it takes."""
    function, constants = FUNCTIONS[name], _CONSTANTS.get(name, {})
    arguments = []
    for place in range(draw(st.integers(function.minimum, min(function.maximum, function.minimum + 2)))):
        given = constants.get(place)
        kind = draw(st.sampled_from(function.kinds(place) or ANYTHING))
        arguments.append(draw(expressions(kind, depth - 1)) if given is None else Literal(draw(given)))
    return Call(name, tuple(arguments))


def _named(kind: str) -> list[str]:
    return [name for name, function in FUNCTIONS.items() if function.gives == kind and name not in _LISTED]


def _of_table(kind: str) -> Any:
    return lambda _sub, _call, draw: draw(table_calls(draw(st.sampled_from(_named(kind))), 2))


for _kind in LITERALS:
    if _kind != "decimal":
        FORMS[_kind] += [_of_table(_kind)] * max(len(FORMS[_kind]), 3)
FORMS["decimal"] += [
    lambda sub, call, _: call("pmod", sub("decimal"), sub("decimal", "int")),
    lambda sub, call, draw: call("bround", sub("decimal"), draw(PLACES)),
    lambda sub, call, _: call("extract_second", sub("date", "timestamp")),
    lambda sub, call, draw: call("cast_decimal", sub("timestamp"), Literal(20), draw(st.integers(0, 8).map(Literal))),
    lambda sub, call, draw: call("try_cast_decimal", sub(*NUMBERS, "string"), *map(Literal, draw(DECIMALS))),
]
FORMS["int"] += [
    lambda sub, call, _: call("pmod", sub("int"), sub("int")),
    lambda sub, call, draw: call("bround", sub("int"), draw(PLACES)),
]
FORMS["float"] += [lambda sub, call, _: call("pmod", sub("float"), sub(*NUMBERS))]

ROWS = st.lists(st.fixed_dictionaries({k: st.one_of(v, v, st.none()) for k, v in VALUES.items()}), max_size=6)


def expected(expression: Expression, rows: list[dict[str, Any]], type_: Type | None) -> list[Any] | None:
    """The values as `evaluate` gives them, in the expression's type; None if some row is in error."""
    try:
        return [in_type(evaluate(expression, row), type_) for row in rows]
    except (DataError, OverflowError):
        return None


def in_type(value: Any, type_: Type | None) -> Any:
    if value is None or type_ is None:
        return value
    if type_.kind == "decimal":
        return sql_values.to_decimal(value, type_.precision or 0, type_.scale or 0)
    return float(value) if type_.kind == "float" else value


def as_shown(values: list[Any]) -> list[str]:
    """Values told apart by type and sign of zero, except that a date may stand for its midnight."""
    return [
        repr(
            abs(v)
            if isinstance(v, Decimal) and not v
            else sql_values.to_timestamp(v)
            if isinstance(v, datetime.date)
            else v
        )
        for v in values
    ]
