"""Columns of files in the types of a table's, where Arrow's own readers are too strict: rounding, and time zones."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa

from ivme.engine.codes.arrow_types import cast_decimals
from ivme.errors import DataError

_WIDE = pa.decimal256(76, 38)
"""What numbers are read as before they are rounded."""

_MOST = 1e38
_DIGITS = Context(prec=76, rounding=ROUND_HALF_UP)

_SHORT = 38
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

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

    if pa.types.is_decimal(column.type):
        wide = cast_decimals(column, _WIDE)
    else:
        unit = Decimal(1).scaleb(-wanted.scale)
        wide = _safe(column, lambda number: number.quantize(unit, context=_DIGITS)).cast(_WIDE)
    return pc.round(wide, ndigits=wanted.scale, round_mode="half_towards_infinity").cast(wanted)


def with_decimals(data: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with decimals in the place of texts, for columns that hold decimals; none is rounded."""
    for number, field in enumerate(data.schema):
        wanted = schema.field(field.name).type if field.name in schema.names else field.type
        if pa.types.is_decimal(wanted) and pa.types.is_string(field.type):
            data = data.set_column(number, field.name, decimals(data.column(number), wanted))
    return data


def decimals(texts: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """The decimals that are written in texts; `ArrowInvalid` if one does not fit.

    >>> decimals(pa.chunked_array([["1.50", "2e3", None]]), pa.decimal128(8, 2)).to_pylist()
    [Decimal('1.50'), Decimal('2000.00'), None]
    """
    import pyarrow.compute as pc

    texts = _safe(texts, lambda number: number)
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    wide = texts if longest + wanted.scale <= _SHORT else texts.cast(pa.decimal256(76, wanted.scale))
    return wide.cast(wanted)


def _safe(texts: pa.ChunkedArray, change: Callable[[Decimal], Decimal]) -> pa.ChunkedArray:
    """Texts of numbers that Arrow can move the point of: the long ones and those with an exponent are written anew.

    Arrow moves it without a look at what goes over the end of its words, or further than it can.
    """
    import pyarrow.compute as pc

    texts = pc.ascii_trim(texts, " \t")
    has_exponent = pc.or_(pc.match_substring(texts, "e"), pc.match_substring(texts, "E"))
    is_odd = pc.or_(pc.greater(pc.binary_length(texts), _SHORT), has_exponent)
    if not pc.any(is_odd).as_py():
        return texts
    pairs = zip(texts.to_pylist(), is_odd.to_pylist(), strict=True)
    return pa.chunked_array([[_plain(text, change) if odd else text for text, odd in pairs]], pa.string())


def _plain(text: str, change: Callable[[Decimal], Decimal]) -> str:
    """A number without an exponent, and without zeros at its end."""
    if not _NUMBER.fullmatch(text):
        return text
    number = Decimal(text)
    if number and number.adjusted() >= _SHORT:
        raise pa.ArrowInvalid(f"{text} has more than {_SHORT} digits")
    number = change(number) if number else Decimal(0)
    number = number.normalize(Context(prec=len(text)))
    if -int(number.as_tuple().exponent) > _SHORT:
        raise pa.ArrowInvalid(f"{text} has more than {_SHORT} digits behind the point")
    return format(number, "f")


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
