"""Arrow kernels for functions of text, of dates, and for casts; see `arrow_functions` for what a kernel is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ivme.query.expression import Call, Literal
from ivme.query.sql_like import ESCAPE, characters
from ivme.query.types import Type

_INT_LIMIT = 2.0**63


_LONGEST_PATTERN = 1000
"""The longest pattern that Arrow is asked for: its engine takes memory that grows with the pattern."""


def like(call: Call, types: list[Type], arguments: list[Any]) -> pa.Array | None:
    """A constant pattern, as a regular expression for Arrow's engine, which never tries a text twice."""
    constants = call.arguments[1:]
    if types[0].kind != "string" or not all(isinstance(c, Literal) and isinstance(c.value, str) for c in constants):
        return None
    pattern, escape = (c.value for c in (*constants, Literal(ESCAPE))[:2] if isinstance(c, Literal))
    if "\0" in pattern or len(pattern) > _LONGEST_PATTERN:
        return None
    try:
        parts = [_REGULAR.get(character) or re.escape(character[-1]) for character in characters(pattern, escape)]
    except ValueError:
        return None
    return pc.match_substring_regex(arguments[0], rf"(?s)\A{''.join(parts)}\z")


_REGULAR = {"%": ".*", "_": "."}


def recased(name: str) -> Callable[[Call, list[Type], list[Any]], pa.Array | None]:
    """LOWER or UPPER, of ASCII: beyond it Python's mappings (ß to SS) are not Arrow's."""

    def kernel(_call: Call, types: list[Type], arguments: list[Any]) -> pa.Array | None:
        if types[0].kind != "string" or pc.all(pc.string_is_ascii(arguments[0])).as_py() is False:
            return None
        return getattr(pc, f"ascii_{name}")(arguments[0])

    return kernel


def trim(_call: Call, types: list[Type], arguments: list[Any]) -> pa.Array | None:
    return pc.utf8_trim(arguments[0], characters=" ") if types[0].kind == "string" else None


def length(_call: Call, types: list[Type], arguments: list[Any]) -> pa.Array | None:
    if types[0].kind == "string":
        return pc.utf8_length(arguments[0])
    return pc.binary_length(arguments[0]) if types[0].kind == "binary" else None


def substring(call: Call, types: list[Type], arguments: list[Any]) -> pa.Array | None:
    """With constant places that count from the front."""
    places = [argument.value for argument in call.arguments[1:] if isinstance(argument, Literal)]
    if types[0].kind != "string" or len(places) + 1 < len(arguments) or not all(type(place) is int for place in places):
        return None
    if places[0] < 0 or max(map(abs, places)) >= 2**31:
        return None
    begin = max(places[0] - 1, 0)
    end = max(begin + places[1], begin) if len(places) == 2 else None
    return pc.utf8_slice_codeunits(arguments[0], begin, end)


def concat(_call: Call, types: list[Type], arguments: list[Any]) -> pa.Array | None:
    if any(type_.kind != "string" for type_ in types):
        return None
    return pc.binary_join_element_wise(*arguments, pa.scalar(""), null_handling="emit_null")


def part_of_date(name: str) -> Callable[[Call, list[Type], list[Any]], pa.Array | None]:
    """YEAR, MONTH or DAY."""

    def kernel(_call: Call, types: list[Type], arguments: list[Any]) -> pa.Array | None:
        return getattr(pc, name)(arguments[0]) if types[0].kind in ("date", "timestamp") else None

    return kernel


def integers(floats: pa.Array) -> pa.Array | None:
    """Floats without their fractions, if all of them fit 64 bits."""
    whole = pc.trunc(floats)
    fits = pc.and_(pc.greater_equal(whole, -_INT_LIMIT), pc.less(whole, _INT_LIMIT))
    return None if pc.all(fits).as_py() is False else whole.cast(pa.int64(), safe=False)


def cast_int(_call: Call, types: list[Type], arguments: list[Any]) -> pa.Array | None:
    if types[0].kind == "float":
        return integers(arguments[0])
    return arguments[0].cast(pa.int64()) if types[0].kind in ("int", "bool") else None


def cast_float(_call: Call, types: list[Type], arguments: list[Any]) -> pa.Array | None:
    if types[0].kind == "bool":
        return arguments[0].cast(pa.int8()).cast(pa.float64())
    return arguments[0].cast(pa.float64(), safe=False) if types[0].kind in ("int", "float") else None


def cast_decimal(call: Call, types: list[Type], arguments: list[Any]) -> pa.Array | None:
    """Where nothing is rounded: Arrow raises an error instead."""
    value, (precision, scale) = (
        arguments[0],
        (place.value for place in call.arguments[1:] if isinstance(place, Literal)),
    )
    if types[0].kind == "int":
        value = value.cast(pa.decimal128(19, 0))
    return value.cast(pa.decimal128(precision, scale)) if types[0].kind in ("int", "decimal") else None


def cast_string(_call: Call, types: list[Type], arguments: list[Any]) -> pa.Array | None:
    return arguments[0].cast(pa.string()) if types[0].kind in ("string", "int", "bool", "date") else None


def cast_bool(_call: Call, types: list[Type], arguments: list[Any]) -> pa.Array | None:
    if types[0].kind == "bool":
        return arguments[0]
    return pc.not_equal(arguments[0], 0) if types[0].kind in ("int", "float") else None


def cast_date(_call: Call, types: list[Type], arguments: list[Any]) -> pa.Array | None:
    return arguments[0].cast(pa.date32(), safe=False) if types[0].kind in ("date", "timestamp") else None


def cast_timestamp(_call: Call, types: list[Type], arguments: list[Any]) -> pa.Array | None:
    return arguments[0].cast(pa.timestamp("us")) if types[0].kind in ("date", "timestamp") else None
