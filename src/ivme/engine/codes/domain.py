"""What a domain is: the codes of one type's values (see `ivme.engine.codes.domains`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ivme.engine.codes.arrow_types import arrow_type, cast_decimals, combined
from ivme.engine.codes.dictionary import NULL_CODE, Codes, Dictionary
from ivme.engine.codes.value_check import INT_LIMIT, value_check
from ivme.errors import DataError
from ivme.query.types import Type

Nulls = npt.NDArray[np.bool_]
"""Which rows of an array are NULL."""


class Domain(ABC):
    """The codes of one type's values."""

    orders_by_code = True
    """Whether the order of codes is the order of values, NULL first."""

    least, most = -INT_LIMIT, INT_LIMIT
    """The codes that values have, where not all numbers of 64 bits are some value's."""

    def __init__(self, type_: Type) -> None:
        self.type = type_
        self.arrow_type = arrow_type(type_)
        self._check = value_check(type_)

    def encode(self, array: pa.Array | pa.ChunkedArray) -> Codes:
        """The codes of an array of this type, or of one that joins with it (ints among floats, and the like).

        The result may share the array's memory and is then read-only.
        """
        if isinstance(array, pa.ChunkedArray):
            array = combined(array)
        if array.type.equals(self.arrow_type):
            return self._encode(array)
        if pa.types.is_dictionary(array.type) and array.type.value_type == self.arrow_type:
            array = array if not self.orders_by_code else array.cast(self.arrow_type)
        else:
            array = self._widened(array)
        return self._encode(array)

    def code_computed(self, value: Any) -> int:
        """The code of what the engine computed, which may be what no table takes: a NaN."""
        return NULL_CODE if value is None else self._code(value)

    def encode_value(self, value: Any) -> int:
        """The code of a Python value; `DataError` if it is not of the type."""
        if value is None:
            return NULL_CODE
        try:
            return self._code(self._check(value))
        except (TypeError, ValueError) as error:
            raise DataError(f"not a value of type {self.type}: {error}") from None

    def find_value(self, value: Any) -> int | None:
        """The code of a Python value that may be in the database; None if it certainly is not.

        Nothing is added to a dictionary. A value of another kind is a `DataError`; one that the type does not hold,
        such as an int of 65 bits, occurs nowhere.
        """
        if value is None:
            return NULL_CODE
        try:
            return self._found(self._check(value))
        except ValueError:
            return None
        except TypeError as error:
            raise DataError(f"not a value of type {self.type}: {error}") from None

    def decode(self, codes: Codes) -> pa.Array:
        """The values of codes, in the column's Arrow type."""
        null = codes == NULL_CODE
        return self._decode(np.ascontiguousarray(codes), null if null.any() else None)

    def decode_value(self, code: int) -> Any:
        """The Python value of a code."""
        return None if code == NULL_CODE else self._value(int(code))

    def values(self, codes: list[int]) -> list[Any]:
        """The Python values of codes; may be the list that was given."""
        value = self._value
        return [None if code == NULL_CODE else value(code) for code in codes]

    def sort_key(self, code: int) -> Any:
        """What to sort codes by to sort their values as SQL does, NULL first."""
        return code

    def _widened(self, array: pa.Array) -> pa.Array:
        try:
            if self.type.kind == "decimal" and pa.types.is_integer(array.type):
                array = array.cast(pa.decimal128(19, 0))
            if self.type.kind == "decimal" and pa.types.is_decimal(array.type):
                return cast_decimals(array, self.arrow_type)
            return array.cast(self.arrow_type, safe=self.type.kind != "float")
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(f"a column of {array.type} has no codes of type {self.type}: {error}") from None

    def _found(self, value: Any) -> int | None:
        return self._code(value)

    @abstractmethod
    def _encode(self, array: pa.Array) -> Codes: ...

    @abstractmethod
    def _decode(self, codes: Codes, null: Nulls | None) -> pa.Array: ...

    @abstractmethod
    def _code(self, value: Any) -> int: ...

    @abstractmethod
    def _value(self, code: int) -> Any: ...


class DictionaryValues(Domain):
    """Strings and binaries. Python orders strings by code points, which is the order of UTF-8."""

    orders_by_code = False

    def __init__(self, type_: Type, dictionary: Dictionary) -> None:
        super().__init__(type_)
        self.dictionary = dictionary

    def sort_key(self, code: int) -> Any:
        return () if code == NULL_CODE else (self.dictionary.value(code),)

    def _encode(self, array: pa.Array) -> Codes:
        return self.dictionary.encode(array)

    def _decode(self, codes: Codes, null: Nulls | None) -> pa.Array:
        return self.dictionary.decode(codes, null, self.arrow_type)

    def _code(self, value: Any) -> int:
        return self.dictionary.add(value)

    def _found(self, value: Any) -> int | None:
        return self.dictionary.find(value)

    def _value(self, code: int) -> Any:
        return self.dictionary.value(code)
