"""Calls of the scalar functions with arguments, whose values `vectors/functions.json` has from Spark 4.

A case is a text of SQL with a `{}` for each argument, the types of the arguments, and rows of them. Each row is also
tried with each of its arguments NULL. `tests/spark/test_functions.py` asks Spark for all of them in one session, and
writes the file anew with IVME_UPDATE_GOLDEN=1.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[1] / "vectors" / "functions.json"
ERROR = "error"
Row = tuple[Any, ...]

_NAMES = {"Decimal": Decimal, "date": datetime.date, "datetime": datetime.datetime, "inf": float("inf")}


@dataclass(frozen=True, slots=True)
class Case:
    """Calls of one shape. `exact` is False where the last digit of a float may differ from Java's."""

    sql: str
    types: tuple[str, ...]
    rows: tuple[Row, ...]
    exact: bool = True

    def with_nulls(self) -> Iterator[Row]:
        yield from self.rows
        for i in range(len(self.types)):
            yield tuple(None if place == i else value for place, value in enumerate(self.rows[0]))

    def written(self, row: Row) -> str:
        return self.sql.format(*(literal(value, type_) for value, type_ in zip(row, self.types, strict=True)))


def literal(value: Any, type_: str) -> str:
    """A value as an SQL constant of a type, for Spark and for ivme."""
    if value is None:
        return f"CAST(NULL AS {_SQL.get(type_, type_)})"
    match type_:
        case "string":
            escapes = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r"}
            return "'" + "".join(escapes.get(character, character) for character in value) + "'"
        case "int":
            return f"{value}" if abs(value) < 2**31 else f"{value}L"
        case "float":
            return f"CAST('{value}' AS DOUBLE)"
        case "bool":
            return str(value).upper()
        case "date":
            return f"DATE '{value}'"
        case "timestamp":
            return f"TIMESTAMP '{value}'"
        case "binary":
            return f"X'{value.hex().upper()}'"
    return f"CAST('{value}' AS {type_})"


_SQL = {"int": "INT", "float": "DOUBLE", "bool": "BOOLEAN"}


def expected() -> dict[str, Any]:
    """What Spark answers, by the text of the call; `ERROR` where it fails."""
    found: dict[str, str] = json.loads(VECTORS.read_text("utf-8"))
    return {sql: ERROR if shown == ERROR else read(shown) for sql, shown in found.items()}


def shown(value: Any) -> str:
    """A value as the file has it."""
    return repr(value).replace("datetime.", "")


def read(text: str) -> Any:
    return eval(text, {"__builtins__": {}}, {**_NAMES, "nan": float("nan"), "bytearray": bytes})


def _day(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def same(left: Any, right: Any, *, exact: bool) -> bool:
    """Whether two values are equal, and of one type; floats to the last digits if they need not be exact."""
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or not exact:
            return math.isclose(left, right, rel_tol=4e-16, abs_tol=0.0) or (math.isnan(left) and math.isnan(right))
        return left == right
    return type(left) is type(right) and left == right and str(left) == str(right)


def is_holdable(found: Any) -> bool:
    """Whether a column holds a value: NaN and -2**63 are none."""
    return bool(found == found and found != -(2**63))


def no_zero(found: Any) -> Any:
    """0.0 for -0.0, as columns have it."""
    return 0.0 if isinstance(found, float) and found == 0 else found


def rows(*rows: Any) -> tuple[Row, ...]:
    return tuple(row if isinstance(row, tuple) else (row,) for row in rows)


DAYS = [
    _day(day)
    for day in (
        *("2024-02-29", "2023-12-31", "2024-12-30", "2021-01-03", "2000-01-01", "1999-12-31"),
        *("1970-01-01", "1969-12-31", "1900-03-01", "0001-01-01", "9999-12-31", "2024-03-31", "2024-08-15"),
    )
]
MOMENTS = [
    _moment(moment)
    for moment in (
        *("2024-02-29 23:59:59.999999", "2023-12-31 12:00:00", "1969-12-31 23:59:59.5", "1970-01-01 00:00:00"),
        *("2024-05-15 01:02:03.000456", "1900-01-01 00:00:01", "9999-12-31 23:59:59.999999", "2024-10-01 13:30:00"),
    )
]
TEXTS = [
    "",
    "a",
    "abc",
    "  ab c ",
    "Hello World",
    "aXbXc",
    "ß-straße",
    "été",
    "日本語",
    "a\nb",
    "🎉x",
    "x,y,,z",
    "'q'",
]
FLOATS = [0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.7, 1e-3, 1e10, -123.456, 1e300]
