"""Values and rows as a server takes them, and as it answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa

from ivme.engine.codes.nested_values import python_values
from ivme.errors import DataError, shown
from ivme.query.sql_text import DIALECT
from ivme.query.sql_types import type_node
from ivme.query.types import parse_type
from ivme.serve.values import dumps


def plain_parameter(value: Any) -> Any:
    """A value as `POST /sql` takes it: with its type, where JSON has none for it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple):
        return [plain_parameter(each) for each in value]
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


def listed_rows(rows: Any) -> list[Any]:
    """Rows as JSON has them: lists or objects."""
    if hasattr(rows, "__arrow_c_stream__"):
        rows = pa.table(rows)
    elif hasattr(rows, "to_dict") and hasattr(rows, "columns"):
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    if isinstance(rows, pa.Table):
        return [list(row) for row in zip(*map(python_values, rows.columns), strict=True)]
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise DataError(f"rows are a list of tuples or dicts, or a table; it is {shown(rows)}")
    return [dict(row) if isinstance(row, Mapping) else list(row) if isinstance(row, Sequence) else row for row in rows]


def read_table(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


def query_text(parameters: Mapping[str, Any]) -> str:
    """The values of an access request, as the server reads them in a query."""
    pairs = []
    for name, value in parameters.items():
        for each in value if isinstance(value, list | tuple) else [value]:
            plain = json.loads(dumps(each))
            pairs.append((name, plain if isinstance(plain, str) else json.dumps(plain)))
    return f"?{urlencode(pairs)}" if pairs else ""


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def sql_type(type_: Any) -> str:
    """A type of a column as CREATE TABLE has it.

    >>> sql_type("int"), sql_type("decimal(8, 2)")
    ('BIGINT', 'DECIMAL(8, 2)')
    """
    return type_node(parse_type(type_)).sql(dialect=DIALECT)
