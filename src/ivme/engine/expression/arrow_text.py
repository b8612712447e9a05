"""Arrow kernels for functions of text, where they mean exactly what the table of functions means.

A kernel takes the call, the types of its arguments and the arguments themselves (arrays, or scalars for constants);
it answers with an array, or with None where Arrow would give another value than `evaluate`, for some row, or for a
pair of types. An Arrow error counts as None, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ivme.query.expression import Call, Literal
from ivme.query.functions.date_patterns import formatted, pattern_parts
from ivme.query.sql_like import ESCAPE, characters
from ivme.query.sql_values import to_timestamp
from ivme.query.types import Type

Types = list[Type]
Arguments = list[Any]
Kernel = Callable[[Call, Types, Arguments], pa.Array | None]

_LONGEST_PATTERN = 1000
"""The longest pattern that Arrow is given: its engine takes memory that grows with the pattern."""


def _comparison(name: str) -> Kernel:
    return lambda _call, types, arguments: getattr(pc, name)(*arguments) if _are_text(types) else None


def _are_text(types: Types) -> bool:
    return {type_.kind for type_ in types} in ({"string"}, {"binary"})


def _null_safe_eq(_call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
    if not _are_text(types):
        return None
    left, right = (pc.is_null(argument) for argument in arguments)
    return pc.if_else(pc.or_(left, right), pc.and_(left, right), pc.equal(*arguments))


def _nullif(_call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
    if not _are_text(types):
        return None
    return pc.if_else(pc.fill_null(pc.equal(*arguments), False), pa.scalar(None, arguments[0].type), arguments[0])


def _in(_call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
    if not _are_text(types):
        return None
    found: Any = pa.scalar(False)
    for option in arguments[1:]:
        found = pc.or_kleene(found, pc.equal(arguments[0], option))
    return found


def _like(call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
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


def _recased(name: str) -> Kernel:
    """LOWER or UPPER, of ASCII: beyond it Python's mappings (ß to SS) are not Arrow's."""

    def kernel(_call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
        if types[0].kind != "string" or pc.all(pc.string_is_ascii(arguments[0])).as_py() is False:
            return None
        return getattr(pc, f"ascii_{name}")(arguments[0])

    return kernel


def _trim(name: str) -> Kernel:
    """TRIM, LTRIM or RTRIM, of constant characters."""

    def kernel(call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
        characters = _constants(call, (" ",))
        if types[0].kind != "string" or characters is None or not characters[0]:
            return None
        return getattr(pc, name)(arguments[0], characters=characters[0])

    return kernel


def _constants(call: Call, defaults: tuple[str, ...]) -> list[str] | None:
    """The arguments behind the first, if all are constant texts; defaults stand for those that are not written."""
    given = [argument.value for argument in call.arguments[1:] if isinstance(argument, Literal)]
    if len(given) + 1 < len(call.arguments) or not all(isinstance(value, str) for value in given):
        return None
    return [*given, *defaults[len(given) :]]


def _of_part(name: str) -> Kernel:
    """STARTSWITH, ENDSWITH or CONTAINS, of a constant part."""

    def kernel(call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
        part = _constants(call, ())
        return getattr(pc, name)(arguments[0], pattern=part[0]) if types[0].kind == "string" and part else None

    return kernel


def _replace(call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
    constants = _constants(call, ("", ""))
    if types[0].kind != "string" or constants is None or not constants[0]:
        return None
    return pc.replace_substring(arguments[0], pattern=constants[0], replacement=constants[1])


def _length(_call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
    if types[0].kind == "string":
        return pc.utf8_length(arguments[0])
    return pc.binary_length(arguments[0]) if types[0].kind == "binary" else None


def _substring(call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
    """With constant places that count from the front."""
    places = [argument.value for argument in call.arguments[1:] if isinstance(argument, Literal)]
    if types[0].kind != "string" or len(places) + 1 < len(arguments) or not all(type(place) is int for place in places):
        return None
    if places[0] < 0 or max(map(abs, places)) >= 2**31:
        return None
    begin = max(places[0] - 1, 0)
    end = max(begin + places[1], begin) if len(places) == 2 else None
    return pc.utf8_slice_codeunits(arguments[0], begin, end)


def _concat(_call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
    if any(type_.kind != "string" for type_ in types):
        return None
    return pc.binary_join_element_wise(*arguments, pa.scalar(""), null_handling="emit_null")


def _concat_ws(_call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
    """Without NULLs: where Arrow skips all of a row it loses the row."""
    if any(type_.kind != "string" for type_ in types) or any(_has_nulls(each) for each in arguments):
        return None
    return pc.binary_join_element_wise(*arguments[1:], arguments[0], null_handling="emit_null")


def _has_nulls(argument: pa.Array | pa.Scalar) -> bool:
    return not argument.is_valid if isinstance(argument, pa.Scalar) else argument.null_count > 0


def _date_format(call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
    """Each distinct month, day, ... is shown once, by the finest letter of the pattern."""
    pattern = call.arguments[1]
    if types[0].kind not in ("date", "timestamp") or not isinstance(pattern, Literal):
        return None
    parts = pattern_parts(pattern.value)
    unit = next(
        (unit for unit, letters in _FINER.items() if all(p in letters or not count for p, count in parts)), None
    )
    floored = arguments[0] if unit is None else pc.floor_temporal(arguments[0], unit=unit)
    distinct = pc.unique(floored)
    shown = [None if each is None else formatted(to_timestamp(each), parts) for each in distinct.to_pylist()]
    return pa.array(shown, pa.string()).take(pc.index_in(floored, distinct))


_FINER = {"month": "yMQ", "day": "yMQdDE", "hour": "yMQdDEHha", "minute": "yMQdDEHham", "second": "yMQdDEHhams"}
"""The letters of patterns that show nothing finer than a unit."""


def _cast_string(_call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
    return arguments[0].cast(pa.string()) if types[0].kind in ("string", "int", "bool", "date") else None


KERNELS: dict[str, Kernel] = {
    "eq": _comparison("equal"),
    "ne": _comparison("not_equal"),
    "lt": _comparison("less"),
    "le": _comparison("less_equal"),
    "gt": _comparison("greater"),
    "ge": _comparison("greater_equal"),
    "null_safe_eq": _null_safe_eq,
    "in": _in,
    "nullif": _nullif,
    "like": _like,
    "lower": _recased("lower"),
    "upper": _recased("upper"),
    "length": _length,
    "substring": _substring,
    "concat": _concat,
    "concat_ws": _concat_ws,
    "date_format": _date_format,
    "trim": _trim("utf8_trim"),
    "ltrim": _trim("utf8_ltrim"),
    "rtrim": _trim("utf8_rtrim"),
    "startswith": _of_part("starts_with"),
    "endswith": _of_part("ends_with"),
    "contains": _of_part("match_substring"),
    "replace": _replace,
    "cast_string": _cast_string,
}
"""The kernels by the names of the table of functions: comparisons, and some of those that the kernel lacks."""
