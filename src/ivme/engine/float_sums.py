"""Exact sums of floats over many frames at once, rounded once: what `algebra.exact` does for one sum at a time.

The floats are whole numbers of the smallest power of two among them. These are cut into limbs of 32 bits, whose running
sums NumPy adds up in 64 bits; a frame's sum is the difference of two running sums, put together as one of Python's
whole numbers, which divides with one rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ivme.algebra.exact import ExactSum
from ivme.engine.codes.dictionary import Codes

Floats = npt.NDArray[np.float64]

_LIMB = 32
_LOW = np.uint64(2**_LIMB - 1)
_MANTISSA = 53
_SMALLEST = -1074
_WIDEST = 400
"""The largest distance of exponents, in bits, for which limbs are made: beyond it there would be too many."""
_MOST_COPIES = 2**28
"""So many limbs of 34 bits are added up in 64 bits."""


def frame_sums(
    values: Floats, copies: Codes, first: Codes, last: Codes, before: Sequence[ExactSum], numbers: Codes
) -> Floats | None:
    """The rounded sum of the values from `first` to `last` of each frame, and of what was `before` its partition.

    `before` has a sum for each of the partitions, which `numbers` has for each frame, or is empty. None if a value is
    not finite, or values are too far apart or too many.

    >>> values, places = np.array([0.1, 1e16, -1e16, 0.2]), np.arange(5)
    >>> frame_sums(values, np.ones(4, np.int64), places[:1], places[4:], [], places[:1]).tolist()
    [0.30000000000000004]
    """
    if not np.isfinite(values).all() or int(copies.sum()) > _MOST_COPIES or not all(each.is_finite for each in before):
        return None
    mantissas, exponents = np.frexp(values)
    whole = (np.abs(mantissas) * 2.0**_MANTISSA).astype(np.uint64)
    there = whole != 0
    powers = exponents[there].astype(np.int64) - _MANTISSA
    least = int(powers.min()) if len(powers) else 0
    if len(powers) and (least < _SMALLEST or int(powers.max()) - least > _WIDEST):
        return None
    shifts = np.where(there, exponents.astype(np.int64) - _MANTISSA - least, 0)
    totals = [0] * len(first)
    for place, limb in enumerate(_limbs(whole, shifts)):
        running = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.where(values < 0, -limb, limb) * copies)])
        added = (running[last] - running[first]).tolist()
        totals = [total + (more << _LIMB * place) for total, more in zip(totals, added, strict=True)]
    return _rounded(totals, least, before, numbers)


def _limbs(whole: npt.NDArray[np.uint64], shifts: Codes) -> list[Codes]:
    """The limbs of the shifted mantissas, lowest first; a limb may be as large as 2^33."""
    count = int(shifts.max(initial=0)) // _LIMB + 3
    found = [np.zeros(len(whole), np.int64) for _ in range(count)]
    places, bits = shifts // _LIMB, (shifts % _LIMB).astype(np.uint64)
    low, high = (whole & _LOW) << bits, (whole >> np.uint64(_LIMB)) << bits
    parts: tuple[Any, ...] = (low & _LOW, (low >> np.uint64(_LIMB)) + (high & _LOW), high >> np.uint64(_LIMB))
    for start in np.unique(places).tolist():
        mine = np.flatnonzero(places == start)
        for offset, part in enumerate(parts):
            found[start + offset][mine] += part[mine].astype(np.int64)
    return found


def _rounded(totals: list[int], least: int, before: Sequence[ExactSum], numbers: Codes) -> Floats:
    """The floats nearest to whole numbers of 2^least, with what was before."""
    if any(before):
        units = [each.units for each in before]
        shift = least - _SMALLEST
        whole = [(total << shift) + units[number] for total, number in zip(totals, numbers.tolist(), strict=True)]
        return _divided(whole, 1 << -_SMALLEST)
    return _divided(totals, 1 << -least) if least < 0 else _divided([total << least for total in totals], 1)


def _divided(totals: list[int], divisor: int) -> Floats:
    try:
        return np.array([total / divisor for total in totals], np.float64)
    except OverflowError:
        return np.array([float(ExactSum(total * ((1 << -_SMALLEST) // divisor))) for total in totals], np.float64)
