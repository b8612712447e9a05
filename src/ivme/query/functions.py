"""The table of scalar functions: what each takes, what it gives, its NULL rule, its meaning, and what runs it.

Every part of the system reads this table: the parser refuses what is not in it, `inference` types calls by it,
`expression.evaluate` is its meaning for one row, `engine.expression` compiles what the kernel has and remembers the
rest by code, and the list of functions in `docs/sql.md` is printed from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ivme.errors import ExpressionError
from ivme.query import sql_values as values
from ivme.query.order_key import order_key
from ivme.query.sql_like import like
from ivme.query.types import Type

ANY_NUMBER = 10**6
"""No call has so many arguments."""

NUMBERS = ("int", "decimal", "float")
_TEXT = ("string",)
_CONVERTIBLE = (*NUMBERS, "string", "bool")
_DATED = ("date", "timestamp", "string")

Lazy = Callable[..., Any]
"""An argument that is not evaluated yet: a partial of `evaluate` whose first argument is the expression."""


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function.

    `nulls` is its NULL rule: "strict" (NULL as soon as an argument is, and `apply` sees none), "seen" (`apply` sees
    them), or "lazy" (`apply` gets functions, and calls only those it needs, so that a CASE can guard a division).
    `takes` are the kinds of its first argument, all if it is empty; every argument of an arithmetic function is a
    number. `gives` is the kind of its value, or the rule in `inference` that finds it. `runs` is "kernel" for functions
    that the kernel has, at least for numbers, dates and truth values; "by code" for those of text, which are evaluated
    by `apply` once for each distinct value. `fails` says whether there may be rows without a value: "never", "texts"
    (only where a text that is not a date is compared with one), or "may". `sql` is how it is written; "" if SQL has no
    such function.
    """

    minimum: int
    maximum: int
    apply: Callable[..., Any]
    sql: str
    gives: str
    takes: tuple[str, ...] = ()
    nulls: str = "strict"
    runs: str = "kernel"
    fails: str = "may"
    symbol: str = ""
    """The infix spelling in SQL."""

    @property
    def predicate(self) -> bool:
        """Whether the value is TRUE, FALSE or NULL."""
        return self.gives == "bool"

    @property
    def type(self) -> Type | None:
        """The type of the value, where it does not depend on the arguments."""
        return Type(self.gives) if self.gives in _FIXED else None


_FIXED = ("int", "float", "string", "bool", "date", "timestamp", "binary")


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


def _comparison(symbol: str, holds: Callable[[int], bool]) -> Function:
    def apply(left: Any, right: Any) -> bool:
        return holds(values.compare(left, right))

    return Function(2, 2, apply, f"a {symbol} b", "bool", fails="texts", symbol=symbol)


def _connective(minimum: int, maximum: int, apply: Callable[..., Any], sql: str, symbol: str = "") -> Function:
    return Function(minimum, maximum, apply, sql, "bool", ("bool",), nulls="lazy", fails="never", symbol=symbol)


def _choice(minimum: int, apply: Callable[..., Any], sql: str) -> Function:
    return Function(minimum, ANY_NUMBER, apply, sql, "branches", nulls="lazy", fails="never")


def _arithmetic(count: tuple[int, int], apply: Callable[..., Any], sql: str, symbol: str = "") -> Function:
    return Function(*count, apply, sql, "arithmetic", NUMBERS, symbol=symbol)


def _of_text(count: tuple[int, int], apply: Callable[..., Any], sql: str, gives: str, fails: str = "may") -> Function:
    return Function(*count, apply, sql, gives, _TEXT, runs="by code", fails=fails)


def _cast(apply: Callable[..., Any], sql: str, gives: str, takes: tuple[str, ...], arguments: int = 1) -> Function:
    return Function(arguments, arguments, apply, f"CAST(a AS {sql})", gives, takes)


def _part_of_date(part: str) -> Function:
    spelled = f"EXTRACT({part.upper()} FROM a), {part.upper()}(a)"
    return Function(1, 1, lambda value: getattr(values.to_date(value), part), spelled, "int", _DATED)


FUNCTIONS: dict[str, Function] = {
    "and": _connective(2, ANY_NUMBER, _and, "a AND b", "AND"),
    "or": _connective(2, ANY_NUMBER, _or, "a OR b", "OR"),
    "not": _connective(1, 1, _not, "NOT a"),
    "eq": _comparison("=", lambda order: order == 0),
    "ne": _comparison("<>", lambda order: order != 0),
    "lt": _comparison("<", lambda order: order < 0),
    "le": _comparison("<=", lambda order: order <= 0),
    "gt": _comparison(">", lambda order: order > 0),
    "ge": _comparison(">=", lambda order: order >= 0),
    "null_safe_eq": Function(2, 2, _null_safe_eq, "a <=> b", "bool", nulls="seen", fails="texts", symbol="<=>"),
    "is_null": Function(1, 1, lambda value: value is None, "a IS NULL", "bool", nulls="seen", fails="never"),
    "in": Function(2, ANY_NUMBER, _in, "a IN (b, ...)", "bool", nulls="seen", fails="texts"),
    "like": _of_text((2, 3), like, "a LIKE b, a LIKE b ESCAPE c", "bool"),
    "add": _arithmetic((2, 2), values.add, "a + b", "+"),
    "subtract": _arithmetic((2, 2), values.subtract, "a - b", "-"),
    "multiply": _arithmetic((2, 2), values.multiply, "a * b", "*"),
    "divide": _arithmetic((2, 2), values.divide, "a / b", "/"),
    "modulo": _arithmetic((2, 2), values.modulo, "a % b", "%"),
    "negate": _arithmetic((1, 1), values.negate, "-a"),
    "abs": _arithmetic((1, 1), values.absolute, "ABS(a)"),
    "round": _arithmetic((1, 2), values.rounded, "ROUND(a), ROUND(a, digits)"),
    "floor": _arithmetic((1, 1), values.floor, "FLOOR(a)"),
    "ceil": _arithmetic((1, 1), values.ceil, "CEIL(a)"),
    "case": _choice(2, _case, "CASE WHEN a THEN b ELSE c END, IF(a, b, c)"),
    "coalesce": _choice(1, _coalesce, "COALESCE(a, b, ...)"),
    "nullif": Function(2, 2, _nullif, "NULLIF(a, b)", "first", nulls="seen", fails="texts"),
    "fails": Function(1, ANY_NUMBER, _fails, "", "bool", nulls="lazy", fails="never"),
    "lower": _of_text((1, 1), lambda value: values.text(value).lower(), "LOWER(a)", "string", "never"),
    "upper": _of_text((1, 1), lambda value: values.text(value).upper(), "UPPER(a)", "string", "never"),
    "length": Function(*(1, 1, values.length, "LENGTH(a)", "int", ("string", "binary")), runs="by code", fails="never"),
    "substring": _of_text((2, 3), values.substring, "SUBSTRING(a, start), SUBSTRING(a, start, length)", "string"),
    "concat": Function(
        *(1, ANY_NUMBER, lambda *parts: "".join(map(values.to_string, parts)), "a || b, CONCAT(a, b, ...)", "string"),
        runs="by code",
        symbol="||",
    ),
    "order_key": Function(2, ANY_NUMBER, order_key, "", "binary", nulls="seen", runs="by code", fails="never"),
    "trim": _of_text((1, 1), lambda value: values.text(value).strip(" "), "TRIM(a)", "string", "never"),
    "year": _part_of_date("year"),
    "month": _part_of_date("month"),
    "day": _part_of_date("day"),
    "cast_int": _cast(values.to_int, "BIGINT", "int", _CONVERTIBLE),
    "cast_float": _cast(values.to_float, "DOUBLE", "float", _CONVERTIBLE),
    "cast_decimal": _cast(values.to_decimal, "DECIMAL(p, s)", "decimal", _CONVERTIBLE, 3),
    "cast_string": Function(1, 1, values.to_string, "CAST(a AS STRING)", "string", runs="by code"),
    "cast_bool": _cast(values.to_bool, "BOOLEAN", "bool", _CONVERTIBLE),
    "cast_date": _cast(values.to_date, "DATE", "date", _DATED),
    "cast_timestamp": _cast(values.to_timestamp, "TIMESTAMP", "timestamp", _DATED),
}
"""Every scalar function there is. `case` takes condition, value, condition, value, ..., and maybe a last else;
`cast_decimal` takes the value, the precision and the scale; `in` takes the value and then the list. `fails`, which SQL
does not have, is whether one of its arguments has no value (`failures`). `order_key`, for aggregates that order by
another column, takes the form of the key and then its parts."""

ARITHMETIC = tuple(name for name, function in FUNCTIONS.items() if function.gives == "arithmetic")
COMPARISONS = tuple(name for name, function in FUNCTIONS.items() if function.fails == "texts")
"""Functions that compare their arguments, and fail only where a text that is not a date is compared with one."""

_NULLS = {"strict": "NULL", "seen": "seen", "lazy": "seen, argument by argument"}
_GIVES = {"arithmetic": "a number", "branches": "the common type", "first": "the type of a", "decimal": "decimal(p, s)"}


def listed() -> str:
    """The table as documentation shows it, in Markdown.

    >>> print(listed().splitlines()[2])
    | `a AND b` | bool | bool | seen, argument by argument | in the kernel |
    """
    lines = ["| written | of | gives | if an argument is NULL | computed |", "|---|---|---|---|---|"]
    for function in (function for function in FUNCTIONS.values() if function.sql):
        written = ", ".join(f"`{form}`" for form in _forms(function.sql))
        takes, gives = ", ".join(function.takes) or "any", _GIVES.get(function.gives, function.gives)
        runs = "in the kernel" if function.runs == "kernel" else "once for each distinct value"
        lines.append(f"| {written} | {takes} | {gives} | {_NULLS[function.nulls]} | {runs} |")
    return "\n".join(lines) + "\n"


def _forms(sql: str) -> list[str]:
    """The spellings of a function, which commas outside of parentheses part."""
    parts, depth = [""], 0
    for character in sql.replace("|", "\\|"):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
