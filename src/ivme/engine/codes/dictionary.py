"""Codes for values that do not fit 64 bits: each distinct value has a number for as long as something holds it."""

from __future__ import annotations

from collections.abc import Container, Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ivme.errors import DataError
from ivme.query.types import Type

Codes = npt.NDArray[np.int64]

NULL_CODE = -(2**63)
"""The code of NULL in every domain."""

FIRST_CODE = 0x7FF8_0000_0000_0000
"""The codes of dictionaries begin here: as the bits of a float these are not numbers, and other values are hardly ever
that large. A holder of codes need not say which of its numbers they are (decision 0118)."""

_SPAN = 2**32
"""How many codes each dictionary may have."""

_NESTED = 4096
"""The number of the dictionary of all arrays and structs, behind those of decimals."""

_NO_VALUE = object()
"""What stands in place of a value whose code was taken back."""


def first_code(type_: Type) -> int:
    """The first code of the dictionary of a type, which no other dictionary shares; arrays and structs have one.

    >>> first_code(Type("binary")) - first_code(Type("string")) == 2**32
    True
    """
    if type_.kind == "decimal":
        assert type_.precision is not None
        assert type_.scale is not None
        return FIRST_CODE + (2 + 64 * type_.precision + type_.scale) * _SPAN
    if type_.is_nested:
        return FIRST_CODE + _NESTED * _SPAN
    return FIRST_CODE + ("string", "binary").index(type_.kind) * _SPAN


class Dictionary:
    """The distinct values of a type; `values[code - base]` is the value of a code.

    A code stays valid until a `sweep` that does not find it held; then it may be given to another value. Finding a
    value or a code takes O(1); encoding an array takes vectorised work a row and Python's work only for each distinct
    value of the array.
    """

    __slots__ = ("_codes", "_free", "added", "base", "kept", "values")

    def __init__(self, base: int = 0) -> None:
        self.base = base
        self.values: list[Any] = []
        self.kept = 0
        self.added = 0
        self._codes: dict[Hashable, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._codes)

    def memory_bytes(self) -> int:
        """A rough estimate: a value takes about 200 bytes in Python's lists and dictionaries."""
        return 200 * len(self.values)

    def add(self, value: Hashable) -> int:
        """The value's code, a new one if the value has none."""
        code = self._codes.get(value)
        if code is None:
            if self._free:
                code = self._free.pop()
                self.values[code - self.base] = value
            else:
                code = self.base + len(self.values)
                self.values.append(value)
            self._codes[value] = code
            self.added += 1
        return code

    def value(self, code: int) -> Any:
        """The value of a code."""
        value = self.values[code - self.base]
        if value is _NO_VALUE:
            raise KeyError(f"no value has the code {code}")
        return value

    def find(self, value: Hashable) -> int | None:
        """The value's code, or None if it has none."""
        return self._codes.get(value)

    def sweep(self, held: Container[int]) -> None:
        """Takes back all codes that are not held; the least are given again first."""
        for place, value in enumerate(self.values):
            if value is not _NO_VALUE and self.base + place not in held:
                del self._codes[value]
                self.values[place] = _NO_VALUE
        while self.values and self.values[-1] is _NO_VALUE:
            self.values.pop()
        places = range(len(self.values) - 1, -1, -1)
        self._free = [self.base + place for place in places if self.values[place] is _NO_VALUE]
        self.kept, self.added = len(self), 0

    def encode(self, array: pa.Array) -> Codes:
        """The codes of an array's values; values that are new are added."""
        if not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()
        try:
            distinct = array.dictionary.to_pylist()
        except UnicodeDecodeError as error:
            raise DataError(f"a string is not valid UTF-8: {error}") from None
        added = [NULL_CODE if value is None else self.add(value) for value in distinct]
        codes: Codes = np.array([*added, NULL_CODE], dtype=np.int64)
        positions = array.indices.fill_null(len(distinct)) if array.indices.null_count else array.indices
        found: Codes = np.take(codes, positions.to_numpy())
        return found

    def decode(self, codes: Codes, null: npt.NDArray[np.bool_] | None, type_: pa.DataType) -> pa.Array:
        """The values of codes, as an array of a type; `null` marks NULLs if there are any.

        Linear in the codes, whatever the dictionary's size.
        """
        value = self.value
        if null is None:
            return pa.array([value(code) for code in codes.tolist()], type=type_)
        return pa.array([None if code == NULL_CODE else value(code) for code in codes.tolist()], type=type_)
