"""SQL's values in Python: arithmetic, comparison and casts as Spark 4 does them in its default (ANSI) mode.

Nothing here sees NULL: `expression` answers NULL before it calls these functions, except where SQL says otherwise.
A value that an operation cannot take raises ValueError, TypeError or ArithmeticError with a reason; `evaluate`
turns them into a `DataError` that names the expression. Integers have 64 bits; decimals are computed in 38 digits
and rounded half up; floats are doubles; timestamps have no time zone.
"""

from __future__ import annotations

import datetime
import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import Any

from ivme.query.nested import compared, parts_of

DECIMALS = Context(prec=38, rounding=ROUND_HALF_UP)
"""Decimal arithmetic: 38 digits, as many as `decimal(38, s)` holds."""

WIDE = Context(prec=80)
"""Decimal arithmetic whose results are rounded later."""

_UNITS = [Decimal(1).scaleb(-scale) for scale in range(39)]
"""The last digit of a decimal, by its scale."""

_INT_LIMIT = 2**63
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_DATE = re.compile(r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?\s*", re.ASCII | re.DOTALL)
_TIMESTAMP = re.compile(
    r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?)?)?"
    r"\s*(Z|UTC|[+-]\d{1,2}:\d{2})?)?)?)?\s*",
    re.ASCII,
)
_BOOLEANS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}


def _number(value: Any) -> int | float | Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise TypeError(f"{value!r} is not a number; CAST it")
    return value


def _numbers(left: Any, right: Any) -> tuple[Any, Any]:
    """Both operands in the wider of their kinds: int, then decimal, then float."""
    left, right = _number(left), _number(right)
    if isinstance(left, float) or isinstance(right, float):
        return float(left), float(right)
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return Decimal(left), Decimal(right)
    return left, right


def bounded(value: int) -> int:
    """The integer itself, if it fits 64 bits."""
    if not -_INT_LIMIT <= value < _INT_LIMIT:
        raise OverflowError("the integer does not fit 64 bits; CAST to a decimal")
    return value


def add(left: Any, right: Any) -> Any:
    left, right = _numbers(left, right)
    if isinstance(left, Decimal):
        return DECIMALS.add(left, right)
    return bounded(left + right) if isinstance(left, int) else left + right


def subtract(left: Any, right: Any) -> Any:
    left, right = _numbers(left, right)
    if isinstance(left, Decimal):
        return DECIMALS.subtract(left, right)
    return bounded(left - right) if isinstance(left, int) else left - right


def multiply(left: Any, right: Any) -> Any:
    left, right = _numbers(left, right)
    if isinstance(left, Decimal):
        return DECIMALS.multiply(left, right)
    return bounded(left * right) if isinstance(left, int) else left * right


def divide(left: Any, right: Any) -> Any:
    """Division of integers is division of floats, as in Spark; division by zero is an error."""
    left, right = _numbers(left, right)
    if right == 0:
        raise ZeroDivisionError("division by zero; guard it with NULLIF or CASE")
    return DECIMALS.divide(left, right) if isinstance(left, Decimal) else float(left) / float(right)


def modulo(left: Any, right: Any) -> Any:
    """The remainder with the sign of the dividend."""
    left, right = _numbers(left, right)
    if right == 0:
        raise ZeroDivisionError("division by zero; guard it with NULLIF or CASE")
    if isinstance(left, Decimal):
        return DECIMALS.remainder(left, right)
    if isinstance(left, float):
        return math.fmod(left, right) if math.isfinite(left) else math.nan
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def negate(value: Any) -> Any:
    value = _number(value)
    if isinstance(value, Decimal):
        return value.copy_negate() if value else value
    return bounded(-value) if isinstance(value, int) else -value


def absolute(value: Any) -> Any:
    value = _number(value)
    if isinstance(value, Decimal):
        return value.copy_abs()
    return bounded(abs(value)) if isinstance(value, int) else abs(value)


def rounded(value: Any, digits: Any = 0, how: str = ROUND_HALF_UP) -> Any:
    """Rounds half away from zero, in the decimal digits that the value prints with, or as `how` says."""
    value = _number(value)
    if isinstance(digits, bool) or not isinstance(digits, int):
        raise TypeError("ROUND needs an integer number of digits")
    if isinstance(value, float) and not math.isfinite(value):
        return value
    exact = decimal(value)
    exponent = exact.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent <= digits:
        return value
    result = exact.quantize(Decimal(1).scaleb(-digits), how, Context(prec=400))
    return bounded(int(result)) if isinstance(value, int) else type(value)(result)


def decimal(value: Any) -> Decimal:
    """A number as a decimal; a float has the digits that it prints with."""
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(_number(value))


def floor(value: Any) -> Any:
    value = _number(value)
    return value.to_integral_value(ROUND_FLOOR) if isinstance(value, Decimal) else bounded(math.floor(value))


def ceil(value: Any) -> Any:
    value = _number(value)
    return value.to_integral_value(ROUND_CEILING) if isinstance(value, Decimal) else bounded(math.ceil(value))


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1. NaN equals itself and is the largest number; a string becomes the date it is compared with."""
    parts, others = parts_of(left), parts_of(right)
    if parts is not None and others is not None:
        return compared(parts, others, compare)
    left, right = _comparable(left, right)
    if isinstance(left, float) and (math.isnan(left) or math.isnan(right)):
        return int(math.isnan(left)) - int(math.isnan(right))
    return int(left > right) - int(left < right)


def _comparable(left: Any, right: Any) -> tuple[Any, Any]:
    if type(left) is type(right) and not isinstance(left, float):
        return left, right
    if isinstance(left, str) and isinstance(right, datetime.date):
        left = to_timestamp(left) if isinstance(right, datetime.datetime) else to_date(left)
    if isinstance(right, str) and isinstance(left, datetime.date):
        right = to_timestamp(right) if isinstance(left, datetime.datetime) else to_date(right)
    if isinstance(left, datetime.date) and isinstance(right, datetime.date):
        either = isinstance(left, datetime.datetime) or isinstance(right, datetime.datetime)
        return (to_timestamp(left), to_timestamp(right)) if either else (left, right)
    if isinstance(left, bool | str | bytes) or isinstance(right, bool | str | bytes):
        raise TypeError(f"cannot compare {left!r} with {right!r}; CAST one of them")
    return _numbers(left, right)


def to_int(value: Any, bits: int = 64) -> int:
    """An integer of so many bits; of a timestamp the whole seconds since 1970-01-01."""
    found = _whole(value)
    if not -(1 << bits - 1) <= found < 1 << bits - 1:
        reason = f"the integer does not fit {bits} bits; CAST to {'a decimal' if bits == 64 else 'BIGINT'}"
        raise OverflowError(reason)
    return found


def _whole(value: Any) -> int:
    if isinstance(value, str):
        text = value.strip()
        if not re.fullmatch(r"[+-]?[0-9]{1,40}", text):
            raise ValueError(f"{value!r} is not an integer")
        return int(text)
    if isinstance(value, datetime.date):
        return _micros(value) // 10**6
    return int(value) if isinstance(value, bool) else int(_number(value))


def _micros(value: datetime.date) -> int:
    """The microseconds since 1970 of a timestamp, or of a date that stands for one: its midnight."""
    return (to_timestamp(value) - _EPOCH) // _MICROSECOND


def to_float(value: Any) -> float:
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        raise ValueError(f"{value!r} is not a number")
    if isinstance(value, datetime.date):
        return _micros(value) / 10**6
    return float(value) if isinstance(value, str | bool) else float(_number(value))


def to_decimal(value: Any, precision: int, scale: int) -> Decimal:
    exact = _exact(value)
    if not exact.is_finite() or (exact.adjusted() > precision - scale and exact != 0):
        raise OverflowError(f"{value!r} does not fit decimal({precision},{scale})")
    result = exact.quantize(_UNITS[scale], ROUND_HALF_UP, WIDE)
    if result.adjusted() >= precision - scale and result != 0:
        raise OverflowError(f"{value!r} does not fit decimal({precision},{scale})")
    return result


def _exact(value: Any) -> Decimal:
    if isinstance(value, str):
        if not re.fullmatch(r"\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\s*", value):
            raise ValueError(f"{value!r} is not a decimal number")
        return Decimal(value.strip())
    if isinstance(value, datetime.date):
        return Decimal(_micros(value)).scaleb(-6)
    return Decimal(value) if isinstance(value, bool) else decimal(value)


def to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value.strip().lower() not in _BOOLEANS:
            raise ValueError(f"{value!r} is not a boolean")
        return _BOOLEANS[value.strip().lower()]
    return _number(value) != 0


def to_date(value: Any) -> datetime.date:
    """A date, or the one that a text begins with, before a blank or a T."""
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    match = _DATE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is not a date; write YYYY-MM-DD")
    year, month, day = (int(part or 1) for part in match.groups())
    try:
        return datetime.date(year, month, day)
    except ValueError as error:
        raise ValueError(f"{value!r} is not a date: {error}") from None


def to_timestamp(value: Any) -> datetime.datetime:
    """A timestamp; of a number, so many seconds after 1970-01-01; of a text with a time zone, its UTC time."""
    if isinstance(value, datetime.datetime):
        return value
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day)
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return _moment(value)
    match = _TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is not a timestamp; write YYYY-MM-DD HH:MM:SS")
    *parts, fraction, zone = match.groups()
    year, month, day, hour, minute, second = (int(p or (i < 3)) for i, p in enumerate(parts))
    try:
        found = datetime.datetime(year, month, day, hour, minute, second, int((fraction or "")[:6].ljust(6, "0")))
    except ValueError as error:
        raise ValueError(f"{value!r} is not a timestamp: {error}") from None
    return found if zone is None or zone in ("Z", "UTC") else found - _offset(zone)


def to_local_timestamp(value: Any) -> datetime.datetime:
    """A timestamp without a time zone: a zone in a text is left out."""
    match = _TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    zone = None if match is None else match.groups()[-1]
    return to_timestamp(value if zone is None else value.rstrip()[: -len(zone)])


def _offset(zone: str) -> datetime.timedelta:
    hours, minutes = zone[1:].split(":")
    size = datetime.timedelta(hours=int(hours), minutes=int(minutes))
    return -size if zone[0] == "-" else size


def _moment(seconds: int | float | Decimal) -> datetime.datetime:
    if isinstance(seconds, float) and not math.isfinite(seconds):
        raise ValueError(f"{seconds!r} is not a number of seconds")
    count = int(seconds * 10**6) if isinstance(seconds, int | float) else int(seconds.scaleb(6, WIDE))
    try:
        return _EPOCH + datetime.timedelta(microseconds=count)
    except OverflowError:
        raise OverflowError("the timestamp is not between the years 1 and 9999") from None


def to_string(value: Any) -> str:
    """The text that Spark prints.

    >>> to_string(1e7), to_string(0.25), to_string(True), to_string(datetime.datetime(2024, 1, 2, 3, 4))
    ('1.0E7', '0.25', 'true', '2024-01-02 03:04:00')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, Decimal):
        return format(value if value else value.copy_abs(), "f")  # Spark's decimals have no negative zero
    if isinstance(value, datetime.datetime):
        whole = value.isoformat(" ", "seconds")
        return whole + f".{value.microsecond:06d}".rstrip("0") if value.microsecond else whole
    if isinstance(value, bytes):
        return value.decode("utf-8")
    return str(value)


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, _ = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    return f"{'-' * sign}{text[0]}.{text[1:] or '0'}E{Decimal(repr(value)).adjusted()}"


def text(value: Any) -> str:
    """The value, if it is a string."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string; CAST it")
    return value


def substring(value: Any, start: Any, length: Any = None) -> str:
    """Counts from 1, or from the end if negative; what lies outside the string is left out."""
    whole, first = text(value), to_int(start)
    begin = first - 1 if first > 0 else len(whole) + first if first < 0 else 0
    end = len(whole) if length is None else begin + to_int(length)
    return whole[max(begin, 0) : max(end, 0)]


def length(value: Any) -> int:
    return len(value) if isinstance(value, bytes) else len(text(value))
