"""The aggregates, one entry of `AGGREGATES` each: what payloads carry for it, its type, and its value over a group.

To add one that is computed from counts, sums and sums of squares, write its entry, and a function of the totals of a
group if there is none yet (`query/totals.py`); to add one of all values of a group in order, one in `query/folds.py`.
`query/spellings.py` says how aggregates are written. Everything else is read off the tables: the slots of payloads,
what shards send each other, what is read over nothing. CONTRIBUTING.md has the scenario.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import and_, or_
from typing import TYPE_CHECKING, Any

from ivme.query import folds
from ivme.query import paired_totals as paired
from ivme.query.aggregate_function import AggregateFunction, Finish
from ivme.query.totals import average, part_value, squared_deviations, standard_deviation, sum_value, variance
from ivme.query.types import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from ivme.query.model import Aggregate, Query

_INT, _FLOAT, _BOOL, _STRING = Type("int"), Type("float"), Type("bool"), Type("string")
_MAX_DIGITS = 38
_NARROW_DIGITS = 19
"""Up to so many digits a decimal times any 64-bit count fits 128 bits, and its square 128 bits."""

_NUMBERS = ("int", "float", "decimal")


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


def _array_type(type_: Type) -> Type:
    return Type("array", element=type_)


def _same(type_: Type) -> Type:
    return type_


def _float(_: Type) -> Type:
    return _FLOAT


def _sum(_n: int, sums: Sequence[Any], _type: Type, shown: Type, where: str) -> Any:
    return sum_value(sums[0], shown, where)


def _total(_n: int, sums: Sequence[Any], *_: object) -> float:
    return float(sums[0])


def _mean(n: int, sums: Sequence[Any], type_: Type, shown: Type, where: str) -> Any:
    return average(sums[0], n, type_, shown, where)


def _spread(value: Callable[..., float | None], *, population: bool) -> Finish:
    return lambda n, sums, type_, _shown, _where: value(n, sums[0], sums[1], type_.scale or 0, population=population)


_SPREADS = {
    "var_samp": _spread(variance, population=False),
    "stddev_samp": _spread(standard_deviation, population=False),
    "var_pop": _spread(variance, population=True),
    "stddev_pop": _spread(standard_deviation, population=True),
}

_OF_SUMS = (
    AggregateFunction("count", lambda _: _INT, ("count",), kernel="count", over_nothing=0),
    AggregateFunction("sum", _sum_type, ("count", "sum"), _sum, "sum", parts=("exact_sum",), takes=_NUMBERS),
    AggregateFunction("avg", _mean_type, ("count", "sum"), _mean, "mean", parts=("exact_sum", "count"), takes=_NUMBERS),
    *(
        AggregateFunction(
            *(name, _deviation_type, ("count", "sum", "square"), finish, name),
            parts=("exact_sum", "exact_square", "count"),
            takes=_NUMBERS,
        )
        for name, finish in _SPREADS.items()
    ),
    AggregateFunction(
        *("bool_and", lambda _: _BOOL, ("count", "sum"), lambda n, sums, *_: sums[0] == n, "all"),
        parts=("exact_sum", "count"),
    ),
    AggregateFunction(
        *("bool_or", lambda _: _BOOL, ("count", "sum"), lambda _n, sums, *_: bool(sums[0]), "any"),
        parts=("exact_sum", "count"),
    ),
    AggregateFunction(
        "exact_sum", exact_sum_type, ("count", "exact_sum"), lambda _n, sums, _t, shown, _w: part_value(sums[0], shown)
    ),
    AggregateFunction(
        *("exact_square", lambda _: Type("binary"), ("count", "square")),
        lambda _n, sums, _t, shown, _w: part_value(sums[0], shown),
    ),
)
"""BOOL_AND and BOOL_OR add up truth values as 0 and 1. The last two are for shards, which send them to each other."""

_PAIRED = {
    "covar_pop": paired.covariance_population,
    "covar_samp": paired.covariance_sample,
    "corr": paired.correlation,
    "regr_slope": paired.slope,
    "regr_intercept": paired.intercept,
    "regr_r2": paired.determination,
    "regr_sxy": paired.products_of_deviations,
}
_PAIRED_SLOTS = ("count", "sum", "partner sum", "square", "partner square", "product")

_OF_PAIRS = (
    AggregateFunction("sum_product", _sum_type, ("joint count", "joint sum"), _sum, "sum", is_additive=False),
    AggregateFunction("avg_product", _mean_type, ("joint count", "joint sum"), _mean, "mean", is_additive=False),
    AggregateFunction("sum_of_squares", _float, ("count", "square"), _total, is_additive=False),
    AggregateFunction("sum_of_pairs", _float, ("count", "product"), _total, is_additive=False),
    AggregateFunction("sum_of_joint_pairs", _float, ("joint count", "joint sum"), _total, is_additive=False),
    *(
        AggregateFunction(name, _float, _PAIRED_SLOTS, paired.finish_with(value), is_additive=False)
        for name, value in _PAIRED.items()
    ),
    AggregateFunction(
        *("squared_deviations", _float, ("count", "sum", "square")),
        lambda n, sums, *_: squared_deviations(n, sums[0], sums[1], 0),
        parts=("exact_sum", "exact_square", "count"),
    ),
)
"""All over columns of floats, but for the first two, which are of products of columns of two tables, whole numbers or
decimals: SUM(r.a * t.d). The next three are for covariance rings (`covariance_view.py`). `squared_deviations` of one
column is REGR_SXX and REGR_SYY."""


def _of_values(name: str, type_: Callable[[Type], Type | None], fold: Any, *takes: str) -> AggregateFunction:
    return AggregateFunction(name, type_, reads="values", fold=fold, takes=takes, is_additive=False)


_OF_VALUES = (
    AggregateFunction("min", _same, reads="min"),
    AggregateFunction("max", _same, reads="max"),
    AggregateFunction("count_distinct", lambda _: _INT, over_nothing=0, reads="count_distinct"),
    AggregateFunction("max_by", _same, reads="max", fold=folds.of_last_part, parts=("max",)),
    AggregateFunction("min_by", _same, reads="min", fold=folds.of_last_part, parts=("min",)),
    _of_values("string_agg", lambda _: _STRING, folds.joined),
    AggregateFunction(
        "array_agg", _array_type, reads="values", fold=folds.collected, is_additive=False, over_nothing=()
    ),
    AggregateFunction(
        "percentile_cont", _float, reads="percentile", fold=folds.continuous, takes=_NUMBERS, is_additive=False
    ),
    AggregateFunction(
        "percentile_disc", _float, reads="percentile", fold=folds.discrete, takes=_NUMBERS, is_additive=False
    ),
    _of_values("mode", _same, folds.mode),
    _of_values("bit_and", _same, folds.bits(and_), "int"),
    _of_values("bit_or", _same, folds.bits(or_), "int"),
    _of_values("bit_xor", _same, folds.exclusive_bits, "int"),
    _of_values("sum_distinct", _sum_type, folds.of_distinct(_sum), *_NUMBERS),
    _of_values("avg_distinct", _mean_type, folds.of_distinct(_mean), *_NUMBERS),
    *(
        _of_values(f"{name}_distinct", _deviation_type, folds.of_distinct(finish, squares=True), *_NUMBERS)
        for name, finish in _SPREADS.items()
    ),
)

AGGREGATES: Mapping[str, AggregateFunction] = {each.name: each for each in (*_OF_SUMS, *_OF_PAIRS, *_OF_VALUES)}


def is_keyed(aggregate: Aggregate) -> bool:
    """Whether an aggregate is over keys (`order_key`), of which it shows the last parts."""
    return aggregate.function in ("max_by", "min_by") or (
        aggregate.function == "array_agg" and bool(aggregate.options[0])
    )


LISTED = "COUNT, SUM, AVG, MIN, MAX, STDDEV or VARIANCE"
"""How messages name some aggregates; the documentation has all of them."""

_SUM_SLOTS = {"int": "i128", "float": "f64"}
_SQUARE_SLOTS = {"int": "i192", "float": "f64", "decimal": "d192"}

JOINT = "joint "
"""How slots, their types and lifts are named that hold products of values of several tables."""

SlotKey = tuple[str, ...]
"""A slot of payloads: what is added up, and of which variable; of a product, of which two."""


def slots_of(aggregate: Aggregate) -> tuple[SlotKey, ...]:
    """The slots that an aggregate is computed from, how many values are not NULL first."""
    variable, partner = aggregate.variable, aggregate.partner
    if variable is None:
        return ()
    found: list[SlotKey] = []
    for slot in AGGREGATES[aggregate.function].slots:
        if slot == "product" or slot.startswith(JOINT):
            found.append((slot, variable, str(partner)))
        elif slot.startswith("partner "):
            found.append((slot.removeprefix("partner "), str(partner)))
        else:
            found.append((slot, variable))
    return tuple(found)


def is_joint(aggregate: Aggregate) -> bool:
    """Whether an aggregate is over products of values of two tables."""
    return any(slot.startswith(JOINT) for slot in aggregate.definition.slots)


def payload_slots(query: Query) -> tuple[SlotKey, ...]:
    """What payloads carry beside the count: for each argument of an aggregate that has slots, those."""
    return tuple(dict.fromkeys(slot for aggregate in query.aggregates for slot in slots_of(aggregate)))


def slot_type(slot: str, type_: Type) -> str:
    """The kernel's type for a slot: wide enough for the values of any group whose count fits 63 bits."""
    if slot.startswith(JOINT):
        of_sums = {"decimal": "d192", "float": "f64"}.get(type_.kind, "i192")
        return JOINT + ("i64" if slot == f"{JOINT}count" else of_sums)
    if slot == "count":
        return "i64"
    if slot == "product":
        assert type_.kind == "float", "products are of floats"
        return "f64"
    if slot == "square":
        return _SQUARE_SLOTS[type_.kind]
    if type_.kind != "decimal":
        return _SUM_SLOTS[type_.kind]
    return "d128" if (type_.precision or 0) <= _NARROW_DIGITS else "d192"


def reads_exactly(slots: Sequence[SlotKey]) -> bool:
    """Whether sums of floats are read without rounding: something is computed from them, or shards add them up."""
    return any(slot[0] in ("exact_sum", "square", "product") for slot in slots)
