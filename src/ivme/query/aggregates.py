"""The aggregates, one entry of `AGGREGATES` each: what payloads carry for it, its type, and its value over a group.

To add one that is computed from counts, sums and sums of squares, write its entry, and a function of the totals of a
group if there is none yet (`query/totals.py`). Everything else is read off the table: the spellings in SQL and in
rules, the slots of payloads, what shards send each other, what is read over nothing. CONTRIBUTING.md has the scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ivme.query.totals import average, part_value, standard_deviation, sum_value, variance
from ivme.query.types import Type

if TYPE_CHECKING:
    from ivme.query.model import Query

_INT, _FLOAT = Type("int"), Type("float")
_MAX_DIGITS = 38
_NARROW_DIGITS = 19
"""Up to so many digits a decimal times any 64-bit count fits 128 bits, and its square 128 bits."""

Finish = Callable[[int, Sequence[Any], Type, Type, str], Any]
"""From how many values a group has, NULL excluded and one at least, and the totals of the other slots, to the value.

The types are those of what is added up and of what is shown; the text says where a value is that does not fit."""


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate function.

    `slots` are the totals that payloads carry for it: "count" of the values that are not NULL, "sum", and "square", the
    sum of the squares; "exact_sum" is a sum that is read without rounding. One without slots needs its values in order
    instead, so that its column counts as free when widths are computed. `type` is that of its value for one of its
    argument, None if it takes no such argument. `kernel` finishes whole columns (`engine/runtime/finishing.py`).
    `parts` are the aggregates that shards add up in its place. `nodes` are sqlglot's names for it, `words` those that
    rules know it by.
    """

    name: str
    type: Callable[[Type], Type | None]
    slots: tuple[str, ...] = ()
    finish: Finish | None = None
    kernel: str = ""
    over_nothing: int | None = None
    parts: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def is_ordered(self) -> bool:
        return not self.slots

    @property
    def is_numeric(self) -> bool:
        """Whether it adds up values, which then have to be numbers."""
        return len(self.slots) > 1


def exact_sum_type(type_: Type) -> Type:
    """The type of a sum as one shard hands it to others, wide enough for any: a decimal, or bytes."""
    precision, scale = (0, 0) if type_.kind == "int" else (type_.precision or 0, type_.scale or 0)
    narrow = type_.kind != "float" and precision <= _NARROW_DIGITS
    return Type("decimal", _MAX_DIGITS, scale) if narrow else Type("binary")


def _sum_type(type_: Type) -> Type:
    """A sum keeps the kind of what it sums; one of decimals has all 38 digits."""
    return Type("decimal", _MAX_DIGITS, type_.scale) if type_.kind == "decimal" else type_


def _mean_type(type_: Type) -> Type:
    """An average of decimals has four more digits after the point, rounded half up."""
    return Type("decimal", _MAX_DIGITS, min((type_.scale or 0) + 4, _MAX_DIGITS)) if type_.kind == "decimal" else _FLOAT


def _deviation_type(type_: Type) -> Type | None:
    """A float, as in Spark; squares of decimals of more digits do not fit what they are summed in."""
    return None if type_.kind == "decimal" and (type_.precision or 0) > _NARROW_DIGITS else _FLOAT


AGGREGATES: Mapping[str, AggregateFunction] = {
    each.name: each
    for each in (
        AggregateFunction(
            "count", lambda _: _INT, ("count",), over_nothing=0, nodes=("Count",), words=("count",), kernel="count"
        ),
        AggregateFunction(
            "sum",
            _sum_type,
            ("count", "sum"),
            lambda _n, sums, _type, shown, where: sum_value(sums[0], shown, where),
            "sum",
            parts=("exact_sum",),
            nodes=("Sum",),
            words=("sum",),
        ),
        AggregateFunction(
            "avg",
            _mean_type,
            ("count", "sum"),
            lambda n, sums, type_, shown, where: average(sums[0], n, type_, shown, where),
            "mean",
            parts=("exact_sum", "count"),
            nodes=("Avg",),
            words=("avg",),
        ),
        AggregateFunction("min", lambda type_: type_, nodes=("Min",), words=("min",)),
        AggregateFunction("max", lambda type_: type_, nodes=("Max",), words=("max",)),
        AggregateFunction("count_distinct", lambda _: _INT, over_nothing=0),
        AggregateFunction(
            "var_samp",
            _deviation_type,
            ("count", "sum", "square"),
            lambda n, sums, type_, _shown, _where: variance(n, sums[0], sums[1], type_.scale or 0),
            "variance",
            parts=("exact_sum", "exact_square", "count"),
            nodes=("Variance",),
            words=("var_samp", "variance"),
        ),
        AggregateFunction(
            "stddev_samp",
            _deviation_type,
            ("count", "sum", "square"),
            lambda n, sums, type_, _shown, _where: standard_deviation(n, sums[0], sums[1], type_.scale or 0),
            "deviation",
            parts=("exact_sum", "exact_square", "count"),
            nodes=("Stddev", "StddevSamp"),
            words=("stddev_samp", "stddev"),
        ),
        AggregateFunction(
            "exact_sum",
            exact_sum_type,
            ("count", "exact_sum"),
            lambda _n, sums, _type, shown, _where: part_value(sums[0], shown),
        ),
        AggregateFunction(
            "exact_square",
            lambda _: Type("binary"),
            ("count", "square"),
            lambda _n, sums, _type, shown, _where: part_value(sums[0], shown),
        ),
    )
}
"""The last two are not for users: shards send them to each other."""

WORDS = {word: each.name for each in AGGREGATES.values() for word in each.words}
"""The aggregates by the words that rules know them by."""

LISTED = "COUNT, SUM, AVG, MIN, MAX, STDDEV or VARIANCE"
"""How messages list the aggregates."""

_SUM_SLOTS = {"int": "i128", "float": "f64"}
_SQUARE_SLOTS = {"int": "i192", "float": "f64", "decimal": "d192"}


def payload_slots(query: Query) -> tuple[tuple[str, str], ...]:
    """What payloads carry beside the count: for each argument of an aggregate that has slots, those."""
    slots: dict[tuple[str, str], None] = {}
    for aggregate in query.aggregates:
        if aggregate.variable is not None:
            slots.update(dict.fromkeys((slot, aggregate.variable) for slot in AGGREGATES[aggregate.function].slots))
    return tuple(slots)


def slot_type(slot: str, type_: Type) -> str:
    """The kernel's type for a slot: wide enough for the values of any group whose count fits 63 bits."""
    if slot == "count":
        return "i64"
    if slot == "square":
        return _SQUARE_SLOTS[type_.kind]
    if type_.kind != "decimal":
        return _SUM_SLOTS[type_.kind]
    return "d128" if (type_.precision or 0) <= _NARROW_DIGITS else "d192"


def reads_exactly(slots: Sequence[tuple[str, str]]) -> bool:
    """Whether sums of floats are read without rounding: something is computed from them, or shards add them up."""
    return any(slot in ("exact_sum", "square") for slot, _ in slots)
