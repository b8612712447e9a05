"""Aggregates of all values of a group: how views write them, what they take and give, and their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_, xor
from typing import Any

from ivme.query.types import Type

FLOAT = Type("float")
_NUMBERS = ("int", "float", "decimal")


@dataclass(frozen=True, slots=True)
class Fold:
    """An aggregate: its text, the kinds it takes (all if there are none), its type and its value.

    `type` is None if the value has the type of the argument. `value` gets the values in order, NULL left out, one at
    least.
    """

    spelled: str
    takes: tuple[str, ...]
    type: Type | None
    value: Callable[[Sequence[Any]], Any]


def _median(values: Sequence[Any]) -> float:
    below, above = float(values[(len(values) - 1) // 2]), float(values[len(values) // 2])
    return below if below == above else 0.5 * below + 0.5 * above


def _disc(values: Sequence[Any]) -> float:
    return float(values[max(0, math.ceil(len(values) * 0.3) - 1)])


def _mode(values: Sequence[Any]) -> Any:
    counts: dict[Any, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return max(counts, key=lambda value: counts[value])


FOLDS = {
    "bool_and": Fold("BOOL_AND({})", ("bool",), Type("bool"), all),
    "bool_or": Fold("SOME({})", ("bool",), Type("bool"), any),
    "any_value": Fold("ANY_VALUE({})", (), None, lambda values: values[0]),
    "median": Fold("MEDIAN({})", _NUMBERS, FLOAT, _median),
    "percentile_disc": Fold("PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY {})", _NUMBERS, FLOAT, _disc),
    "mode": Fold("MODE({})", (), None, _mode),
    "bit_and": Fold("BIT_AND({})", ("int",), Type("int"), lambda values: reduce(and_, values)),
    "bit_or": Fold("BIT_OR({})", ("int",), Type("int"), lambda values: reduce(or_, values)),
    "bit_xor": Fold("BIT_XOR({})", ("int",), Type("int"), lambda values: reduce(xor, values)),
    "string_agg": Fold("STRING_AGG({}, '; ')", ("string",), Type("string"), "; ".join),
    "string_agg_down": Fold(
        "LISTAGG({0}, '') WITHIN GROUP (ORDER BY {0} DESC)",
        ("string",),
        Type("string"),
        lambda values: "".join(reversed(values)),
    ),
    "max_by": Fold("MAX_BY({0}, {0})", (), None, lambda values: values[-1]),
}
