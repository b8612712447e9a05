"""Values of arrays and structs: tuples and mappings in Python, and bytes whose order is that of the values.

Both are carried, compared and counted as wholes. An array is ordered as Spark orders it: by its first elements that
differ, NULL before all others, and a shorter one before a longer one that begins with it; a struct by its fields.
"""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from ivme.query.types import Type

_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_MIDDLE, _WIDE_MIDDLE, _ALL = 2**63, 2**127, 2**64 - 1
_NULL, _THERE, _END = b"\0", b"\1", b"\0"


class Struct(Mapping[str, Any]):
    """A struct's value: a mapping from the names of its fields, in their order, that rows and sets can hold.

    >>> place = Struct(("a", "b"), (1, "x"))
    >>> place, place["b"], place == {"a": 1, "b": "x"}, len({place, Struct(("a", "b"), (1, "x"))})
    (Struct(a=1, b='x'), 'x', True, 1)
    """

    __slots__ = ("fields", "parts")

    def __init__(self, fields: tuple[str, ...], parts: tuple[Any, ...]) -> None:
        self.fields = fields
        self.parts = parts

    def __getitem__(self, field: str) -> Any:
        try:
            return self.parts[self.fields.index(field)]
        except ValueError:
            raise KeyError(field) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __hash__(self) -> int:
        return hash(self.parts)

    def __repr__(self) -> str:
        return f"Struct({', '.join(f'{name}={value!r}' for name, value in self.items())})"

    def __reduce__(self) -> Any:
        return Struct, (self.fields, self.parts)


def to_bytes(value: tuple[Any, ...] | Struct, type_: Type) -> bytes:
    """The bytes of a value, which order as values do; equal values of a type have equal bytes.

    >>> numbers = Type("array", element=Type("int"))
    >>> values = [(), (None,), (-1, 7), (2,), (2, None), (10,)]
    >>> sorted(values, key=lambda value: to_bytes(value, numbers)) == values
    True
    >>> [from_bytes(to_bytes(value, numbers), numbers) for value in values] == values
    True
    """
    parts: list[bytes] = []
    _writer(type_)(value, parts.append)
    return b"".join(parts)


def from_bytes(data: bytes, type_: Type) -> Any:
    """The value that `to_bytes` made these bytes of."""
    return _reader(type_)(data, 0)[0]


Write = Callable[[Any, Callable[[bytes], None]], None]
Read = Callable[[bytes, int], tuple[Any, int]]
"""From bytes and a place in them to the value that begins there, and where it ends."""


@lru_cache(maxsize=1024)
def _writer(type_: Type) -> Write:
    if type_.element is not None:
        return _array_writer(_nullable_writer(type_.element))
    if type_.fields:
        return _struct_writer([_nullable_writer(each) for _, each in type_.fields])
    if type_.kind in ("string", "binary"):
        return lambda value, emit: emit(_escaped(value if isinstance(value, bytes) else value.encode()))
    pack = _packed(type_)
    return lambda value, emit: emit(pack(value))


def _nullable_writer(type_: Type) -> Write:
    write = _writer(type_)

    def nullable(value: Any, emit: Callable[[bytes], None]) -> None:
        if value is None:
            emit(_NULL)
        else:
            emit(_THERE)
            write(value, emit)

    return nullable


def _array_writer(element: Write) -> Write:
    def write(value: Any, emit: Callable[[bytes], None]) -> None:
        for each in value:
            emit(_THERE)
            element(each, emit)
        emit(_END)

    return write


def _struct_writer(fields: list[Write]) -> Write:
    def write(value: Any, emit: Callable[[bytes], None]) -> None:
        for each, field in zip(value.parts, fields, strict=True):
            field(each, emit)

    return write


def _escaped(data: bytes) -> bytes:
    return data.replace(b"\0", b"\0\xff") + b"\0\0"


def _packed(type_: Type) -> Callable[[Any], bytes]:
    """A number as bytes of a fixed size, the largest first."""
    match type_.kind:
        case "bool":
            return lambda value: b"\1" if value else b"\0"
        case "date":
            return lambda value: (value.toordinal() + _MIDDLE).to_bytes(8, "big")
        case "timestamp":
            return lambda value: ((value - _EPOCH) // _MICROSECOND + _MIDDLE).to_bytes(8, "big")
        case "float":
            return _packed_float
        case "decimal":
            scale = type_.scale or 0
            return lambda value: (_unscaled(value, scale) + _WIDE_MIDDLE).to_bytes(16, "big")
    return lambda value: (value + _MIDDLE).to_bytes(8, "big")


def _unscaled(value: Decimal, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    whole = int("".join(map(str, digits))) * 10 ** (scale + exponent) if scale + exponent >= 0 else 0
    return -whole if sign else whole


def _packed_float(value: float) -> bytes:
    """Floats that are equal have the same bytes: one zero, and one NaN, which comes last."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", math.nan if value != value else value + 0.0))
    return int(bits ^ _ALL if bits & _MIDDLE else bits | _MIDDLE).to_bytes(8, "big")


@lru_cache(maxsize=1024)
def _reader(type_: Type) -> Read:
    if type_.element is not None:
        return _array_reader(_nullable_reader(type_.element))
    if type_.fields:
        return _struct_reader(tuple(name for name, _ in type_.fields), [_nullable_reader(t) for _, t in type_.fields])
    if type_.kind in ("string", "binary"):
        return _text_reader(as_text=type_.kind == "string")
    size = {"bool": 1, "decimal": 16}.get(type_.kind, 8)
    unpack = _unpacked(type_)
    return lambda data, at: (unpack(int.from_bytes(data[at : at + size], "big")), at + size)


def _nullable_reader(type_: Type) -> Read:
    read = _reader(type_)
    return lambda data, at: read(data, at + 1) if data[at] else (None, at + 1)


def _array_reader(element: Read) -> Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        found = []
        while data[at]:
            value, at = element(data, at + 1)
            found.append(value)
        return tuple(found), at + 1

    return read


def _struct_reader(names: tuple[str, ...], fields: list[Read]) -> Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        found = []
        for field in fields:
            value, at = field(data, at)
            found.append(value)
        return Struct(names, tuple(found)), at

    return read


def _text_reader(*, as_text: bool) -> Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        end = next(_ends(data, at))
        found = data[at:end].replace(b"\0\xff", b"\0")
        return found.decode() if as_text else found, end + 2

    return read


def _ends(data: bytes, at: int) -> Iterator[int]:
    """Where a text ends: at a zero that none of its own follows."""
    while True:
        at = data.index(b"\0", at)
        if data[at + 1] == 0:
            yield at
        at += 2


def _unpacked(type_: Type) -> Callable[[int], Any]:
    match type_.kind:
        case "bool":
            return bool
        case "date":
            return lambda number: datetime.date.fromordinal(number - _MIDDLE)
        case "timestamp":
            return lambda number: _EPOCH + (number - _MIDDLE) * _MICROSECOND
        case "float":
            return _unpacked_float
        case "decimal":
            scale = type_.scale or 0
            return lambda number: Decimal(f"{number - _WIDE_MIDDLE}E-{scale}")
    return lambda number: number - _MIDDLE


def _unpacked_float(number: int) -> float:
    bits = number ^ _MIDDLE if number & _MIDDLE else number ^ _ALL
    (value,) = struct.unpack(">d", bits.to_bytes(8, "big"))
    return float(value)


def frozen(value: Any, type_: Type) -> Any:
    """A value as Arrow gives it, with lists and dicts, as rows have it; other values as they are."""
    if value is None:
        return None
    if type_.element is not None:
        return tuple(frozen(each, type_.element) for each in value)
    if type_.fields:
        names = tuple(name for name, _ in type_.fields)
        return Struct(names, tuple(frozen(v, t) for v, (_, t) in zip(value.values(), type_.fields, strict=True)))
    return value


def thawed(value: Any, type_: Type) -> Any:
    """A value as Arrow takes it: structs as dicts."""
    if value is None or not (type_.element or type_.fields):
        return value
    if type_.element is not None:
        return [thawed(each, type_.element) for each in value]
    return {name: thawed(each, kind) for each, (name, kind) in zip(value.parts, type_.fields, strict=True)}


def in_order(value: Any) -> Any:
    """What Python sorts values by that are not NULL: arrays and structs may have NULLs in them.

    >>> sorted([(1, 2), (1, None), (1,)], key=in_order)
    [(1,), (1, None), (1, 2)]
    """
    if isinstance(value, Struct):
        return in_order(value.parts)
    if not isinstance(value, tuple):
        return value
    return tuple((False,) if each is None else (True, in_order(each)) for each in value)


def parts_of(value: Any) -> tuple[Any, ...] | None:
    """The parts of an array or a struct; None for any other value."""
    return value.parts if isinstance(value, Struct) else value if isinstance(value, tuple) else None


def compared(left: tuple[Any, ...], right: tuple[Any, ...], compare: Callable[[Any, Any], int]) -> int:
    """-1, 0 or 1, by the first parts that differ; NULL comes first."""
    for one, other in zip(left, right, strict=False):
        if one is None or other is None:
            order = int(one is not None) - int(other is not None)
        else:
            order = compare(one, other)
        if order:
            return order
    return int(len(left) > len(right)) - int(len(left) < len(right))
