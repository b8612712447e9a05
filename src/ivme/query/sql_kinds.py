"""What kind of value an expression has, as far as the declared columns tell; None where they do not."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal

from ivme.query.expression import Call, ColumnRef, Expression, Literal
from ivme.query.functions import ARITHMETIC, COMPARISONS, FUNCTIONS, NUMBERS

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


def kind_of(expression: Expression, column_kind: Callable[[str], str | None]) -> str | None:
    """One of the eight kinds of `types.KINDS`, given the kinds of the columns."""
    if isinstance(expression, ColumnRef):
        return column_kind(expression.name)
    if isinstance(expression, Literal):
        return next((kind for type_, kind in _LITERALS if isinstance(expression.value, type_)), None)
    if expression.function.startswith("cast_"):
        return expression.function.removeprefix("cast_")
    fixed = FUNCTIONS[expression.function].type
    if fixed is not None:
        return fixed.kind
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
    return max(known, key=NUMBERS.index) if known and known <= set(NUMBERS) and None not in kinds else None


def are_equatable(left: str | None, right: str | None) -> bool:
    """Whether an equality between columns of these kinds is one that joins: of numbers, or of dates and timestamps."""
    if left is None or right is None or left == right:
        return True
    return {left, right} <= set(NUMBERS) or {left, right} == {"date", "timestamp"}


def mismatch(expression: Expression, column_kind: Callable[[str], str | None]) -> str | None:
    """What is wrong with the kinds of an expression's parts, as far as they are known; None if nothing is."""
    if not isinstance(expression, Call):
        return None
    for argument in expression.arguments:
        inner = mismatch(argument, column_kind)
        if inner is not None:
            return inner
    kinds = [kind_of(argument, column_kind) for argument in expression.arguments]
    if expression.function in ARITHMETIC:
        wrong = next((kind for kind in kinds if kind not in (None, *NUMBERS)), None)
        return None if wrong is None else f"{expression} computes with a value of type {wrong}"
    if expression.function in COMPARISONS:
        wrong = next((kind for kind in kinds[1:] if not _are_comparable(kinds[0], kind)), None)
        return None if wrong is None else f"{expression} compares {kinds[0]} with {wrong}"
    return (
        _wrong_condition(expression, kinds) or _wrong_branch(expression, column_kind) or _not_taken(expression, kinds)
    )


def _wrong_condition(call: Call, kinds: list[str | None]) -> str | None:
    """What stands where a condition must."""
    places = range(len(kinds)) if call.function in ("and", "or", "not") else ()
    if call.function == "case":
        places = range(0, len(kinds) - 1, 2)
    wrong = next((place for place in places if kinds[place] not in (None, "bool")), None)
    return None if wrong is None else f"{call.arguments[wrong]} is of type {kinds[wrong]}, and no condition"


def _wrong_branch(call: Call, column_kind: Callable[[str], str | None]) -> str | None:
    """Values of a CASE or COALESCE that have no type in common."""
    if call.function not in ("case", "coalesce"):
        return None
    known = [kind for kind in (kind_of(value, column_kind) for value in _valued(call)) if kind is not None]
    wrong = next((kind for kind in known if not are_equatable(known[0], kind)), None)
    return None if wrong is None else f"{call} is {known[0]} or {wrong}"


def _not_taken(call: Call, kinds: list[str | None]) -> str | None:
    taken = FUNCTIONS[call.function].takes
    if not taken or kinds[0] is None or kinds[0] in taken:
        return None
    return f"{call} is not possible: {call.arguments[0]} is of type {kinds[0]}"


def _are_comparable(left: str | None, right: str | None) -> bool:
    """Whether `evaluate` compares values of these kinds: numbers, dates with timestamps or with their text."""
    if left is None or right is None or left == right:
        return True
    groups: tuple[set[str], ...] = (set(NUMBERS), {"date", "timestamp"}, {"date", "string"}, {"timestamp", "string"})
    return any({left, right} <= group for group in groups)
