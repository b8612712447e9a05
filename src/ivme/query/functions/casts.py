"""CAST and TRY_CAST between all types for which Spark's ANSI mode has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ivme.query import sql_values as values
from ivme.query.functions.definition import DATED, NUMBERS, TEXT, Function

_CONVERTIBLE = (*NUMBERS, "string", "bool")
_COUNTED = (*_CONVERTIBLE, "timestamp")
"""A timestamp as a number is its seconds since 1970-01-01."""


def _cast(
    apply: Callable[..., Any], sql: str, gives: str, takes: tuple[str, ...], arguments: tuple[int, int] = (1, 1)
) -> Function:
    return Function(*arguments, apply, f"CAST(a AS {sql})", gives, takes, (("int",),))


def _attempted(apply: Callable[..., Any]) -> Callable[..., Any]:
    """A conversion that gives NULL where it fails."""

    def attempt(*arguments: Any) -> Any:
        try:
            return apply(*arguments)
        except (ValueError, ArithmeticError):
            return None

    return attempt


_CASTS: dict[str, Function] = {
    "cast_int": _cast(values.to_int, "BIGINT", "int", _COUNTED, (1, 2)),
    "cast_float": _cast(values.to_float, "DOUBLE", "float", _COUNTED),
    "cast_decimal": _cast(values.to_decimal, "DECIMAL(p, s)", "decimal", _COUNTED, (3, 3)),
    "cast_string": Function(1, 1, values.to_string, "CAST(a AS STRING)", "string", runs="by code"),
    "cast_bool": _cast(values.to_bool, "BOOLEAN", "bool", _CONVERTIBLE),
    "cast_date": _cast(values.to_date, "DATE", "date", DATED),
    "cast_timestamp": _cast(values.to_timestamp, "TIMESTAMP", "timestamp", (*DATED, *NUMBERS)),
    "cast_timestamp_ntz": replace(_cast(values.to_local_timestamp, "TIMESTAMP_NTZ", "timestamp", TEXT), runs="by code"),
    "cast_binary": Function(
        *(1, 1, lambda value: value if isinstance(value, bytes) else values.text(value).encode()),
        *("CAST(a AS BINARY)", "binary", (*TEXT, "binary")),
        runs="by code",
        fails="never",
    ),
}

_NESTED = Function(2, 2, lambda value, _type: value, "", "nested", runs="by row", fails="never")
"""NULL as an array or struct of a type, which is the second argument."""

_TRIED = (
    *("cast_int", "cast_float", "cast_decimal", "cast_bool", "cast_date", "cast_timestamp", "cast_timestamp_ntz"),
)


def _try(function: Function) -> Function:
    runs = "by code" if function.takes == TEXT else "by row"
    return replace(function, apply=_attempted(function.apply), sql=f"TRY_{function.sql}", runs=runs, fails="never")


CASTS: dict[str, Function] = {
    **_CASTS,
    "cast_nested": _NESTED,
    **{f"try_{name}": _try(_CASTS[name]) for name in _TRIED},
}
"""`cast_decimal` takes the value, the precision and the scale; `cast_int` may take the bits of a narrower integer."""
