"""Columns of files in the types of a table's, where Arrow's own readers are too strict: rounding, and time zones."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa

from ivme.errors import DataError

_WIDE = pa.decimal256(76, 38)
"""What numbers are read as before they are rounded."""

_MOST = 1e38
_DIGITS = Context(prec=76, rounding=ROUND_HALF_UP)

_ZONE = r"[0-9](Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
"""How a text ends that has a time zone behind a time; the day of a date looks like one without this."""

_TIMED = r"^.{10}[ T].*" + _ZONE


def with_rounded(data: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with decimals in the place of texts and floats, for columns that hold decimals; halves are rounded away
    from zero."""
    for number, field in enumerate(data.schema):
        wanted = schema.field(field.name).type if field.name in schema.names else field.type
        if pa.types.is_decimal(wanted) and field.type != wanted:
            column = data.column(number)
            is_float = pa.types.is_floating(field.type)
            column = _decimals(column, wanted, field.name) if is_float else _rounded(column, wanted)
            data = data.set_column(number, field.name, column)
    return data


def _rounded(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    return pc.round(column.cast(_WIDE), ndigits=wanted.scale, round_mode="half_towards_infinity").cast(wanted)


def _decimals(column: pa.ChunkedArray, wanted: pa.DataType, name: str) -> pa.ChunkedArray:
    """The floats as decimals; each is the number that it is written as: 0.1 has one digit after the point."""
    unit, values = Decimal(1).scaleb(-wanted.scale), column.to_pylist()
    odd = next((value for value in values if value is not None and not abs(value) < _MOST), None)
    if odd is not None:
        raise DataError(f"column {name}: {odd!r} is not of type decimal({wanted.precision}, {wanted.scale})")
    decimals = [None if v is None else Decimal(repr(v)).quantize(unit, context=_DIGITS) for v in values]
    return pa.chunked_array([pa.array(decimals, _WIDE)]).cast(wanted)


def with_timestamps(data: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with timestamps in the place of texts, for columns that hold timestamps."""
    for number, field in enumerate(data.schema):
        wanted = schema.field(field.name).type if field.name in schema.names else field.type
        if pa.types.is_timestamp(wanted) and pa.types.is_string(field.type):
            data = data.set_column(number, field.name, timestamps(data.column(number)))
    return data


def timestamps(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """The timestamps of texts; those with a zone are converted to UTC.

    >>> timestamps(pa.chunked_array([["2026-05-06T14:00:00+02:00", "2026-05-06 12:00:00", None]])).to_pylist()[0].hour
    12
    """
    import pyarrow.compute as pc

    zoned = pc.fill_null(pc.match_substring_regex(texts, _TIMED), fill_value=False)
    moments = pc.if_else(zoned, texts, None).cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
    return pc.coalesce(moments, pc.if_else(zoned, None, texts).cast(pa.timestamp("us")))
