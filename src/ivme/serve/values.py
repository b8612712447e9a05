"""Values on their way through HTTP: JSON and the texts of queries in, JSON out, by the types of columns.

Numbers are exact both ways: decimals go out as strings and come in as strings or numbers, whose digits are read as
they stand. Dates and timestamps are in ISO 8601, binaries in base64; an infinite float is the string "Infinity".
"""

from __future__ import annotations

import base64
import binascii
import datetime
import json
import math
import re
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from typing import Any

from ivme.errors import shown
from ivme.query.names import lone_surrogate
from ivme.query.nested import Struct
from ivme.query.types import Type
from ivme.serve.problem import Problem

_MOST_DIGITS = 400
"""The most characters of a number, and the largest exponent of a decimal, before anything is computed with them."""

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?", re.ASCII)
"""Numbers as they are written; Python's own readers take more: `1_000`, blanks, other digits, `nan`."""

_FINER = re.compile(r"[.,]\d{6}\d*[1-9]", re.ASCII)

_INFINITE = {"Infinity": math.inf, "-Infinity": -math.inf}


def _written(text: str) -> str:
    """The text of a number, if it is one and not too long."""
    return text if len(text) <= _MOST_DIGITS and _NUMBER.fullmatch(text) else _refuse("not a number")


def _int(text: str) -> int:
    return int(_written(text)) if len(text) <= 40 else _refuse("too many digits")


def _float(text: str) -> float:
    return _INFINITE[text] if text in _INFINITE else _finite(float(_written(text)))


def _finite(value: float) -> float:
    return value if math.isfinite(value) else _refuse("no finite number")


def _decimal(text: str) -> Decimal:
    value = Decimal(_written(text))
    return value if value.is_finite() and abs(value.adjusted()) <= _MOST_DIGITS else _refuse("out of range")


def _bool(text: str) -> bool:
    return {"true": True, "false": False}[text]


def _timestamp(text: str) -> datetime.datetime:
    """A moment in ISO 8601; Python would drop what is finer than a microsecond."""
    finer = _FINER.search(text)
    return datetime.datetime.fromisoformat(text) if finer is None else _refuse("finer than a microsecond")


def _binary(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _refuse(reason: str) -> Any:
    raise ValueError(reason)


_READ: dict[str, Callable[[str], Any]] = {
    "int": _int,
    "float": _float,
    "decimal": _decimal,
    "string": str,
    "bool": _bool,
    "date": datetime.date.fromisoformat,
    "timestamp": _timestamp,
    "binary": _binary,
}

_EXAMPLES = {
    "int": "17",
    "float": "0.5",
    "decimal": "12.50",
    "string": "text",
    "bool": "true or false",
    "date": "2024-02-29",
    "timestamp": "2024-02-29T12:00:00",
    "binary": "base64",
    "array": "[1, 2]",
    "struct": '{"a": 1}',
}

_ERRORS = (ValueError, KeyError, InvalidOperation, binascii.Error, OverflowError)


def read_text(text: str, type_: Type, what: str) -> Any:
    """The value that a text is in a type; `what` is named if it is not one.

    >>> read_text("2024-02-29", Type("date"), "parameter day")
    datetime.date(2024, 2, 29)
    """
    try:
        return _nested_text(text, type_) if type_.is_nested else _READ[type_.kind](text)
    except _ERRORS:
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        example = _EXAMPLES[type_.kind]
        raise Problem(
            422, f"{what} has the type {type_}, and {shown!r} is not a value of it; one is {example}"
        ) from None


def json_reader(type_: Type) -> Callable[[Any], Any]:
    """A function from a value of JSON, floats being read as `Decimal`, to one of the type.

    What JSON has as such is left to the database to check; strings are read if the type is not string.
    """
    kind = type_.kind
    if type_.is_nested:
        return _nested_reader(type_)

    def read(value: Any) -> Any:
        if isinstance(value, str):
            return value if kind == "string" else read_text(value, type_, "a value")
        if isinstance(value, Decimal):
            checked = read_text(str(value), Type("decimal", 38, 0), "a number")
            return _finite_float(checked) if kind == "float" else checked
        return value

    return read


def _nested_reader(type_: Type) -> Callable[[Any], Any]:
    """The reader of arrays, which are lists, and of structs, which are objects or lists of their fields."""
    readers = {name.lower(): json_reader(each) for name, each in type_.fields}
    element = None if type_.element is None else json_reader(type_.element)

    def read(value: Any) -> Any:
        if isinstance(value, str):
            return read_text(value, type_, "a value")
        if isinstance(value, list) and element is not None:
            return [element(each) for each in value]
        if isinstance(value, list) and len(value) == len(readers):
            return [reader(each) for reader, each in zip(readers.values(), value, strict=True)]
        if isinstance(value, dict):
            return {name: readers.get(name.lower(), _same)(each) for name, each in value.items()}
        return value

    return read


def _same(value: Any) -> Any:
    return value


def _nested_text(text: str, type_: Type) -> Any:
    try:
        found = read_json(text.encode())
    except Problem as problem:
        raise ValueError(problem.message) from None
    return _nested_reader(type_)(found) if not isinstance(found, str) else _refuse("not a list or an object")


def _finite_float(value: Decimal) -> float:
    try:
        return _finite(float(value))
    except _ERRORS:
        raise Problem(422, f"{value} is not a float") from None


def read_json(body: bytes) -> Any:
    """A body of JSON in UTF-8, its floats as decimals. What JSON leaves open is refused: a key that is there twice, of
    which one would be lost, a surrogate that is not a character, and numbers that take long to read."""
    try:
        text = body.decode("utf-8-sig")
        found = json.loads(
            text, parse_float=_parse_float, parse_constant=_parse_constant, object_pairs_hook=_parse_object
        )
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise Problem(400, f"the body is not JSON in UTF-8: {error}") from None
    except RecursionError:
        raise Problem(400, "the body is nested too deeply") from None
    except ValueError:
        raise Problem(400, "the body has an integer of thousands of digits") from None
    if _SURROGATE.search(text):
        _refuse_surrogates(found)
    return found


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _refuse_surrogates(found: Any) -> None:
    """Refuses strings with a lone surrogate, which an escape can make."""
    left = [found]
    while left:
        value = left.pop()
        if isinstance(value, str) and lone_surrogate(value) is not None:
            raise Problem(422, f"the body has a lone surrogate in {shown(value)}, which is not a character")
        if isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value


def _parse_float(text: str) -> Decimal:
    if len(text) > _MOST_DIGITS or not _NUMBER.fullmatch(text):
        raise Problem(400, f"the body has a number that is too long, or too large: {text[:40]}...")
    return Decimal(text)


def _parse_constant(name: str) -> Any:
    raise Problem(400, f'the body has {name}, which is not JSON; write an infinite float as "Infinity"')


def _parse_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Problem(400, f"the body has an object with the key {shown(twice)} twice")
    return found


def plain(value: Any) -> Any:
    """The JSON form of a value that JSON does not have; for `json.dumps(default=...)`."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Struct):
        return dict(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if hasattr(value, "tolist"):  # a value or an array of NumPy's
        return value.tolist()
    raise TypeError(type(value).__name__)


def dumps(content: Any) -> bytes:
    """JSON, compact; values as `plain` has them."""
    try:
        return json.dumps(content, default=plain, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:
        return json.dumps(_finite_only(content), default=plain, separators=(",", ":")).encode()


def _finite_only(content: Any) -> Any:
    if isinstance(content, float) and not math.isfinite(content):
        return "NaN" if math.isnan(content) else "Infinity" if content > 0 else "-Infinity"
    if isinstance(content, dict | Struct):
        return {key: _finite_only(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite_only(value) for value in content]
    return content


def schema_of(type_: Type) -> dict[str, Any]:
    """The JSON schema of a type's values as they go out and may come in."""
    kinds: dict[str, dict[str, Any]] = {
        "int": {"type": "integer", "minimum": -(2**63) + 1, "maximum": 2**63 - 1},
        "float": {"type": "number", "format": "double"},
        "decimal": {"type": "string", "pattern": r"^-?[0-9]{1,38}(\.[0-9]+)?$"},
        "bool": {"type": "boolean"},
        "date": {"type": "string", "format": "date"},
        "timestamp": {"type": "string", "format": "date-time"},
        "binary": {"type": "string", "format": "byte"},
    }
    found = kinds.get(type_.kind, {"type": "string"})
    if type_.element is not None:
        found = {"type": "array", "items": nullable([schema_of(type_.element)])[0]}
    elif type_.fields:
        fields = nullable(schema_of(each) for _, each in type_.fields)
        names = [name for name, _ in type_.fields]
        found = {"type": "object", "properties": dict(zip(names, fields, strict=True)), "required": names}
    return {**found, "x-ivme-type": str(type_)}


def nullable(schemas: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"anyOf": [schema, {"type": "null"}]} for schema in schemas]
