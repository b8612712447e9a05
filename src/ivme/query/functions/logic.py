"""AND, OR, NOT, comparisons, and the functions that choose among their arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ivme.errors import ExpressionError
from ivme.query import sql_values as values
from ivme.query.functions.definition import ANY_NUMBER, Function

Lazy = Callable[..., Any]
"""An argument that is not evaluated yet: a partial of `evaluate` whose first argument is the expression."""


def _truth(argument: Lazy) -> bool | None:
    value = argument()
    if value is not None and not isinstance(value, bool):
        written = argument.args[0] if isinstance(argument, partial) else "an argument"
        raise TypeError(f"{written} is {value!r}, not a truth value")
    return value


def _and(*arguments: Lazy) -> bool | None:
    known: bool | None = True
    for argument in arguments:
        truth = _truth(argument)
        if truth is False:
            return False
        known = None if truth is None else known
    return known


def _or(*arguments: Lazy) -> bool | None:
    known: bool | None = False
    for argument in arguments:
        truth = _truth(argument)
        if truth is True:
            return True
        known = None if truth is None else known
    return known


def _not(argument: Lazy) -> bool | None:
    truth = _truth(argument)
    return None if truth is None else not truth


def _case(*arguments: Lazy) -> Any:
    for condition, value in zip(arguments[0:-1:2], arguments[1::2], strict=False):
        if _truth(condition):
            return value()
    return arguments[-1]() if len(arguments) % 2 else None


def _coalesce(*arguments: Lazy) -> Any:
    found = (argument() for argument in arguments)
    return next((value for value in found if value is not None), None)


def _fails(*arguments: Lazy) -> bool:
    for argument in arguments:
        try:
            argument()
        except ExpressionError:
            return True
    return False


def _in(value: Any, *options: Any) -> bool | None:
    if value is None:
        return None
    if any(option is not None and values.compare(value, option) == 0 for option in options):
        return True
    return None if None in options else False


def _null_safe_eq(left: Any, right: Any) -> bool:
    return left is right if left is None or right is None else values.compare(left, right) == 0


def _nullif(left: Any, right: Any) -> Any:
    return None if left is not None and right is not None and values.compare(left, right) == 0 else left


def _extreme(sign: int) -> Callable[..., Any]:
    """The greatest (1) or least (-1) argument that is not NULL."""

    def apply(*arguments: Any) -> Any:
        found = None
        for value in arguments:
            if value is not None and (found is None or sign * values.compare(value, found) > 0):
                found = value
        return found

    return apply


def _comparison(symbol: str, holds: Callable[[int], bool]) -> Function:
    def apply(left: Any, right: Any) -> bool:
        return holds(values.compare(left, right))

    return Function(2, 2, apply, f"a {symbol} b", "bool", fails="texts", symbol=symbol)


def _connective(minimum: int, maximum: int, apply: Callable[..., Any], sql: str, symbol: str = "") -> Function:
    bools = ("bool",)
    return Function(minimum, maximum, apply, sql, "bool", bools, (bools,), nulls="lazy", fails="never", symbol=symbol)


def _choice(minimum: int, apply: Callable[..., Any], sql: str, nulls: str = "lazy") -> Function:
    return Function(minimum, ANY_NUMBER, apply, sql, "branches", nulls=nulls, fails="never")


LOGIC: dict[str, Function] = {
    "and": _connective(2, ANY_NUMBER, _and, "a AND b", "AND"),
    "or": _connective(2, ANY_NUMBER, _or, "a OR b", "OR"),
    "not": _connective(1, 1, _not, "NOT a"),
    "eq": _comparison("=", lambda order: order == 0),
    "ne": _comparison("<>", lambda order: order != 0),
    "lt": _comparison("<", lambda order: order < 0),
    "le": _comparison("<=", lambda order: order <= 0),
    "gt": _comparison(">", lambda order: order > 0),
    "ge": _comparison(">=", lambda order: order >= 0),
    "null_safe_eq": Function(
        *(2, 2, _null_safe_eq, "a <=> b, a IS NOT DISTINCT FROM b, EQUAL_NULL(a, b)", "bool"),
        nulls="seen",
        fails="texts",
        symbol="<=>",
    ),
    "is_null": Function(1, 1, lambda value: value is None, "a IS NULL", "bool", nulls="seen", fails="never"),
    "in": Function(2, ANY_NUMBER, _in, "a IN (b, ...)", "bool", nulls="seen", fails="texts"),
    "case": _choice(2, _case, "CASE WHEN a THEN b ELSE c END, IF(a, b, c), NVL2(a, b, c), DECODE(a, b, c, ...)"),
    "coalesce": _choice(1, _coalesce, "COALESCE(a, b, ...), IFNULL(a, b), NVL(a, b), ZEROIFNULL(a)"),
    "nullif": Function(2, 2, _nullif, "NULLIF(a, b)", "first", nulls="seen", fails="texts"),
    "greatest": _choice(2, _extreme(1), "GREATEST(a, b, ...)", "seen"),
    "least": _choice(2, _extreme(-1), "LEAST(a, b, ...)", "seen"),
    "fails": Function(1, ANY_NUMBER, _fails, "", "bool", nulls="lazy", fails="never"),
}
"""`case` takes condition, value, condition, value, ..., and maybe a last else; `in` takes the value and then the list.
`fails`, which SQL does not have, is whether one of its arguments has no value (`failures`)."""
