"""Values between Arrow and PostgreSQL: the numbers of types, texts as PostgreSQL writes them, and binary formats."""

from __future__ import annotations

import datetime
import math
import re
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from ivme.errors import DataError
from ivme.serve.pg.messages import ResultColumn
from ivme.serve.values import dumps

BOOL, BYTEA, INT8, INT2, INT4, TEXT, OID, JSON = 16, 17, 20, 21, 23, 25, 26, 114
FLOAT4, FLOAT8, BPCHAR, VARCHAR, DATE, TIMESTAMP, TIMESTAMPTZ, NUMERIC = 700, 701, 1042, 1043, 1082, 1114, 1184, 1700
UNKNOWN = (0, 705)

_EPOCH = datetime.date(2000, 1, 1)
_MOMENT = datetime.datetime(2000, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def result_column(field: pa.Field) -> ResultColumn:
    """The column of a result in PostgreSQL's types; structs, and arrays of arrays or structs, are JSON."""
    kind, types = field.type, pa.types
    if types.is_decimal(kind):
        return ResultColumn(field.name, NUMERIC, -1, ((kind.precision << 16) | kind.scale) + 4)
    for check, number, size in _TYPES:
        if check(kind):
            return ResultColumn(field.name, number, size)
    element = result_column(kind.field(0)).type if types.is_list(kind) else JSON
    return ResultColumn(field.name, _ARRAYS.get(element, JSON), -1)


_TYPES: tuple[tuple[Callable[[pa.DataType], bool], int, int], ...] = (
    (pa.types.is_boolean, BOOL, 1),
    (pa.types.is_integer, INT8, 8),
    (pa.types.is_floating, FLOAT8, 8),
    (pa.types.is_string, TEXT, -1),
    (pa.types.is_large_string, TEXT, -1),
    (pa.types.is_date, DATE, 4),
    (pa.types.is_timestamp, TIMESTAMP, 8),
    (pa.types.is_binary, BYTEA, -1),
    (pa.types.is_null, TEXT, -1),
)

_ARRAYS = {
    BOOL: 1000, BYTEA: 1001, INT8: 1016, TEXT: 1009, FLOAT8: 1022, DATE: 1182, TIMESTAMP: 1115, NUMERIC: 1231,
}  # fmt: skip
"""The arrays of a type."""

_ELEMENTS = {array: element for element, array in _ARRAYS.items()}


# Results


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return repr(value) if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def _moment_text(value: datetime.datetime) -> str:
    return value.isoformat(" ")


_TEXTS: dict[int, Callable[[Any], str]] = {
    BOOL: lambda value: "t" if value else "f",
    BYTEA: lambda value: "\\x" + value.hex(),
    FLOAT8: _float_text,
    DATE: lambda value: value.isoformat(),
    TIMESTAMP: _moment_text,
    NUMERIC: lambda value: format(value, "f"),
}


def _numeric_binary(value: Decimal) -> bytes:
    """Digits in base 10,000, the weight of the first, the sign, and how many decimal places are shown."""
    sign, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    whole = abs(int(value.scaleb(scale))) * 10 ** (-scale % 4)
    groups: list[int] = []
    while whole:
        whole, group = divmod(whole, 10_000)
        groups.append(group)
    weight = len(groups) - 1 - (scale + 3) // 4
    stripped = groups[::-1]
    while stripped and not stripped[-1]:
        stripped.pop()
    head = struct.pack("!hhHh", len(stripped), weight if stripped else 0, 0x4000 if sign and digits else 0, scale)
    return head + b"".join(struct.pack("!h", group) for group in stripped)


_BINARIES: dict[int, Callable[[Any], bytes]] = {
    BOOL: lambda value: b"\1" if value else b"\0",
    BYTEA: bytes,
    INT8: struct.Struct("!q").pack,
    FLOAT8: struct.Struct("!d").pack,
    DATE: lambda value: struct.pack("!i", (value - _EPOCH).days),
    TIMESTAMP: lambda value: struct.pack("!q", (value - _MOMENT) // _MICROSECOND),
    NUMERIC: _numeric_binary,
}


def encoder(column: ResultColumn, binary: bool) -> Callable[[Any], bytes | None]:
    """A function from a Python value to its bytes; None stays None."""
    write = _encoder(column.type, binary)
    return lambda value: None if value is None else write(value)


def _encoder(type_: int, binary: bool) -> Callable[[Any], bytes]:
    if type_ in _ELEMENTS:
        element, write = _ELEMENTS[type_], _encoder(_ELEMENTS[type_], binary)
        return lambda value: _binary_array(element, value, write) if binary else _text_array(value, write)
    if binary and type_ in _BINARIES:
        return _BINARIES[type_]
    if type_ == JSON:
        return dumps
    as_text = _TEXTS.get(type_, str)
    return lambda value: as_text(value).encode("utf-8", "replace")


def _text_array(value: Sequence[Any], write: Callable[[Any], bytes]) -> bytes:
    """The members in braces, each in quotes; NULL is a word."""
    quoted = [b"NULL" if each is None else b'"' + _ESCAPED.sub(rb"\\\g<0>", write(each)) + b'"' for each in value]
    return b"{" + b",".join(quoted) + b"}"


_ESCAPED = re.compile(rb'["\\]')


def _binary_array(element: int, value: Sequence[Any], write: Callable[[Any], bytes]) -> bytes:
    """The number of dimensions, whether there are NULLs, the type, the length, where it begins, and the members."""
    if not value:
        return struct.pack("!iii", 0, 0, element)
    parts = [(-1, b"") if each is None else (len(data := write(each)), data) for each in value]
    head = struct.pack("!iiiii", 1, None in value, element, len(value), 1)
    return head + b"".join(struct.pack("!i", size) + data for size, data in parts)


# Parameters


def _bool_of(given: str) -> bool:
    return {"t": True, "true": True, "1": True, "on": True, "f": False, "false": False, "0": False, "off": False}[
        given.lower()
    ]


def _moment_of(given: str) -> datetime.datetime:
    found = datetime.datetime.fromisoformat(given)
    return found if found.tzinfo is None else found.astimezone(datetime.UTC).replace(tzinfo=None)


_READ: dict[int, Callable[[str], Any]] = {
    BOOL: _bool_of,
    BYTEA: lambda given: bytes.fromhex(given.removeprefix("\\x")),
    **dict.fromkeys((INT2, INT4, INT8, OID), int),
    **dict.fromkeys((FLOAT4, FLOAT8), float),
    NUMERIC: Decimal,
    DATE: datetime.date.fromisoformat,
    **dict.fromkeys((TIMESTAMP, TIMESTAMPTZ), _moment_of),
}

_READ_BINARY: dict[int, Callable[[bytes], Any]] = {
    BOOL: lambda data: data != b"\0",
    BYTEA: bytes,
    INT2: lambda data: struct.unpack("!h", data)[0],
    INT4: lambda data: struct.unpack("!i", data)[0],
    OID: lambda data: struct.unpack("!I", data)[0],
    INT8: lambda data: struct.unpack("!q", data)[0],
    FLOAT4: lambda data: struct.unpack("!f", data)[0],
    FLOAT8: lambda data: struct.unpack("!d", data)[0],
    DATE: lambda data: _EPOCH + datetime.timedelta(days=struct.unpack("!i", data)[0]),
    **dict.fromkeys((TIMESTAMP, TIMESTAMPTZ), lambda data: _MOMENT + _MICROSECOND * struct.unpack("!q", data)[0]),
    **dict.fromkeys((TEXT, VARCHAR, BPCHAR, *UNKNOWN), lambda data: data.decode()),
}


_READ_ARRAYS = {**_ELEMENTS, 1005: INT2, 1007: INT4, 1015: VARCHAR, 1021: FLOAT4, 1185: TIMESTAMPTZ}
"""The types of elements, by those of arrays."""

_MEMBER = re.compile(r'"((?:[^"\\]|\\.)*)"|([^",{}\s][^",{}]*)', re.DOTALL)


def list_of(given: str, read: Callable[[str], Any]) -> list[Any]:
    """The members of an array of one dimension, as PostgreSQL writes it.

    >>> list_of('{1,NULL,"2"}', int)
    [1, None, 2]
    """
    inner, members, place = given.strip()[1:-1], list[Any](), 0
    if not given.strip().startswith("{") or not given.strip().endswith("}"):
        raise DataError("a list for ANY is written in braces, as in {1,2}")
    while place < len(inner):
        found = _MEMBER.match(inner, place)
        place = found.end() if found else place
        if found is None or inner[place : place + 1] not in ("", ","):
            raise DataError("a list for ANY has one dimension, as {1,2} has")
        quoted, plain = found.groups()
        is_null = quoted is None and plain.upper() == "NULL"
        members.append(None if is_null else read(plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)))
        place += 1
    return members


def parameter_value(number: int, type_: int, data: bytes | None, binary: bool) -> Any:
    """The value of parameter `$number`; a type that is not known is a text."""
    if data is None:
        return None
    try:
        if type_ in _READ_ARRAYS and not binary:
            return list_of(data.decode(), _READ.get(_READ_ARRAYS[type_], str))
        if binary:
            return _READ_BINARY[type_](data)
        return _READ.get(type_, str)(data.decode())
    except KeyError:
        if not binary:
            raise DataError(f"parameter ${number} is {data[:40]!r}, which is not true or false") from None
        raise DataError(
            f"parameter ${number} has the type {type_}, which is not read in binary; send it as text"
        ) from None
    except (ValueError, InvalidOperation, OverflowError, struct.error, UnicodeDecodeError) as error:
        raise DataError(f"parameter ${number} is not a value of its type {type_}: {error}") from None
