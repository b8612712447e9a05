"""Whole columns of SUM and AVG finished by the kernel, from the totals of groups to the codes of what is shown.

`totals` says what that is, value by value. It also takes the columns that the kernel leaves: with a number that is
longer than a word, of payloads in plain Python, and of totals that shards hand to each other as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ivme.engine.backend import Codes
from ivme.engine.codes.decimal_domains import LARGE_DECIMALS
from ivme.engine.codes.value_check import INT_LIMIT
from ivme.query.types import Type

try:
    from ivme import _kernel as kernel
except ImportError:
    kernel = None  # type: ignore[assignment]

_MOST_DIGITS = 15
"""By so many digits a mean may be finer than its values."""


def finished(function: str, slot: Any, present: Codes, summed: Type, shown: Type) -> Codes | None:
    """The codes of an aggregate over values of type `summed`, shown in another; None if it is to be done by value.

    `present` is how many values a group has, NULL excluded: without any, the aggregate is NULL.
    """
    if kernel is None or isinstance(slot, list) or slot.dtype == np.object_ or function not in ("sum", "avg"):
        return None
    if summed.kind == "float":
        return kernel.float_codes(slot, present, function == "avg")
    if function == "sum":
        return kernel.sum_codes(slot, present, INT_LIMIT if shown.kind == "int" else LARGE_DECIMALS - 1)
    if shown.kind != "decimal":
        return kernel.mean_codes(slot, present)
    assert shown.scale is not None
    assert summed.scale is not None
    finer = shown.scale - summed.scale
    if not 0 <= finer <= _MOST_DIGITS:
        return None
    return kernel.decimal_mean_codes(slot, present, 10**finer, LARGE_DECIMALS - 1)
