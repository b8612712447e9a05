"""Dictionaries in the compiled kernel, which can then compare strings and wide decimals for MIN and MAX.

With them the kernel also takes whole record batches to codes, in one call for all columns.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ivme import _kernel
from ivme.engine.codes.dictionary import NULL_CODE, Codes, Dictionary, first_code
from ivme.engine.codes.domain import Domain
from ivme.engine.codes.domains import Domains
from ivme.errors import DataError
from ivme.query.sql_values import DECIMALS
from ivme.query.types import Type

_MIDDLE = 2**127


class NativeDictionary(Dictionary):
    """Strings or bytes; otherwise like `Dictionary`."""

    __slots__ = ("native",)

    def __init__(self, base: int, *, binary: bool, numbers: bool = False) -> None:
        super().__init__(base)
        self.native = _kernel.Dictionary(secrets.randbits(64), base, binary, numbers)

    def __len__(self) -> int:
        return len(self.native)

    def memory_bytes(self) -> int:
        return self.native.memory_bytes()

    def add(self, value: Any) -> int:
        return self.native.encode_one(value)

    def find(self, value: Any) -> int | None:
        return self.native.find(value)

    def value(self, code: int) -> Any:
        return self.native.decode_one(code)

    def encode(self, array: pa.Array) -> Codes:
        """Distinct values first where Arrow has them apart already; else all of them by the kernel's own loop."""
        if pa.types.is_dictionary(array.type):
            return super().encode(array)
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise DataError(f"a string is not valid UTF-8: {error}") from None
        valid, ends, text = array.buffers()
        offsets = np.frombuffer(ends or b"", np.int32)[array.offset : array.offset + len(array) + 1]
        bits = None if valid is None else np.frombuffer(valid, np.uint8)
        return self.native.encode_arrow(offsets, np.frombuffer(text or b"", np.uint8), bits, array.offset)

    def decode(self, codes: Codes, null: npt.NDArray[np.bool_] | None, type_: pa.DataType) -> pa.Array:
        offsets, text = self.native.decode_arrow(codes)
        valid = None if null is None else pa.py_buffer(np.packbits(~null, bitorder="little"))
        long = pa.large_binary() if pa.types.is_binary(type_) else pa.large_string()
        buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(text)]
        return pa.Array.from_buffers(long, len(codes), buffers).cast(type_)

    def dump(self) -> pa.Array:
        """The bytes of all values in the order of their codes; NULL for a code that no value has."""
        present = self.native.present().astype(bool)
        codes = np.where(present, self.base + np.arange(len(present), dtype=np.int64), NULL_CODE)
        offsets, text = self.native.decode_arrow(codes)
        valid = pa.py_buffer(np.packbits(present, bitorder="little"))
        return pa.Array.from_buffers(pa.large_binary(), len(codes), [valid, pa.py_buffer(offsets), pa.py_buffer(text)])

    def load(self, values: pa.Array) -> None:
        """Gives an empty dictionary what `dump` gave: each value has the code that it had."""
        _, ends, text = values.buffers()
        offsets = np.frombuffer(ends, np.int64)[values.offset : values.offset + len(values) + 1]
        present = values.is_valid().cast(pa.uint8()).to_numpy()
        if not self.native.load(offsets, np.frombuffer(text or b"", np.uint8), present):
            raise ValueError("a dictionary has a value twice, or was not empty")


class NativeDecimals(NativeDictionary):
    """Decimals that are not their own codes, stored as 16 bytes whose order is that of the numbers."""

    __slots__ = ("_scale",)

    def __init__(self, base: int, scale: int) -> None:
        super().__init__(base, binary=True, numbers=True)
        self._scale = scale

    def add(self, value: Any) -> int:
        return super().add(self._bytes(value))

    def find(self, value: Any) -> int | None:
        return super().find(self._bytes(value))

    def value(self, code: int) -> Any:
        whole = int.from_bytes(super().value(code), "big") - _MIDDLE
        return Decimal(whole).scaleb(-self._scale, DECIMALS)

    def _bytes(self, value: Decimal) -> bytes:
        return (int(value.scaleb(self._scale, DECIMALS)) + _MIDDLE).to_bytes(16, "big")

    def encode(self, array: pa.Array) -> Codes:
        return Dictionary.encode(self, array)

    def decode(self, codes: Codes, null: npt.NDArray[np.bool_] | None, type_: pa.DataType) -> pa.Array:
        return Dictionary.decode(self, codes, null, type_)


def native_dictionary(type_: Type) -> Dictionary:
    """The dictionary of a type whose values do not fit 64 bits."""
    if type_.kind == "decimal":
        assert type_.scale is not None
        return NativeDecimals(first_code(type_), type_.scale)
    return NativeDictionary(first_code(type_), binary=type_.kind != "string")


def native_domains() -> Domains:
    """The domains of a database on the compiled kernel."""
    return Domains(native_dictionary, _arrow_columns, in_kernel=True)


def _arrow_columns(names: Sequence[str], domains: Sequence[Domain]) -> _kernel.ArrowColumns | None:
    """The encoder of record batches with these columns; None if one is of a type that only Python encodes."""
    specs = []
    for name, domain in zip(names, domains, strict=True):
        arrow_format = _arrow_format(domain)
        if arrow_format is None:
            return None
        native = getattr(getattr(domain, "dictionary", None), "native", None)
        specs.append((name, arrow_format, domain.least, domain.most, native))
    return _kernel.ArrowColumns(specs)


_ARROW_FORMATS = {
    "int": "l",
    "bool": "b",
    "date": "tdD",
    "timestamp": "tsu:",
    "float": "g",
    "string": "u",
    "binary": "z",
}
"""The formats of Arrow's C data interface."""


def _arrow_format(domain: Domain) -> str | None:
    type_ = domain.type
    if type_.kind == "decimal":
        return f"d:{type_.precision},{type_.scale}" if domain.orders_by_code else None
    return _ARROW_FORMATS.get(type_.kind)
