"""Values with their types: `{"type": "date", "value": "2024-05-01"}` for what JSON does not have."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from ivme.errors import DataError, IvmeError, shown
from ivme.query.types import parse_type
from ivme.serve.problem import Problem
from ivme.serve.values import dumps, read_text


def tagged(value: Any) -> Any:
    """A value as `untagged` reads it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple):
        return [tagged(each) for each in value]
    if isinstance(value, float):
        return {"type": "float", "value": _float_text(value)}
    for kind, name in ((datetime, "timestamp"), (date, "date"), (bytes, "binary")):
        if isinstance(value, kind):
            return {"type": name, "value": json.loads(dumps(value))}
    if isinstance(value, Decimal) and value.is_finite():
        return {"type": f"decimal(38, {min(max(-int(value.as_tuple().exponent), 0), 38)})", "value": format(value, "f")}
    raise DataError(f"a parameter is a number, a text, a date, bytes, or a list of these; it is {shown(value)}")


def _float_text(value: float) -> str:
    return {"inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))


def untagged(what: str, value: Any) -> Any:
    """The value of `what`: one of JSON, or one with its type."""
    if isinstance(value, list):
        return [untagged(what, each) for each in value]
    if not isinstance(value, dict):
        return value
    type_, text = value.get("type"), value.get("value")
    if value.keys() != {"type", "value"} or not isinstance(type_, str) or not isinstance(text, str):
        raise Problem(422, f'the value of {what} is one of JSON, or {{"type": "date", "value": "..."}}')
    try:
        return read_text(text, parse_type(type_), what)
    except IvmeError as error:
        raise Problem(422, f"{what}: {error}") from None
