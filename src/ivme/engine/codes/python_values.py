"""Values as 64-bit codes, for kernels that are given Python values of any type.

Integers stand for themselves, except for a sliver at the low end of the range that holds NULL, strings (in a
dictionary of the kernel's, which can compare them) and everything else. Values that are equal in Python have one
code, as they are one key in `pure`. A runtime that knows the types of its columns encodes whole columns instead.
"""

from __future__ import annotations

from typing import Any

from ivme.engine.codes.dictionary import NULL_CODE as NULL

_SPAN = 2**40
_STRINGS = NULL + 1
_OTHERS = _STRINGS + _SPAN
FIRST_INTEGER = _OTHERS + _SPAN
"""The least integer that is its own code."""

LAST_INTEGER = 2**63 - 1
"""The greatest."""


class ValueCodes:
    """Codes for values of any hashable type; only integers and strings have the order that MIN and MAX need."""

    def __init__(self, seed: int) -> None:
        from ivme._kernel import Dictionary

        self.strings = Dictionary(seed, _STRINGS)
        self._codes: dict[Any, int] = {}
        self._values: list[Any] = []

    def encode(self, value: Any) -> int:
        """The code of a value, which gets one if it had none."""
        if value is None:
            return NULL
        if isinstance(value, str):
            return self.strings.encode_one(value)
        if not isinstance(value, int):
            try:
                whole = int(value)
            except (TypeError, ValueError, OverflowError):
                return self._other(value)
            if whole != value:
                return self._other(value)
            value = whole
        return int(value) if FIRST_INTEGER <= value <= LAST_INTEGER else self._other(value)

    def _other(self, value: Any) -> int:
        code = self._codes.get(value)
        if code is None:
            code = self._codes[value] = _OTHERS + len(self._values)
            self._values.append(value)
        return code

    def decode(self, code: int) -> Any:
        if code >= FIRST_INTEGER:
            return code
        if code >= _OTHERS:
            return self._values[code - _OTHERS]
        return self.strings.decode_one(code)
