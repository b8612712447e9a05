"""Columns and their values: small pools, so that rows meet, repeat, and come back after they are deleted.

A column's name fixes its type and its pool everywhere, so that USING joins what can be joined.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

from ivme.query.types import Type, parse_type

Row = tuple[Any, ...]

NAN = math.nan
"""The one NaN that is used, so that rows with it are found again in Python's dictionaries."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation. `bound` is the largest magnitude of its numbers; None where arithmetic could fail."""

    name: str
    type: Type
    bound: int | None = None
    exact: bool = True


def _decimals(*texts: str) -> list[Any]:
    return [Decimal(text) for text in texts]


def _days(*texts: str) -> list[Any]:
    return [datetime.date.fromisoformat(text) for text in texts]


def _times(*texts: str) -> list[Any]:
    return [datetime.datetime.fromisoformat(text) for text in texts]


POOLS: dict[str, tuple[str, int | None, list[Any]]] = {
    "i": ("int", 3, [0, 1, 2, 3]),
    "j": ("int", 3, [0, 1, 2, -3]),
    "k": ("int", 9, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    "w": ("int", 199, list(range(200))),
    "big": ("int", None, [0, 1, 2**53, 2**53 + 1, -(2**53) - 1, 10**15, 2**31]),
    "f": ("float", 8, [0.0, 1.0, -1.5, 0.1, 0.25, 8.0]),
    "g": ("float", 10**6, [0.0, -0.0, 1.0, 0.1, 0.2, 0.3, -2.5, 1e6, 3.0]),
    "wild": ("float", None, [math.inf, -math.inf, 0.0, -0.0, 1.0, 2.5]),
    "huge": ("float", None, [1e17, -1e17, 1.0, 0.1, 5e-324, 1e308, 2.0**53, 35.17]),
    "d2": ("decimal(9,2)", 10**7, _decimals("0.00", "1.00", "1.50", "-2.25", "3.00", "9999999.99")),
    "d0": ("decimal(5,0)", 10**5, _decimals("0", "1", "2", "-3", "99999")),
    "d20": ("decimal(20,2)", 10**18, _decimals("0.00", "1.00", "123456789012345678.90", "-0.01", "2.50")),
    "d38": ("decimal(38,10)", None, _decimals("0", "1.5", "1234567890123456789012345678.0123456789", "-1e-10")),
    "s": ("string", None, ["", "a", "b", "ab", "A", "żółw"]),
    "u": ("string", None, ["a", "b", " a ", "a%b", "a_b", "x'y", "日本", "abc", "\\", "a\nb", "aab"]),
    "n": ("string", 99, ["1", "2", "-3", "007", " 4 "]),
    "b": ("bool", None, [True, False]),
    "dt": ("date", None, _days("2024-02-29", "2024-03-01", "1969-12-31", "2026-11-15", "0999-01-01", "9999-12-31")),
    "ts": ("timestamp", None, _times("2024-02-29T00:00:00", "2024-02-29T12:30:00.000001", "1969-12-31T23:59:59.5")),
    "bin": ("binary", None, [b"", b"\0", b"ab", b"\xff\xfe"]),
}
"""For each name of a column its type, the largest magnitude, and the values."""

NESTED_POOLS: dict[str, tuple[str, int | None, list[Any]]] = {
    "li": ("array<int>", None, [(), (1,), (1, 2), (2,), (-3, 0, 7)]),
    "ls": ("array<string>", None, [(), ("a",), ("a", "b"), ("ab",), ("", "żółw")]),
    "st": ("struct<x int, y string>", None, [(1, "a"), (1, "b"), (2, "a"), (2, "")]),
}
"""Arrays and structs without NULLs in them, which DuckDB orders otherwise than Spark; drawn by `tests.select` only."""

ALL_POOLS = {**POOLS, **NESTED_POOLS}

_WRONG: dict[str, Any] = {
    "int": "one",
    "float": "one",
    "decimal": "one",
    "string": 1,
    "bool": "x",
    "date": 3,
    "timestamp": 3,
    "binary": 1,
    "array": "one",
    "struct": "one",
}


def column(name: str) -> Column:
    """The column of that name."""
    type_, bound, _ = ALL_POOLS[name]
    return Column(name, parse_type(type_), bound)


def value(random: Random, name: str, *, nulls: bool = True) -> Any:
    """A value of the column's pool, or NULL."""
    if nulls and random.random() < 0.12:
        return None
    pool = ALL_POOLS[name][2]
    found = random.choice(pool)
    return scaled(found, column(name).type)


def scaled(found: Any, type_: Type) -> Any:
    if type_.kind != "decimal":
        return found
    assert type_.scale is not None
    sign, digits, exponent = found.as_tuple()
    assert isinstance(exponent, int)
    return Decimal((sign, (*digits, *[0] * (type_.scale + exponent)), -type_.scale))


def wrong_value(random: Random, type_: Type) -> Any:
    """A value that no column of this type takes."""
    return NAN if type_.kind == "float" and random.random() < 0.5 else _WRONG[type_.kind]


def is_wrong(found: Any, type_: Type) -> bool:
    """Whether a column of this type refuses the value; NaN is refused by ivme, since it does not equal itself."""
    if isinstance(found, float) and math.isnan(found):
        return True
    return type(found) is type(_WRONG[type_.kind]) and bool(found == _WRONG[type_.kind])


def canonical(found: Any) -> Any:
    """What two values have in common if SQL takes them for the same, and their Python types agree.

    >>> canonical(1) == canonical(1.0), canonical(-0.0) == canonical(0.0), canonical(NAN) == canonical(-NAN)
    (False, True, True)
    """
    if found is None:
        return None
    if isinstance(found, Mapping):
        return ("struct", tuple((name, canonical(each)) for name, each in found.items()))
    if isinstance(found, list | tuple):
        return ("array", tuple(map(canonical, found)))
    if isinstance(found, float):
        return ("float", "NaN" if math.isnan(found) else found)
    return (type(found).__name__, found)
