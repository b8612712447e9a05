"""Whole columns of aggregates finished by the kernel, from the totals of groups to the codes of what is shown.

`query.totals` says what that is, value by value. It also takes the columns that the kernel leaves: with a number that
is longer than a word, of payloads in plain Python, and of totals that shards hand to each other as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ivme.engine.backend import Codes
from ivme.engine.codes.decimal_domains import LARGE_DECIMALS
from ivme.engine.codes.dictionary import NULL_CODE
from ivme.engine.codes.value_check import INT_LIMIT
from ivme.query.aggregate_function import AggregateFunction
from ivme.query.types import Type

try:
    from ivme import _kernel as kernel
except ImportError:
    kernel = None  # type: ignore[assignment]

NativeValue = tuple[str, int, int, int, int, int]
"""How the kernel finishes an aggregate: `ChainValue` in kernel/view_chain.hpp."""

_MOST_DIGITS = 15
"""By so many digits a mean may be finer than its values."""


def finished(
    function: AggregateFunction, sums: Sequence[Any], present: Codes, summed: Type, shown: Type
) -> Codes | None:
    """The codes of an aggregate over values of type `summed`, shown in another; None if it is to be done by value.

    `sums` are its slots but for the count. `present` is how many values a group has, NULL excluded: without any, the
    aggregate is NULL.
    """
    if function.kernel == "count":
        return present
    if function.kernel in _TRUTHS and not isinstance(sums[0], list):
        return _truth(function.kernel, sums[0], present)
    if kernel is None or not function.kernel or any(isinstance(s, list) or s.dtype == np.object_ for s in sums):
        return None
    if summed.kind == "float":
        return kernel.float_codes(sums[0], present, function.kernel == "mean") if len(sums) == 1 else None
    return _FINISHED[function.kernel](sums, present, summed, shown)


def native_value(
    function: AggregateFunction, present: int, sums: Sequence[int], slots: Sequence[str], summed: Type, shown: Type
) -> NativeValue | None:
    """How `_kernel.ViewChain` finishes an aggregate, given the numbers of its slots; None if it does not."""
    starts = [1 + sum(map(_words, slots[:number])) for number in range(len(slots))]
    if function.kernel == "count":
        return "n", 0, 0, starts[present], 0, 0
    if function.kernel not in ("sum", "mean") or len(sums) != 1 or slots[sums[0]].startswith("joint"):
        return None
    place, words = starts[sums[0]], _words(slots[sums[0]])
    if summed.kind == "float":
        return "g" if function.kernel == "mean" else "f", place, words, starts[present], 0, 0
    if function.kernel == "sum":
        return "s", place, words, starts[present], INT_LIMIT if shown.kind == "int" else LARGE_DECIMALS - 1, 0
    if shown.kind != "decimal":
        return "m", place, words, starts[present], 0, 0
    finer = (shown.scale or 0) - (summed.scale or 0)
    if not 0 <= finer <= _MOST_DIGITS:
        return None
    return "d", place, words, starts[present], LARGE_DECIMALS - 1, 10**finer


def _words(slot: str) -> int:
    """How many words a slot has in the kernel's payloads."""
    kind = slot.removeprefix("joint ")
    return 1 if kind == "i64" or slot == "joint f64" else 2 if kind.endswith("128") else 3


def _sum(sums: Sequence[Any], present: Codes, _: Type, shown: Type) -> Codes | None:
    return kernel.sum_codes(sums[0], present, INT_LIMIT if shown.kind == "int" else LARGE_DECIMALS - 1)


def _mean(sums: Sequence[Any], present: Codes, summed: Type, shown: Type) -> Codes | None:
    if shown.kind != "decimal":
        return kernel.mean_codes(sums[0], present)
    assert shown.scale is not None
    assert summed.scale is not None
    finer = shown.scale - summed.scale
    if not 0 <= finer <= _MOST_DIGITS:
        return None
    return kernel.decimal_mean_codes(sums[0], present, 10**finer, LARGE_DECIMALS - 1)


def _variance(name: str, sums: Sequence[Any], present: Codes, summed: Type, _: Type) -> Codes | None:
    unit = 10 ** (2 * (summed.scale or 0))
    if unit > INT_LIMIT:
        return None
    return kernel.variance_codes(sums[0], sums[1], present, unit, name.startswith("stddev"), name.endswith("pop"))


_TRUTHS = ("all", "any")


def _truth(name: str, trues: Any, present: Codes) -> Codes:
    """Whether all or some of the values are true, from how many are: less than 2^63, so that the low word tells."""
    count = (trues if trues.ndim == 1 else trues[:, 0]).astype(np.int64)
    found = count == present if name == "all" else count != 0
    return np.where(present == 0, NULL_CODE, found.astype(np.int64))


_FINISHED: dict[str, Callable[[Sequence[Any], Codes, Type, Type], Codes | None]] = {
    "sum": _sum,
    "mean": _mean,
    **{name: partial(_variance, name) for name in ("var_samp", "var_pop", "stddev_samp", "stddev_pop")},
}
"""How the kernel finishes a column of whole numbers, by the names that the table of aggregates has."""
