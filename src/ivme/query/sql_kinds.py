"""What kind of value an expression has, as far as the declared columns tell; None where they do not."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from ivme.query.expression import Call, ColumnRef, Expression, Literal
from ivme.query.functions import ARITHMETIC, COMPARISONS, FUNCTIONS, NUMBERS
from ivme.query.inference import literal_type, valued_arguments
from ivme.query.types import is_nested_kind

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
    if isinstance(expression, Literal) and isinstance(expression.value, tuple):
        return None if not expression.value else str(literal_type(expression.value))
    if isinstance(expression, Literal):
        return next((kind for type_, kind in _LITERALS if isinstance(expression.value, type_)), None)
    function = expression.definition
    if expression.function == "cast_nested":
        assert isinstance(expression.arguments[1], Literal)
        return str(expression.arguments[1].value)
    if function.type is not None or function.gives.startswith("decimal"):
        return "decimal" if function.type is None else function.type.kind
    return _widest([kind_of(argument, column_kind) for argument in valued_arguments(expression)], expression.function)


def _widest(kinds: list[str | None], function: str) -> str | None:
    known = {kind for kind in kinds if kind is not None}
    if function == "divide" and known == {"int"} and None not in kinds:
        return "float"
    if function in ("floor", "ceil") and known == {"float"}:
        return "int"
    if len(known) == 1 and (None not in kinds or FUNCTIONS[function].gives == "branches"):
        return known.pop()
    return max(known, key=NUMBERS.index) if known and known <= set(NUMBERS) and None not in kinds else None


def are_equatable(left: str | None, right: str | None) -> bool:
    """Whether an equality between columns of these kinds is one that joins: of numbers, or of dates and timestamps."""
    if left is None or right is None or left == right:
        return True
    return {left, right} <= set(NUMBERS) or {left, right} == {"date", "timestamp"}


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What is wrong with the kinds of an expression's parts, and what to write instead."""

    message: str
    instead: str


_CAST_ONE = "CAST one of them"
_IN_NUMBERS = {
    **dict.fromkeys(("date", "timestamp"), "use YEAR, MONTH or DAY of it"),
    "binary": "use LENGTH of it, or CAST it to a string",
}
"""How a number is made of a value that no CAST makes one of."""


def mismatch(expression: Expression, column_kind: Callable[[str], str | None]) -> Mismatch | None:
    """The first part of an expression that would fail on every row, as far as kinds are known; None if none would."""
    if not isinstance(expression, Call):
        return None
    for argument in expression.arguments:
        inner = mismatch(argument, column_kind)
        if inner is not None:
            return inner
    kinds = [kind_of(argument, column_kind) for argument in expression.arguments]
    if expression.function not in _WHOLE and any(is_nested_kind(kind) for kind in kinds):
        place = next(place for place, kind in enumerate(kinds) if is_nested_kind(kind))
        return _wrong_whole(expression, place, kinds[place])
    if expression.function in ARITHMETIC:
        wrong = next((kind for kind in kinds if kind not in (None, *NUMBERS)), None)
        return None if wrong is None else _wrong_number(expression, kinds.index(wrong), wrong)
    if expression.function in COMPARISONS:
        wrong = next((kind for kind in kinds[1:] if not _are_comparable(kinds[0], kind)), None)
        return None if wrong is None else Mismatch(f"{expression} compares {kinds[0]} with {wrong}", cast_hint(*kinds))
    return (
        _wrong_condition(expression, kinds) or _wrong_branch(expression, column_kind) or _not_taken(expression, kinds)
    )


_STORE = "store what you need of it as a separate column before loading"


def cast_hint(*kinds: str | None, instead: str = _CAST_ONE) -> str:
    """What to do about values of different types: there are no casts of arrays and structs."""
    return "give both columns one type before loading" if any(map(is_nested_kind, kinds)) else instead


_WHOLE = (*COMPARISONS, "is_null", "case", "coalesce", "nullif", "greatest", "least", "fails", "cast_nested")
"""What takes arrays and structs."""


def _wrong_whole(call: Call, place: int, kind: str | None) -> Mismatch:
    value = call.arguments[place]
    message = f"{call} computes with {value} of type {kind}, which is carried, compared and counted as a whole"
    return Mismatch(message, _STORE)


def _wrong_number(call: Call, place: int, kind: str) -> Mismatch:
    instead = _IN_NUMBERS.get(kind, f"CAST {call.arguments[place]} to a number")
    return Mismatch(f"{call} computes with a value of type {kind}", instead)


def _wrong_condition(call: Call, kinds: list[str | None]) -> Mismatch | None:
    """A value where a condition must stand."""
    places = range(len(kinds)) if call.function in ("and", "or", "not") else ()
    if call.function == "case":
        places = range(0, len(kinds) - 1, 2)
    wrong = next((place for place in places if kinds[place] not in (None, "bool")), None)
    if wrong is None:
        return None
    value, kind = call.arguments[wrong], kinds[wrong]
    needs = {"not": "NOT needs a condition", "case": "WHEN needs a condition"}
    message = f"{value} is of type {kind}; {needs.get(call.function, f'{call.function.upper()} needs conditions')}"
    return Mismatch(message, compared(str(value), kind))


def compared(value: str, kind: str | None) -> str:
    """What to write in place of a value where a condition must stand.

    >>> compared("a", "int"), compared("a", "date")
    ('compare it, for example a <> 0', 'compare it, for example a IS NOT NULL')
    """
    example = "<> 0" if kind in NUMBERS else "<> ''" if kind == "string" else "IS NOT NULL"
    return f"compare it, for example {value} {example}"


def _wrong_branch(call: Call, column_kind: Callable[[str], str | None]) -> Mismatch | None:
    """Values of a CASE or COALESCE that have no type in common."""
    if call.definition.gives != "branches":
        return None
    known = [kind for kind in (kind_of(value, column_kind) for value in valued_arguments(call)) if kind is not None]
    wrong = next((kind for kind in known if not are_equatable(known[0], kind)), None)
    hint = cast_hint(known[0] if known else None, wrong)
    return None if wrong is None else Mismatch(f"{call} has values of type {known[0]} and {wrong}", hint)


def _not_taken(call: Call, kinds: list[str | None]) -> Mismatch | None:
    """A function of a value that it does not take."""
    function = call.definition
    for place, (value, kind) in enumerate(zip(call.arguments, kinds, strict=True)):
        taken = function.kinds(place)
        if kind is not None and taken and kind not in taken:
            message = f"{call} needs {_one_of(taken)}; {value} is of type {kind}"
            return Mismatch(message, _instead(call.function, value, kind, taken))
    return None


def _instead(function: str, value: Expression, kind: str, taken: tuple[str, ...]) -> str:
    if function == "cast_bool":
        return compared(str(value), kind)
    if "date" in taken:
        return "use a date, or a string such as '2026-01-31'"
    if "string" not in taken:
        return _IN_NUMBERS.get(kind, f"CAST {value} to {_one_of(taken[:1])}")
    return (
        _IN_NUMBERS.get(kind, f"CAST {value} to a string first")
        if "int" in taken
        else f"CAST {value} to a string first"
    )


def _one_of(kinds: tuple[str, ...]) -> str:
    """Kinds as a text, with one name for all numbers.

    >>> _one_of(("date", "timestamp", "string"))
    'a date, timestamp or string'
    """
    *others, last = dict.fromkeys("number" if kind in NUMBERS else kind for kind in kinds)
    return f"a {', '.join(others)} or {last}" if others else f"a {last}"


def _are_comparable(left: str | None, right: str | None) -> bool:
    """Whether `evaluate` compares values of these kinds: numbers, dates with timestamps or with their text."""
    if left is None or right is None or left == right:
        return True
    groups: tuple[set[str], ...] = (set(NUMBERS), {"date", "timestamp"}, {"date", "string"}, {"timestamp", "string"})
    return any({left, right} <= group for group in groups)
