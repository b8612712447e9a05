"""Whether there may be rows for which an expression has no value, told from its functions and the types of columns."""

from __future__ import annotations

import datetime

from ivme.errors import ExpressionError
from ivme.query.expression import Call, ColumnRef, Expression, Literal, columns_of, evaluate
from ivme.query.functions.texts import LONGEST
from ivme.query.inference import type_of
from ivme.query.model import Table
from ivme.query.types import Type

_MOST_DIGITS = 38
_INT_DIGITS = 19
_INSTANTS = ("date", "timestamp")
_HARMLESS_CASTS = {
    "cast_int": ("int", "bool", "timestamp"),
    "cast_float": ("int", "float", "decimal", "bool", "timestamp"),
    "cast_string": ("int", "float", "decimal", "bool", "string", *_INSTANTS),
    "cast_bool": ("int", "float", "decimal", "bool"),
    **dict.fromkeys(("cast_date", "cast_timestamp"), _INSTANTS),
}
"""The kinds of values that these functions take without exception."""


def can_fail(expression: Expression, table: Table) -> bool:
    """Whether an expression may have no value for some row of the table; True in doubt.

    >>> from ivme.query.model import table
    >>> items = table("items", {"price": "decimal(12, 2)", "discount": "decimal(4, 2)", "n": "int"})
    >>> rebate = Call("subtract", (Literal(1), ColumnRef("discount")))
    >>> can_fail(Call("multiply", (ColumnRef("price"), rebate)), items)
    False
    >>> can_fail(Call("multiply", (ColumnRef("n"), ColumnRef("n"))), items)
    True
    """
    if not isinstance(expression, Call) or expression.function == "fails":
        return False
    if any(can_fail(argument, table) for argument in expression.arguments):
        return True
    if next(columns_of(expression), None) is None:
        return not _is_safe(expression)
    return not _is_total(expression, [type_of(argument, table) for argument in expression.arguments], table)


def _is_total(call: Call, types: list[Type | None], table: Table) -> bool:
    """Whether a function has a value for all values of its arguments' types."""
    kinds = [None if type_ is None else type_.kind for type_ in types]
    match call.function:
        case name if call.definition.fails == "never":
            return True
        case name if call.definition.fails == "texts":
            return _are_comparable(call, kinds)
        case name if call.definition.fails == "dates":
            dated = all(_is_dated(call, place, kind) for place, kind in enumerate(kinds))
            return dated and (call.definition.check is None or _is_checked(call))
        case name if name in _HARMLESS_CASTS:
            return len(kinds) == 1 and kinds[0] in _HARMLESS_CASTS[name]
        case "cast_decimal":
            return _is_wide_enough(types[0], type_of(call, table))
        case "concat":
            return all(kind not in (None, "binary") for kind in kinds)
        case "concat_ws":
            return all(kind != "binary" for kind in kinds)
        case name if call.definition.fails == "constants":
            return kinds[0] in (None, *call.definition.takes) and _is_checked(call)
        case "lpad" | "rpad":
            return isinstance(length := call.arguments[1], Literal) and (length.value or 0) <= LONGEST
        case "split_part":
            return _is_nonzero(call.arguments[2])
        case "round" | "bround" | "floor" | "ceil" | "abs" | "negate":
            return _is_total_of_one(call, kinds[0], type_of(call, table))
        case "add" | "subtract" | "multiply":
            return _has_room(type_of(call, table))
        case "divide":
            return _is_nonzero(call.arguments[1]) and _has_room(type_of(call, table))
        case "modulo" | "pmod" | "div":
            return _is_nonzero(call.arguments[1]) and kinds == ["int", "int"]
    return False


def _are_comparable(call: Call, kinds: list[str | None]) -> bool:
    """Values of one kind are, and numbers and points in time among each other; a text is only if it is a date.

    A column whose type is not declared is taken to be what a constant is compared with.
    """
    known = {kind for kind, argument in zip(kinds, call.arguments, strict=True) if argument != Literal(None)}
    if None in known:
        return sum(not isinstance(argument, Literal) for argument in call.arguments) <= 1
    if "string" in known and known & {*_INSTANTS}:
        sample = Literal(datetime.datetime(1, 1, 1) if "timestamp" in known else datetime.date(1, 1, 1))
        return _is_safe(Call(call.function, tuple(a if isinstance(a, Literal) else sample for a in call.arguments)))
    return len(known) <= 1 or known <= {*_INSTANTS} or known <= {"int", "float", "decimal"}


def _is_dated(call: Call, place: int, kind: str | None) -> bool:
    """Whether an argument is not a text that a date is read from."""
    return "date" not in call.definition.kinds(place) or kind in _INSTANTS


def _is_checked(call: Call) -> bool:
    """Whether all that decides about failures is constant, and right."""
    function = call.definition
    constants = [call.arguments[place] for place in function.checked if place < len(call.arguments)]
    known = [constant.value for constant in constants if isinstance(constant, Literal)]
    if function.check is None or len(known) < len(constants):
        return False
    try:
        function.check(*known)
    except (ValueError, TypeError):
        return None in known
    return True


def _is_safe(constant: Call) -> bool:
    """Whether an expression that reads no column has a value."""
    try:
        evaluate(constant, {})
    except ExpressionError:
        return False
    return True


def _is_wide_enough(given: Type | None, wanted: Type | None) -> bool:
    if given is None or wanted is None or wanted.precision is None or wanted.scale is None:
        return False
    room = wanted.precision - wanted.scale
    if given.precision is None or given.scale is None:
        return given.kind in ("int", "bool") and room >= (_INT_DIGITS if given.kind == "int" else 1)
    return room >= given.precision - given.scale + (wanted.scale < given.scale)


def _is_total_of_one(call: Call, kind: str | None, type_: Type | None) -> bool:
    digits = call.arguments[1] if len(call.arguments) > 1 else Literal(0)
    if not isinstance(digits, Literal) or not isinstance(digits.value, int) or digits.value < 0:
        return False
    if kind == "int" and call.function in ("abs", "negate"):
        return isinstance(call.arguments[0], ColumnRef)
    if kind == "float":
        return call.function in ("abs", "negate") or (
            call.function in ("round", "bround") and digits.value <= _MOST_DIGITS
        )
    return kind == "int" or _has_room(type_)


def _has_room(type_: Type | None) -> bool:
    """Whether results of a type never exceed it: 38 digits may be too few, and so may 64 bits."""
    if type_ is None or type_.kind == "int":
        return False
    return type_.kind == "float" or (type_.precision is not None and type_.precision < _MOST_DIGITS)


def _is_nonzero(expression: Expression) -> bool:
    return isinstance(expression, Literal) and bool(expression.value)
