"""Defaults and lists of parameters, as far as they depend on types."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from ivme.query.inference import literal_type
from ivme.query.model import Aggregate, Query, Value
from ivme.query.types import Type

COMBINED = ("count", "sum", "sum_product", "min", "max", "bool_and", "bool_or")
"""The aggregates over several lots of rows that are known from the aggregates of each."""

_TAKES = {"float": ("int", "decimal", "float"), "decimal": ("int", "decimal"), "timestamp": ("date", "timestamp")}
"""The kinds of constants that a parameter of some kind takes beside its own."""


def default_of(value: Value, type_: Type) -> Value:
    """A default as the parameter's type has it: a decimal is a float where that is requested, as Spark compares."""
    return float(value) if isinstance(value, Decimal) and type_.kind == "float" else value


def fits(value: Value, type_: Type) -> bool:
    """Whether a constant is a value of a type.

    >>> fits(1, Type("float")), fits("1", Type("int")), fits(Decimal("1.234"), Type("decimal", 6, 2))
    (True, False, False)
    """
    found = None if value is None else literal_type(value)
    if found is None:
        return value is None
    if isinstance(value, Decimal) and type_.kind == "decimal":
        exponent = value.normalize().as_tuple().exponent
        return isinstance(exponent, int) and -exponent <= (type_.scale or 0)
    return found.kind in _TAKES.get(type_.kind, (type_.kind,))


def not_combined(query: Query, types: Mapping[str, Type]) -> Aggregate | None:
    """An aggregate that runs across the members of a list, and is not known from those of each; None if there is none.

    Sums of floats are exact up to one rounding, which theirs would not be.
    """
    if not any(is_across for _, is_across in query.lists):
        return None
    for each in query.aggregates:
        is_float = each.function == "sum" and each.variable is not None and types[each.variable].kind == "float"
        if each.function not in COMBINED or is_float:
            return each
    return None
