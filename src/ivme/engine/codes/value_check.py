"""Whether a Python value belongs in a column, and the one form in which equal values are stored.

Nothing is coerced that would change the value: a number enters a column of numbers if the column's type holds
exactly that number, a date is the timestamp of its midnight and that midnight the date, and nothing else changes
its kind; in particular, a bool is not an int, and floats and decimals do not mix. Timestamps are stored without a time
zone: one that has a zone is an instant and becomes its UTC time, one that has none is stored as given. -0.0 is 0.0.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

import numpy as np

from ivme.errors import DataError, shown
from ivme.query.nested import Struct
from ivme.query.types import Type

Check = Callable[[Any], Any]
"""Takes a value that is not None to the form it is stored in. Raises TypeError if it is of a wrong kind and ValueError
if it is of the right kind but the column's type does not hold it."""

INT_LIMIT = 2**63 - 1
"""The largest int; the smallest is its negation, since the code -2**63 means NULL."""

NAN_REASON = "NaN cannot be a value: it does not even equal itself; use NULL (None)"

_EXACT = Context(prec=400)

_LARGEST = 10**38
"""No decimal holds this int; one of a million digits takes seconds to become a `Decimal`."""


@lru_cache(maxsize=1024)
def value_check(type_: Type) -> Check:
    """The check of a type's values.

    >>> value_check(Type("int"))(7), value_check(Type("decimal", 6, 2))(Decimal("1.5"))
    (7, Decimal('1.50'))
    """
    if type_.element is not None:
        return _array_check(type_)
    if type_.fields:
        return _struct_check(type_)
    return _decimal_check(type_) if type_.kind == "decimal" else _CHECKS[type_.kind]


def checked(value: Any, type_: Type, where: str) -> Any:
    """The value as it is stored, None as it is; otherwise a `DataError` that starts with `where`."""
    try:
        return None if value is None else value_check(type_)(value)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: {error}") from None


def _wrong(value: Any, wanted: str, instead: str = "") -> TypeError:
    kind = type(value).__name__
    article = "an" if kind[0] in "aeiou" else "a"
    return TypeError(f"{shown(value)} is {article} {kind}, not {wanted}{instead and '; ' + instead}")


def _plain(value: Any) -> Any:
    """A NumPy scalar as the Python value that it stands for."""
    if isinstance(value, np.datetime64):
        unit = np.datetime_data(value.dtype)[0]
        exact = value if unit in ("D", "us") else value.astype("datetime64[us]")
        if exact != value:
            raise ValueError(f"{shown(value)} has fractions of a microsecond, which a timestamp does not hold")
        return exact.item()
    return value.item() if isinstance(value, np.generic) else value


def _int(value: Any) -> int:
    if type(value) is not int:
        value = _whole(_plain(value))
    if not -INT_LIMIT <= value <= INT_LIMIT:
        raise ValueError(f"{shown(value)} is out of the range of int, -2**63 + 1 to 2**63 - 1")
    return int(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _wrong(value, "an int")
    if not math.isfinite(value) or value != int(value):
        raise ValueError(f"{shown(value)} is not a whole number")
    return int(value)


def _float(value: Any) -> float:
    if type(value) is not float:
        value = _plain(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong(value, "a float")
        value = _exact_float(value)
    if value != value:
        raise ValueError(NAN_REASON)
    return float(value + 0.0)


def _exact_float(value: int | float) -> float:
    if isinstance(value, int) and (abs(value) > 2**1023 or int(float(value)) != value):
        raise ValueError(f"{shown(value)} is an int that no float holds exactly")
    return float(value)


def _decimal_check(type_: Type) -> Check:
    assert type_.precision is not None
    assert type_.scale is not None
    whole, unit = type_.precision - type_.scale, Decimal(1).scaleb(-type_.scale)

    def check(value: Any) -> Decimal:
        if type(value) is not Decimal:
            value = _plain(value)
            if isinstance(value, bool) or not isinstance(value, int | Decimal):
                instead = "write it as a decimal.Decimal" if isinstance(value, float | str) else ""
                instead += ", or let round_floats=True round it" if isinstance(value, float) else ""
                raise _wrong(value, f"a {type_}", instead)
            if isinstance(value, int) and abs(value) >= _LARGEST:
                raise ValueError(f"{shown(value)} has more digits than {type_} holds")
            value = Decimal(value)
        if not value.is_finite():
            raise ValueError(f"{value} is not a number that {type_} holds")
        try:
            exact: Decimal = value.quantize(unit, context=_EXACT)
        except InvalidOperation:
            exact = unit
        if exact != value or (exact and exact.adjusted() >= whole):
            raise ValueError(f"{shown(value)} has more digits than {type_} holds")
        return exact if exact else exact.copy_abs()

    return check


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(value, "a string")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{shown(value)} has a lone surrogate, which is not a character") from None
    return value if type(value) is str else str(value)


def _bool(value: Any) -> bool:
    if value is True or value is False:
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    raise _wrong(value, "a bool")


def _date(value: Any) -> datetime.date:
    value = _plain(value)
    if isinstance(value, datetime.datetime):
        moment = _timestamp(value)
        if moment.time() != datetime.time():
            raise ValueError(f"{shown(value)} has a time of day, which a date does not hold")
        return moment.date()
    if not isinstance(value, datetime.date):
        raise _wrong(value, "a date", "write it as a datetime.date" if isinstance(value, str) else "")
    return value


def _timestamp(value: Any) -> datetime.datetime:
    value = _plain(value)
    if not isinstance(value, datetime.datetime):
        if not isinstance(value, datetime.date):
            raise _wrong(value, "a timestamp", "write it as a datetime.datetime" if isinstance(value, str) else "")
        return datetime.datetime(value.year, value.month, value.day)
    if value != value:
        raise ValueError("NaT cannot be a value; use NULL (None)")
    if getattr(value, "nanosecond", 0):
        raise ValueError(f"{shown(value)} has fractions of a microsecond, which a timestamp does not hold")
    if type(value) is datetime.datetime and value.tzinfo is None and not value.fold:
        return value
    try:
        moment = value if value.tzinfo is None else value.astimezone(datetime.UTC)
    except OverflowError:
        raise ValueError(f"{shown(value)} is not between the years 1 and 9999 in UTC") from None
    return datetime.datetime.combine(moment.date(), moment.time().replace(tzinfo=None, fold=0))


def _binary(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _wrong(value, "bytes")
    return bytes(value)


def _array_check(type_: Type) -> Check:
    """An array is given as a list, a tuple or a NumPy array, and stored as a tuple."""
    assert type_.element is not None
    check = value_check(type_.element)

    def checked_array(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple | np.ndarray):
            raise _wrong(value, f"a list, as {type_} needs it")
        return tuple([None if each is None else check(each) for each in value])

    return checked_array


def _struct_check(type_: Type) -> Check:
    """A struct is given as a mapping with all its fields, or as a tuple of them in order."""
    names = tuple(name for name, _ in type_.fields)
    checks = tuple(value_check(each) for _, each in type_.fields)

    def checked_struct(value: Any) -> Struct:
        if isinstance(value, Mapping):
            value = _fields_of(value, names, type_)
        elif not isinstance(value, list | tuple):
            raise _wrong(value, f"a dict or a tuple, as {type_} needs it")
        if len(value) != len(names):
            raise ValueError(f"{shown(value)} has {len(value)} fields, and {type_} {len(names)}")
        kept = [None if each is None else check(each) for each, check in zip(value, checks, strict=True)]
        return Struct(names, tuple(kept))

    return checked_struct


def _fields_of(value: Mapping[Any, Any], names: tuple[str, ...], type_: Type) -> list[Any]:
    """The fields of a mapping in order, whatever the case of their names."""
    given = {str(name).lower(): each for name, each in value.items()}
    if len(given) < len(value) or given.keys() != {name.lower() for name in names}:
        raise ValueError(f"{shown(value)} does not have the fields of {type_}")
    return [given[name.lower()] for name in names]


_CHECKS: dict[str, Check] = {
    "int": _int,
    "float": _float,
    "string": _string,
    "bool": _bool,
    "date": _date,
    "timestamp": _timestamp,
    "binary": _binary,
}
