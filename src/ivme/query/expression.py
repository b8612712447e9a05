"""Scalar expressions over the columns of one table: computed columns and predicates.

They are kept as a small tree of our own, so that a query stays frozen and printable, and so that each runtime
(the plain interpreter, Arrow, Spark) evaluates the same closed set of functions. Values follow SQL: a comparison
with NULL is NULL, and a predicate keeps a row only if it is true.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ivme.errors import DataError, ExpressionError, SchemaError
from ivme.query import sql_values as values
from ivme.query.sql_like import like


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """The value of a column in the row at hand."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant; None is NULL. Constants of different types differ: 1 is not 1.0, nor TRUE."""

    value: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return type(self.value) is type(other.value) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((type(self.value), repr(self.value)))

    def __str__(self) -> str:
        value = self.value
        if value is None:
            return "NULL"
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        if isinstance(value, datetime.date):
            kind = "TIMESTAMP" if isinstance(value, datetime.datetime) else "DATE"
            return f"{kind} '{values.to_string(value)}'"
        if isinstance(value, bytes):
            return f"X'{value.hex().upper()}'"
        return str(value).upper() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the closed set in `FUNCTIONS`, applied to its arguments."""

    function: str
    arguments: tuple[Expression, ...]

    def __post_init__(self) -> None:
        function = FUNCTIONS.get(self.function)
        if function is None:
            raise SchemaError(f"unknown function {self.function!r}; use one of {', '.join(FUNCTIONS)}")
        if not function.minimum <= len(self.arguments) <= function.maximum:
            raise SchemaError(f"{self.function} does not take {len(self.arguments)} arguments")

    def __str__(self) -> str:
        return _written(self)


Expression = ColumnRef | Literal | Call
Row = Mapping[str, Any]

_ANY_NUMBER = 10**6


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function: how many arguments it takes, and what it gives.

    A `strict` function is NULL as soon as an argument is, and `apply` sees no NULL; one that is not strict sees
    them. `lazy` functions evaluate only the arguments that they need, so that a CASE can guard a division.
    `predicate` marks the functions whose value is TRUE, FALSE or NULL; `symbol` is the infix spelling in SQL.
    """

    minimum: int
    maximum: int
    apply: Callable[..., Any]
    strict: bool = True
    lazy: bool = False
    predicate: bool = False
    symbol: str = ""


def evaluate(expression: Expression, row: Row) -> Any:
    """The value of an expression for a row, given as a mapping from column names; linear in the expression.

    Raises `ExpressionError`, naming the expression, where Spark's ANSI mode fails: a division by zero, an
    overflow, a bad cast.

    >>> price = Call("multiply", (ColumnRef("price"), Call("subtract", (Literal(1), ColumnRef("discount")))))
    >>> str(price), evaluate(price, {"price": 10, "discount": 0.25})
    ('price * (1 - discount)', 7.5)
    """
    if isinstance(expression, ColumnRef):
        try:
            return row[expression.name]
        except KeyError:
            raise DataError(f"the row has no column {expression.name!r}") from None
    if isinstance(expression, Literal):
        return expression.value
    function = FUNCTIONS[expression.function]
    try:
        if function.lazy:
            return function.apply(expression.arguments, row)
        arguments = [evaluate(argument, row) for argument in expression.arguments]
        if function.strict and None in arguments:
            return None
        return function.apply(*arguments)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ExpressionError.of(str(expression), str(error)) from error


def is_predicate(expression: Expression) -> bool | None:
    """Whether the value is a truth value; None where only the types of columns tell."""
    if isinstance(expression, Literal):
        return expression.value is None or isinstance(expression.value, bool)
    if isinstance(expression, ColumnRef) or expression.function in ("case", "coalesce", "nullif"):
        return None
    return FUNCTIONS[expression.function].predicate


def columns_of(expression: Expression) -> Iterator[str]:
    """The columns that an expression reads, with repetitions."""
    if isinstance(expression, ColumnRef):
        yield expression.name
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from columns_of(argument)


def conjunction(predicates: Iterable[Expression]) -> Expression | None:
    """The predicates joined by AND: None for no predicate, and one predicate as it is."""
    every = tuple(predicates)
    return Call("and", every) if len(every) > 1 else every[0] if every else None


def conjuncts(predicate: Expression | None) -> Iterator[Expression]:
    """The predicates that AND joins, from left to right."""
    if isinstance(predicate, Call) and predicate.function == "and":
        for argument in predicate.arguments:
            yield from conjuncts(argument)
    elif predicate is not None:
        yield predicate


def _truth(expression: Expression, row: Row) -> bool | None:
    value = evaluate(expression, row)
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{expression} is {value!r}, not a truth value")
    return value


def _and(arguments: tuple[Expression, ...], row: Row) -> bool | None:
    known: bool | None = True
    for argument in arguments:
        truth = _truth(argument, row)
        if truth is False:
            return False
        known = None if truth is None else known
    return known


def _or(arguments: tuple[Expression, ...], row: Row) -> bool | None:
    known: bool | None = False
    for argument in arguments:
        truth = _truth(argument, row)
        if truth is True:
            return True
        known = None if truth is None else known
    return known


def _not(arguments: tuple[Expression, ...], row: Row) -> bool | None:
    truth = _truth(arguments[0], row)
    return None if truth is None else not truth


def _case(arguments: tuple[Expression, ...], row: Row) -> Any:
    for condition, value in zip(arguments[0:-1:2], arguments[1::2], strict=False):
        if _truth(condition, row):
            return evaluate(value, row)
    return evaluate(arguments[-1], row) if len(arguments) % 2 else None


def _coalesce(arguments: tuple[Expression, ...], row: Row) -> Any:
    found = (evaluate(argument, row) for argument in arguments)
    return next((value for value in found if value is not None), None)


def _fails(arguments: tuple[Expression, ...], row: Row) -> bool:
    for argument in arguments:
        try:
            evaluate(argument, row)
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
    return Function(2, 2, lambda left, right: holds(values.compare(left, right)), predicate=True, symbol=symbol)


FUNCTIONS: dict[str, Function] = {
    "and": Function(2, _ANY_NUMBER, _and, lazy=True, predicate=True, symbol="AND"),
    "or": Function(2, _ANY_NUMBER, _or, lazy=True, predicate=True, symbol="OR"),
    "not": Function(1, 1, _not, lazy=True, predicate=True),
    "eq": _comparison("=", lambda order: order == 0),
    "ne": _comparison("<>", lambda order: order != 0),
    "lt": _comparison("<", lambda order: order < 0),
    "le": _comparison("<=", lambda order: order <= 0),
    "gt": _comparison(">", lambda order: order > 0),
    "ge": _comparison(">=", lambda order: order >= 0),
    "null_safe_eq": Function(2, 2, _null_safe_eq, strict=False, predicate=True, symbol="<=>"),
    "is_null": Function(1, 1, lambda value: value is None, strict=False, predicate=True),
    "in": Function(2, _ANY_NUMBER, _in, strict=False, predicate=True),
    "like": Function(2, 3, like, predicate=True),
    "add": Function(2, 2, values.add, symbol="+"),
    "subtract": Function(2, 2, values.subtract, symbol="-"),
    "multiply": Function(2, 2, values.multiply, symbol="*"),
    "divide": Function(2, 2, values.divide, symbol="/"),
    "modulo": Function(2, 2, values.modulo, symbol="%"),
    "negate": Function(1, 1, values.negate),
    "abs": Function(1, 1, values.absolute),
    "round": Function(1, 2, values.rounded),
    "floor": Function(1, 1, values.floor),
    "ceil": Function(1, 1, values.ceil),
    "case": Function(2, _ANY_NUMBER, _case, lazy=True),
    "coalesce": Function(1, _ANY_NUMBER, _coalesce, lazy=True),
    "nullif": Function(2, 2, _nullif, strict=False),
    "fails": Function(1, _ANY_NUMBER, _fails, lazy=True, predicate=True),
    "lower": Function(1, 1, lambda value: values.text(value).lower()),
    "upper": Function(1, 1, lambda value: values.text(value).upper()),
    "length": Function(1, 1, values.length),
    "substring": Function(2, 3, values.substring),
    "concat": Function(1, _ANY_NUMBER, lambda *parts: "".join(map(values.to_string, parts)), symbol="||"),
    "trim": Function(1, 1, lambda value: values.text(value).strip(" ")),
    "year": Function(1, 1, lambda value: values.to_date(value).year),
    "month": Function(1, 1, lambda value: values.to_date(value).month),
    "day": Function(1, 1, lambda value: values.to_date(value).day),
    "cast_int": Function(1, 1, values.to_int),
    "cast_float": Function(1, 1, values.to_float),
    "cast_decimal": Function(3, 3, values.to_decimal),
    "cast_string": Function(1, 1, values.to_string),
    "cast_bool": Function(1, 1, values.to_bool, predicate=True),
    "cast_date": Function(1, 1, values.to_date),
    "cast_timestamp": Function(1, 1, values.to_timestamp),
}
"""Every scalar function there is. `case` takes condition, value, condition, value, ..., and maybe a last else;
`cast_decimal` takes the value, the precision and the scale; `in` takes the value and then the list. `fails`, which SQL
does not have, is whether one of its arguments has no value (`failures`)."""


_CASTS = {"cast_int": "BIGINT", "cast_float": "DOUBLE", "cast_bool": "BOOLEAN"}


def _written(call: Call) -> str:
    """The call as SQL would spell it."""
    arguments = [_operand(argument) for argument in call.arguments]
    plain = [str(argument) for argument in call.arguments]
    match call.function:
        case "not":
            return f"NOT {arguments[0]}"
        case "negate":
            return f"-{arguments[0]}"
        case "is_null":
            return f"{arguments[0]} IS NULL"
        case "in":
            return f"{arguments[0]} IN ({', '.join(plain[1:])})"
        case "like":
            return " LIKE ".join(arguments[:2]) + "".join(f" ESCAPE {escape}" for escape in plain[2:])
        case "case":
            branches = [f"WHEN {when} THEN {then}" for when, then in zip(plain[0:-1:2], plain[1::2], strict=False)]
            otherwise = [f"ELSE {plain[-1]}"] if len(plain) % 2 else []
            return " ".join(["CASE", *branches, *otherwise, "END"])
        case "cast_decimal":
            return f"CAST({plain[0]} AS DECIMAL({plain[1]}, {plain[2]}))"
        case name if name.startswith("cast_"):
            return f"CAST({plain[0]} AS {_CASTS.get(name, name.removeprefix('cast_').upper())})"
        case name if FUNCTIONS[name].symbol and len(plain) > 1:
            return f" {FUNCTIONS[name].symbol} ".join(arguments)
    return f"{call.function}({', '.join(plain)})"


def _operand(expression: Expression) -> str:
    """An argument of an operator, in parentheses if it is itself written with one."""
    infix = isinstance(expression, Call) and (
        FUNCTIONS[expression.function].symbol or expression.function in ("not", "negate", "is_null", "in", "like")
    )
    return f"({expression})" if infix else str(expression)
