"""What kind of value an expression has, as far as the declared columns tell; None where they do not."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal

from ivme.query.expression import FUNCTIONS, Call, ColumnRef, Expression, Literal

_LITERALS: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (int, "int"),
    (float, "float"),
    (Decimal, "decimal"),
    (str, "string"),
    (datetime.datetime, "timestamp"),
    (datetime.date, "date"),
    (bytes, "binary"),
)
_FIXED = {
    **dict.fromkeys(("length", "year", "month", "day"), "int"),
    **dict.fromkeys(("lower", "upper", "substring", "concat", "trim"), "string"),
}
_NUMBERS = ("int", "decimal", "float")


def kind_of(expression: Expression, column_kind: Callable[[str], str | None]) -> str | None:
    """One of the eight kinds of `types.KINDS`, given the kinds of the columns."""
    if isinstance(expression, ColumnRef):
        return column_kind(expression.name)
    if isinstance(expression, Literal):
        return next((kind for type_, kind in _LITERALS if isinstance(expression.value, type_)), None)
    if expression.function.startswith("cast_"):
        return expression.function.removeprefix("cast_")
    if FUNCTIONS[expression.function].predicate:
        return "bool"
    if expression.function in _FIXED:
        return _FIXED[expression.function]
    return _widest([kind_of(argument, column_kind) for argument in _valued(expression)], expression.function)


def _valued(call: Call) -> tuple[Expression, ...]:
    """The arguments that the kind of the result comes from."""
    if call.function == "case":
        return (*call.arguments[1::2], *(call.arguments[-1:] if len(call.arguments) % 2 else ()))
    return call.arguments[:1] if call.function in ("round", "nullif") else call.arguments


def _widest(kinds: list[str | None], function: str) -> str | None:
    known = {kind for kind in kinds if kind is not None}
    if function == "divide" and known == {"int"} and None not in kinds:
        return "float"
    if function in ("floor", "ceil") and known == {"float"}:
        return "int"
    if len(known) == 1 and (None not in kinds or function in ("case", "coalesce")):
        return known.pop()
    return max(known, key=_NUMBERS.index) if known and known <= set(_NUMBERS) and None not in kinds else None


def are_equatable(left: str | None, right: str | None) -> bool:
    """Whether equality of values of these kinds is the equality of the values as they are, without a cast.

    Floats and decimals are not: 0.1 as a double is no decimal.
    """
    if left is None or right is None or left == right:
        return True
    return {left, right} in ({"int", "decimal"}, {"int", "float"})


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq", "in", "nullif")
_ARITHMETIC = ("add", "subtract", "multiply", "divide", "modulo", "negate", "abs", "round", "floor", "ceil")


def mismatch(expression: Expression, column_kind: Callable[[str], str | None]) -> str | None:
    """What is wrong with the kinds of an expression's parts, as far as they are known; None if nothing is."""
    if not isinstance(expression, Call):
        return None
    for argument in expression.arguments:
        inner = mismatch(argument, column_kind)
        if inner is not None:
            return inner
    kinds = [kind_of(argument, column_kind) for argument in expression.arguments]
    if expression.function in _ARITHMETIC:
        wrong = next((kind for kind in kinds if kind not in (None, *_NUMBERS)), None)
        return None if wrong is None else f"{expression} computes with a value of type {wrong}"
    if expression.function in _COMPARISONS:
        wrong = next((kind for kind in kinds[1:] if not _are_comparable(kinds[0], kind)), None)
        return None if wrong is None else f"{expression} compares {kinds[0]} with {wrong}"
    return None


def _are_comparable(left: str | None, right: str | None) -> bool:
    """Whether `evaluate` compares values of these kinds: numbers, dates with timestamps or with their text."""
    if left is None or right is None or left == right:
        return True
    groups: tuple[set[str], ...] = (set(_NUMBERS), {"date", "timestamp"}, {"date", "string"}, {"timestamp", "string"})
    return any({left, right} <= group for group in groups)
