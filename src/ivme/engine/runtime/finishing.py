"""Whole columns of aggregates finished at once: SUM and AVG as they are shown, from the exact totals of groups.

What `totals` says of one value, this says of a column. Numbers that do not fit a machine word, which are few, take the
way of single values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ivme.engine.backend import Codes, exact_sums, narrow_sums, whole_sums
from ivme.engine.codes.arrow_types import arrow_type
from ivme.engine.codes.decimal_domains import decimal_array
from ivme.engine.runtime.totals import average, decimal_value, narrow, part_value
from ivme.query.types import Type

Floats = npt.NDArray[np.float64]

_EXACT = 2**53
"""Whole numbers up to this are floats as they are, so that a quotient of two of them is rounded once."""

_HALF = 2**62
_HIGH = 10**38 >> 64
"""A decimal of 38 digits has no larger high word."""


def sums(slot: Any, present: Codes, type_: Type, where: str) -> pa.Array:
    """The values of SUM over groups with so many values that are there: NULL where there is none."""
    null = present == 0
    if type_.kind == "int":
        return pa.array(narrow(slot, where), mask=null)
    if type_.kind == "float":
        return pa.array(_one_nan(_floats(slot)), mask=null)
    return _decimals(_two_words(slot), null, type_, where)


def averages(slot: Any, present: Codes, summed: Type, type_: Type, where: str) -> pa.Array:
    """The values of AVG over groups with so many values of type `summed`: NULL where there is none."""
    null = present == 0
    counts = np.where(null, 1, present)
    if summed.kind == "float":
        with np.errstate(invalid="ignore", over="ignore"):
            return pa.array(_one_nan(_floats(slot) / counts), mask=null)
    totals = narrow_sums(slot)
    if totals is None:
        return _one_by_one(slot, present, summed, type_, where)
    if type_.kind != "decimal":
        if not _within(totals, _EXACT) or not _within(counts, _EXACT):
            return _one_by_one(slot, present, summed, type_, where)
        return pa.array(totals / counts, mask=null)
    assert type_.scale is not None
    assert summed.scale is not None
    factor = 2 * 10 ** (type_.scale - summed.scale)
    if not _within(totals, (_HALF - 1) // factor) or not _within(counts, _HALF):
        return _one_by_one(slot, present, summed, type_, where)
    rounded = (np.abs(totals) * factor + np.abs(counts)) // (2 * np.abs(counts))
    shown = np.where((totals < 0) == (counts < 0), rounded, -rounded)
    return _decimals(_signed(shown), null, type_, where)


def parts(slot: Any, present: Codes, type_: Type) -> pa.Array:
    """Totals as one shard hands them to others."""
    if type_.kind == "decimal" and not isinstance(slot, list):
        return _decimals(_two_words(slot), present == 0, type_, "a total")
    pairs = zip(exact_sums(slot), present.tolist(), strict=True)
    return pa.array([part_value(total, type_) if n else None for total, n in pairs], arrow_type(type_))


def _floats(slot: Any) -> Floats:
    """Sums of floats, which may come as they are, rounded."""
    return np.array(list(map(float, exact_sums(slot)))) if isinstance(slot, list) else slot.astype(np.float64)


def _one_nan(numbers: Floats) -> Floats:
    """The numbers, with one form of NaN and of zero."""
    shown = numbers + 0.0
    undefined = np.isnan(shown)
    if undefined.any():
        shown[undefined] = np.nan
    return shown


def _one_by_one(slot: Any, present: Codes, summed: Type, type_: Type, where: str) -> pa.Array:
    pairs = zip(whole_sums(slot), present.tolist(), strict=True)
    shown = [average(total, n, summed, type_, where) if n else None for total, n in pairs]
    return pa.array(shown, arrow_type(type_))


def _within(numbers: Codes, most: int) -> bool:
    return not len(numbers) or (-most <= int(numbers.min()) and int(numbers.max()) <= most)


def _signed(numbers: Codes) -> Codes:
    """Numbers of one word in two, the low one first."""
    return np.stack([numbers, numbers >> 63], axis=1)


def _two_words(slot: Any) -> Any:
    """Wide sums in two words each; a list of whole numbers if one has more."""
    low = narrow_sums(slot)
    if low is not None:
        return _signed(low)
    if slot.ndim == 2 and all(bool((slot[:, i] == slot[:, 1] >> 63).all()) for i in range(2, slot.shape[1])):
        return np.ascontiguousarray(slot[:, :2])
    return whole_sums(slot)


def _decimals(words: Any, null: npt.NDArray[np.bool_], type_: Type, where: str) -> pa.Array:
    """Decimals of so many smallest units; DataError if one has too many digits."""
    if isinstance(words, list) or not _within(words[:, 1], _HIGH - 1):
        whole = words if isinstance(words, list) else whole_sums(words)
        values = [decimal_value(total, type_, where) for total in whole]
        return pa.array(values, arrow_type(type_), mask=null)
    return decimal_array(words, null if null.any() else None, arrow_type(type_))
