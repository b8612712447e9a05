"""Codes for values that do not fit 64 bits: each distinct value gets the next number, once and for ever."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ivme.errors import DataError

Codes = npt.NDArray[np.int64]

NULL_CODE = -(2**63)
"""The code of NULL in every domain."""


class Dictionary:
    """The distinct values of a type in the order in which they came; `values[code - base]` is the value of a code.

    It only grows: a code stays valid for as long as the database lives, also after the last row that had it is
    gone. Finding a value or a code takes O(1); encoding an array takes vectorised work a row and Python's work only
    for each distinct value of the array.
    """

    __slots__ = ("_codes", "base", "values")

    def __init__(self, base: int = 0) -> None:
        self.base = base
        self.values: list[Any] = []
        self._codes: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self.values)

    def add(self, value: Hashable) -> int:
        """The value's code, a new one if the value is new."""
        code = self._codes.get(value)
        if code is None:
            code = self.base + len(self.values)
            self.values.append(value)
            self._codes[value] = code
        return code

    def value(self, code: int) -> Any:
        """The value of a code."""
        return self.values[code - self.base]

    def find(self, value: Hashable) -> int | None:
        """The value's code, or None if no value like it was ever added."""
        return self._codes.get(value)

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
