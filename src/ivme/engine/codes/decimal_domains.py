"""The codes of decimals: their numbers without the point, where these fit."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ivme.engine.codes.dictionary import NULL_CODE, Codes, Dictionary
from ivme.engine.codes.domain import DictionaryValues, Domain, Nulls
from ivme.errors import DataError
from ivme.query.types import Type

LARGE_DECIMALS = 2**62
"""Wide decimals between this number and its negative are their own codes; others come from a dictionary."""

NARROW_DIGITS = 18
_DIGITS, _WIDE_DIGITS = Context(prec=NARROW_DIGITS), Context(prec=38)


class NarrowDecimals(Domain):
    """Decimals of up to 18 digits, as integers of their smallest unit."""

    def __init__(self, type_: Type) -> None:
        super().__init__(type_)
        assert type_.scale is not None
        self._scale = type_.scale
        assert type_.precision is not None
        self.most = 10**type_.precision - 1
        self.least = -self.most

    def _encode(self, array: pa.Array) -> Codes:
        words = _words(array)
        codes = np.array(words[:, 0])
        outside = (words[:, 1] != codes >> 63) | (codes < self.least) | (codes > self.most)
        if array.null_count:
            null = array.is_null().to_numpy(zero_copy_only=False)
            codes[null] = NULL_CODE
            outside &= ~null
        if outside.any():
            raise DataError(f"a value of type {self.type} has more digits")
        return codes

    def _decode(self, codes: Codes, null: Nulls | None) -> pa.Array:
        return _decimals(_two_words(codes), null, self.arrow_type)

    def _code(self, value: Decimal) -> int:
        return int(value.scaleb(self._scale, _DIGITS))

    def _value(self, code: int) -> Decimal:
        return Decimal(code).scaleb(-self._scale, _DIGITS)


class WideDecimals(DictionaryValues):
    """Decimals of more than 18 digits: integers of their smallest unit, but for large ones.

    Sums that come and go are hardly ever large, and would each be in a dictionary until its next sweep.
    """

    def __init__(self, type_: Type, dictionary: Dictionary) -> None:
        super().__init__(type_, dictionary)
        assert type_.scale is not None
        self._scale = type_.scale

    def sort_key(self, code: int) -> Any:
        return () if code == NULL_CODE else (self._value(code),)

    def _encode(self, array: pa.Array) -> Codes:
        if pa.types.is_dictionary(array.type):
            array = array.cast(self.arrow_type)
        words = _words(array)
        codes = np.array(words[:, 0])
        large = (words[:, 1] != codes >> 63) | (codes >= LARGE_DECIMALS) | (codes <= -LARGE_DECIMALS)
        if array.null_count:
            null = array.is_null().to_numpy(zero_copy_only=False)
            codes[null] = NULL_CODE
            large &= ~null
        if large.any():
            found = array.filter(pa.array(large))
            try:
                found.validate(full=True)
            except pa.ArrowInvalid as error:
                raise DataError(f"a value of type {self.type} has more digits: {error}") from None
            codes[large] = self.dictionary.encode(found)
        return codes

    def _decode(self, codes: Codes, null: Nulls | None) -> pa.Array:
        large = codes >= LARGE_DECIMALS
        words = _two_words(codes)
        if large.any():
            words[large] = _words(self.dictionary.decode(codes[large], None, self.arrow_type))
        return _decimals(words, null, self.arrow_type)

    def _number(self, value: Decimal) -> int:
        return int(value.scaleb(self._scale, _WIDE_DIGITS))

    def _code(self, value: Decimal) -> int:
        number = self._number(value)
        return number if -LARGE_DECIMALS < number < LARGE_DECIMALS else self.dictionary.add(value)

    def _found(self, value: Decimal) -> int | None:
        number = self._number(value)
        return number if -LARGE_DECIMALS < number < LARGE_DECIMALS else self.dictionary.find(value)

    def _value(self, code: int) -> Any:
        return (
            self.dictionary.value(code) if code >= LARGE_DECIMALS else Decimal(code).scaleb(-self._scale, _WIDE_DIGITS)
        )


def _words(array: pa.Array) -> npt.NDArray[np.int64]:
    """The low and high words of an array of decimals."""
    words = np.frombuffer(array.buffers()[1] or b"", dtype="<i8").reshape(-1, 2)
    return words[array.offset : array.offset + len(array)]


def _two_words(codes: Codes) -> npt.NDArray[np.int64]:
    return np.stack([codes, codes >> 63], axis=1)


def _decimals(words: npt.NDArray[np.int64], null: Nulls | None, type_: pa.DataType) -> pa.Array:
    valid = None if null is None else pa.py_buffer(np.packbits(~null, bitorder="little").tobytes())
    return pa.Array.from_buffers(type_, len(words), [valid, pa.py_buffer(words.astype("<i8").tobytes())])
