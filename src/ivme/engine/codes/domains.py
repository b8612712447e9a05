"""Values and the 64-bit codes that stand for them in the kernel.

Each type has a domain, an injection from its values into the codes: within one type, equal codes are equal values.
NULL is `NULL_CODE` in every domain, below all other codes. Ints, bools, dates (days), timestamps (microseconds),
floats (their bits, arranged in the order of the numbers) and decimals of up to 18 digits (without their point) are
their own codes, and code order is value order; strings and binaries have codes from a dictionary, and so have wider
decimals whose number has more than 62 bits. Arrays are encoded and decoded by vectorised work.
"""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ivme.engine.codes.decimal_domains import NARROW_DIGITS, NarrowDecimals, WideDecimals
from ivme.engine.codes.dictionary import FIRST_CODE, NULL_CODE, Codes, Dictionary, first_code
from ivme.engine.codes.domain import DictionaryValues, Domain, Nulls
from ivme.engine.codes.memos import Memos
from ivme.engine.codes.nested_values import NestedValues
from ivme.engine.codes.value_check import INT_LIMIT, NAN_REASON
from ivme.errors import DataError
from ivme.query.types import Type

__all__ = ["FIRST_CODE", "NULL_CODE", "Codes", "Domain", "Domains"]

_FLIP = 2**63 - 1
NAN_CODE = 0x7FF8_0000_0000_0000
"""The code of a float that is not a number: a sum may be one, though no value is."""

_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()
_MICROSECOND = datetime.timedelta(microseconds=1)
_DAY_MICROSECONDS = 86_400_000_000
_MOST_CODES_BY_HAND = 16
"""Up to so many values are decoded one by one, which is quicker than all at once."""

_FIRST_DAY = datetime.date.min.toordinal() - _EPOCH_DAY
_LAST_DAY = datetime.date.max.toordinal() - _EPOCH_DAY


class _Integers(Domain):
    """Types that Arrow keeps as integers: their codes are those, between `least` and `most`."""

    storage = pa.int64()

    def _encode(self, array: pa.Array) -> Codes:
        if array.null_count:
            return self._encode_some(array)
        # NumPy's days and microseconds are 64-bit integers, too.
        codes: Codes = array.to_numpy(zero_copy_only=False).view(np.int64)
        if len(codes):
            most = self.most if self.most == INT_LIMIT else int(np.maximum.reduce(codes))
            self._refuse_outside(int(np.minimum.reduce(codes)), most)
        return codes

    def _encode_some(self, array: pa.Array) -> Codes:
        """With NULLs among the values, or where NumPy has other numbers for them."""
        numbers = array if array.type == self.storage else array.cast(self.storage)
        if len(numbers) and numbers.null_count < len(numbers):
            import pyarrow.compute as pc

            bounds = pc.min_max(numbers)
            self._refuse_outside(int(bounds["min"].as_py()), int(bounds["max"].as_py()))
        if numbers.type != pa.int64():
            numbers = numbers.cast(pa.int64())
        codes: Codes = (numbers.fill_null(NULL_CODE) if numbers.null_count else numbers).to_numpy()
        return codes

    def _refuse_outside(self, least: int, most: int) -> None:
        for bound in (least, most):
            if not self.least <= bound <= self.most:
                raise DataError(f"a value of type {self.type} is out of range: its number is {bound}")

    def _decode(self, codes: Codes, null: Nulls | None) -> pa.Array:
        numbers = pa.array(codes, mask=null)
        if self.arrow_type == pa.int64():
            return numbers
        return numbers.cast(self.storage, safe=False).cast(self.arrow_type)

    def _code(self, value: Any) -> int:
        return int(value)

    def _value(self, code: int) -> Any:
        return code


class _Ints(_Integers):
    """Ints are their own codes."""

    def find_value(self, value: Any) -> int | None:
        if type(value) is int and -INT_LIMIT <= value <= INT_LIMIT:
            return value
        return super().find_value(value)

    def values(self, codes: list[int]) -> list[Any]:
        return codes if NULL_CODE not in codes else super().values(codes)


class _Bools(_Integers):
    storage = pa.int8()

    def _encode(self, array: pa.Array) -> Codes:
        return self._encode_some(array)

    def _value(self, code: int) -> bool:
        return bool(code)


class _Dates(_Integers):
    storage = pa.int32()
    least, most = _FIRST_DAY, _LAST_DAY

    def _code(self, value: datetime.date) -> int:
        return value.toordinal() - _EPOCH_DAY

    def _value(self, code: int) -> datetime.date:
        return datetime.date.fromordinal(code + _EPOCH_DAY)


class _Timestamps(_Integers):
    least, most = _FIRST_DAY * _DAY_MICROSECONDS, (_LAST_DAY + 1) * _DAY_MICROSECONDS - 1

    def _code(self, value: datetime.datetime) -> int:
        return (value - _EPOCH) // _MICROSECOND

    def _value(self, code: int) -> datetime.datetime:
        return _EPOCH + code * _MICROSECOND


class _Floats(Domain):
    """The bits of a float; those of negative numbers turned over, so that larger numbers have larger codes."""

    def _encode(self, array: pa.Array) -> Codes:
        nulls = array.null_count
        numbers = (array.fill_null(0.0) if nulls else array).to_numpy() + 0.0
        if np.isnan(numbers).any():
            raise DataError(NAN_REASON)
        codes = self._turned(numbers.view(np.int64))
        if nulls:
            codes[array.is_null().to_numpy(zero_copy_only=False)] = NULL_CODE
        return codes

    def code_computed(self, value: float | None) -> int:
        if value is None:
            return NULL_CODE
        return self._code(value + 0.0) if value == value else NAN_CODE

    def _turned(self, bits: Codes) -> Codes:
        return np.where(bits < 0, bits ^ _FLIP, bits)

    def _decode(self, codes: Codes, null: Nulls | None) -> pa.Array:
        return pa.array(self._turned(codes.astype(np.int64, copy=False)).view(np.float64), mask=null)

    def values(self, codes: list[int]) -> list[Any]:
        if len(codes) <= _MOST_CODES_BY_HAND:
            return super().values(codes)
        given = np.array(codes, dtype=np.int64)
        values: list[Any] = self._turned(given).view(np.float64).tolist()
        for special in np.flatnonzero((given == NULL_CODE) | (given == NAN_CODE)).tolist():
            values[special] = None if codes[special] == NULL_CODE else math.nan
        return values

    def _code(self, value: float) -> int:
        (bits,) = struct.unpack("<q", struct.pack("<d", value))
        return int(bits ^ _FLIP if bits < 0 else bits)

    def _value(self, code: int) -> float:
        """Always the same object for NaN: rows that hold it then equal each other."""
        (value,) = struct.unpack("<d", struct.pack("<q", code ^ _FLIP if code < 0 else code))
        return math.nan if code == NAN_CODE else float(value)


_DOMAINS: dict[str, type[Domain]] = {
    "int": _Ints,
    "bool": _Bools,
    "date": _Dates,
    "timestamp": _Timestamps,
    "float": _Floats,
}


def plain_dictionary(type_: Type) -> Dictionary:
    """A dictionary in plain Python for the values of a type."""
    return Dictionary(first_code(type_))


class BatchEncoder(Protocol):
    """Takes record batches of one table to codes."""

    def encode(self, capsules: tuple[Any, Any], /) -> list[Codes] | None:
        """The codes of each column, which may share the data's memory; None if the batch path has to look at them.

        The capsules are those of `__arrow_c_array__`; Arrow has validated the data.
        """


class Domains:
    """The domains of a database, one for each type; they own its dictionaries.

    `encoder_of` gives, for a table's columns, what encodes all of them at once, if there is such a thing. With
    `in_kernel`, the kernel knows the codes, and computes expressions from them. `memos` has what is remembered by code.
    `sweeps` counts how often codes were taken back: those of values that nothing held may be others' since then. It
    grows when `is_sweeping` begins: who reads first the one and then the other, and finds the one as it was in the end,
    has used codes that meant the same all the time.
    """

    def __init__(
        self,
        dictionary_of: Callable[[Type], Dictionary] = lambda type_: plain_dictionary(type_),
        encoder_of: Callable[[Sequence[str], Sequence[Domain]], BatchEncoder | None] = lambda _names, _domains: None,
        *,
        in_kernel: bool = False,
    ) -> None:
        self._domains: dict[Type, Domain] = {}
        self._dictionaries: dict[Type, Dictionary] | None = None
        self._dictionary_of = dictionary_of
        self._nested: Dictionary | None = None
        self.encoder_of = encoder_of
        self.in_kernel = in_kernel
        self.memos = Memos()
        self.sweeps = 0
        self.is_sweeping = False

    def domain(self, type_: Type) -> Domain:
        """The domain of a type, the same one every time.

        >>> strings = Domains().domain(Type("string"))
        >>> codes = strings.encode(pa.array(["a", None, "b", "a"])).tolist()
        >>> codes == [FIRST_CODE, NULL_CODE, FIRST_CODE + 1, FIRST_CODE]
        True
        """
        domain = self._domains.get(type_)
        if domain is None:
            domain = self._domains.setdefault(type_, self._new(type_))
            self._dictionaries = None
        return domain

    def dictionaries(self) -> dict[Type, Dictionary]:
        """The dictionaries that are in use."""
        if self._dictionaries is None:
            self._dictionaries = self._found_dictionaries()
        return self._dictionaries

    def _found_dictionaries(self) -> dict[Type, Dictionary]:
        domains = self._domains.items()
        found = {type_: domain.dictionary for type_, domain in domains if isinstance(domain, DictionaryValues)}
        unique = {id(dictionary): type_ for type_, dictionary in reversed(found.items())}
        return {type_: found[type_] for type_ in found if unique[id(found[type_])] == type_}

    def memory_bytes(self) -> int:
        """What the dictionaries take."""
        return sum(dictionary.memory_bytes() for dictionary in self.dictionaries().values())

    def _new(self, type_: Type) -> Domain:
        if type_.kind in _DOMAINS:
            return _DOMAINS[type_.kind](type_)
        if type_.is_nested:
            if self._nested is None:
                self._nested = self._dictionary_of(type_)
            return NestedValues(type_, self._nested)
        if type_.precision is not None and type_.precision <= NARROW_DIGITS:
            return NarrowDecimals(type_)
        made = WideDecimals if type_.kind == "decimal" else DictionaryValues
        return made(type_, self._dictionary_of(type_))
