"""Several values as one binary value that sorts as they do, and back.

MAX_BY and STRING_AGG with ORDER BY need pairs of values in order, and the engine orders one column: this is that
column. Each part is a byte for its kind, then the value in bytes that compare as values do, none of which is the
beginning of another. A part that is sorted downwards has all its bytes turned over.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

from ivme.query.sql_values import DECIMALS
from ivme.query.types import Type

_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_EXACT_BYTES, _EXACT_DIGITS = 33, 38
"""Integers and decimals share one form, in units of 10^-38, so that 1 and 1.0 are equal."""

_EXACT_UNITS: int = 10**_EXACT_DIGITS
_EXACT_SIGN: int = 2 ** (8 * _EXACT_BYTES - 1)

_TURNED = bytes(range(255, -1, -1))
_SIGN = 2**63
_NUMBER, _FLOAT, _TEXT, _BINARY, _BOOL, _DATE, _TIMESTAMP = (
    b"\x10",
    b"\x11",
    b"\x12",
    b"\x13",
    b"\x14",
    b"\x15",
    b"\x16",
)
_NULL_FIRST, _NULL_LAST = b"\x01", b"\x20"


def order_key(form: str, *parts: Any) -> bytes | None:
    """The key of some values; `form` has a letter for each: "a" upwards, "d" downwards, in capitals NULLs come last.

    A "!" behind a letter says that there is no key if that value is NULL.

    >>> order_key("ad!", 1, "b") < order_key("ad!", 1, "a") < order_key("ad!", 2, "z"), order_key("ad!", 1, None)
    (True, None)
    """
    key, letters = b"", _letters(form)
    for (letter, needed), part in zip(letters, parts, strict=True):
        if part is None and needed:
            return None
        key += _encoded(part, letter)
    return key


@cache
def _letters(form: str) -> tuple[tuple[str, bool], ...]:
    return tuple((letter, form[i + 1 : i + 2] == "!") for i, letter in enumerate(form) if letter != "!")


def _encoded(value: Any, letter: str) -> bytes:
    if value is None:
        return _NULL_LAST if letter.isupper() else _NULL_FIRST
    kind, encode = _ENCODERS[type(value)]
    plain: bytes = encode(value)
    turned: bytes = plain.translate(_TURNED) if letter in "dD" else plain
    return kind + turned


def _number_bytes(units: int) -> bytes:
    return (units + _EXACT_SIGN).to_bytes(_EXACT_BYTES, "big")


_WIDE = DECIMALS.copy()
_WIDE.prec = 2 * _EXACT_DIGITS + 2


def _float_bytes(value: float) -> bytes:
    """The bits of a float, so that they compare as floats do; -0.0 is 0.0, and NaN comes last, as in Spark."""
    bits: int = struct.unpack(">Q", struct.pack(">d", value + 0.0 if value == value else float("nan")))[0]
    return (bits ^ (2**64 - 1) if bits >= _SIGN else bits | _SIGN).to_bytes(8, "big")


def _ended(value: bytes) -> bytes:
    """Bytes with an end that sorts before all that may go on: 0 is written as 0, 255."""
    return value.replace(b"\x00", b"\x00\xff") + b"\x00\x00"


_ENCODERS: dict[type, tuple[bytes, Callable[[Any], bytes]]] = {
    bool: (_BOOL, lambda value: b"\x01" if value else b"\x00"),
    int: (_NUMBER, lambda value: _number_bytes(value * _EXACT_UNITS)),
    Decimal: (_NUMBER, lambda value: _number_bytes(int(value.scaleb(_EXACT_DIGITS, _WIDE)))),
    float: (_FLOAT, _float_bytes),
    str: (_TEXT, lambda value: _ended(value.encode("utf-8", "surrogatepass"))),
    bytes: (_BINARY, _ended),
    datetime.datetime: (_TIMESTAMP, lambda value: ((value - _EPOCH) // _MICROSECOND + _SIGN).to_bytes(8, "big")),
    datetime.date: (_DATE, lambda value: value.toordinal().to_bytes(4, "big")),
}


def last_part(key: bytes, form: str, type_: Type) -> Any:
    """The last value of a key, in its type."""
    place, value = 0, None
    for letter, _ in _letters(form):
        value, place = _decoded(key, place, turned=letter in "dD")
    if value is None or (type_.kind != "int" and type_.kind != "decimal"):
        return float(value) if value is not None and type_.kind == "float" else value
    if type_.kind == "int":
        return value // _EXACT_UNITS
    assert type_.scale is not None
    return Decimal(_rounded(value, 10 ** (_EXACT_DIGITS - type_.scale))).scaleb(-type_.scale, DECIMALS)


def _rounded(units: int, unit: int) -> int:
    """Half up, as a column has the value: a quotient has more digits than its type."""
    rounded = (2 * abs(units) + unit) // (2 * unit)
    return rounded if units >= 0 else -rounded


def _decoded(key: bytes, place: int, *, turned: bool) -> tuple[Any, int]:
    """The value at a place, a number in units of 10^-38, and where the next one begins."""
    kind, start = key[place : place + 1], place + 1
    if kind in (_NULL_FIRST, _NULL_LAST):
        return None, start
    if kind in (_TEXT, _BINARY):
        end = _end_of(key, start, turned=turned)
        plain = key[start:end].translate(_TURNED) if turned else key[start:end]
        found = plain[:-2].replace(b"\x00\xff", b"\x00")
        return (found.decode("utf-8", "surrogatepass") if kind == _TEXT else found), end
    end = start + _WIDTHS[kind]
    plain = key[start:end].translate(_TURNED) if turned else key[start:end]
    return _number_of(kind, int.from_bytes(plain, "big")), end


_WIDTHS = {_NUMBER: _EXACT_BYTES, _FLOAT: 8, _BOOL: 1, _DATE: 4, _TIMESTAMP: 8}


def _end_of(key: bytes, start: int, *, turned: bool) -> int:
    """Where the bytes that begin at a place end, their two last ones included."""
    zero, follower = (b"\xff", 0xFF) if turned else (b"\x00", 0)
    place = key.index(zero, start)
    while key[place + 1] != follower:
        place = key.index(zero, place + 2)
    return place + 2


def _number_of(kind: bytes, word: int) -> Any:
    if kind == _NUMBER:
        return word - _EXACT_SIGN
    if kind == _FLOAT:
        bits = word ^ _SIGN if word >= _SIGN else word ^ (2**64 - 1)
        return struct.unpack(">d", bits.to_bytes(8, "big"))[0]
    if kind == _BOOL:
        return bool(word)
    return datetime.date.fromordinal(word) if kind == _DATE else _EPOCH + (word - _SIGN) * _MICROSECOND
