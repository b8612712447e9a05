"""Scalar expressions over the columns of one table: computed columns and predicates.

They are stored as a small tree of our own, so that a query stays frozen and printable, and so that each runtime
(the plain interpreter, Arrow, Spark) evaluates the same closed set of functions. Values follow SQL: a comparison
with NULL is NULL, and a predicate keeps a row only if it is true.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ivme.errors import DataError, ExpressionError, SchemaError
from ivme.query import sql_values as values
from ivme.query.functions import FUNCTIONS, Function


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
        value = self.value
        return hash((type(value), value if type(value) in (int, str) else repr(value)))

    def __str__(self) -> str:
        value = self.value
        if value is None:
            return "NULL"
        if isinstance(value, str):
            return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
        if isinstance(value, datetime.date):
            kind = "TIMESTAMP" if isinstance(value, datetime.datetime) else "DATE"
            return f"{kind} '{values.to_string(value)}'"
        if isinstance(value, bytes):
            return f"X'{value.hex().upper()}'"
        if isinstance(value, tuple):
            return f"ARRAY({', '.join(str(Literal(each)) for each in value)})"
        return str(value).upper() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the closed set in `FUNCTIONS`, applied to its arguments."""

    function: str
    arguments: tuple[Expression, ...]
    _hash: int = field(init=False, repr=False, compare=False)
    """Found once: expressions are keys of many dictionaries, and a list behind IN may have thousands of constants."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.function, self.arguments)))
        function = FUNCTIONS.get(self.function)
        if function is None:
            raise SchemaError(f"unknown function {self.function!r}; use one of {', '.join(FUNCTIONS)}")
        if not function.minimum <= len(self.arguments) <= function.maximum:
            raise SchemaError(f"{self.function} does not take {len(self.arguments)} arguments")

    def __hash__(self) -> int:
        return self._hash

    @property
    def definition(self) -> Function:
        """What the function takes, gives and means."""
        return FUNCTIONS[self.function]

    def __str__(self) -> str:
        return _written(self)


@dataclass(frozen=True, slots=True)
class UserCall(Call):
    """A call of a user's function. Its `function` is not in `FUNCTIONS`, so it is never mistaken for a built-in one."""

    defined: Function

    def __post_init__(self) -> None:
        """The parser counts the arguments, as it does for every function."""
        object.__setattr__(self, "_hash", hash((self.function, self.arguments, self.defined)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def definition(self) -> Function:
        return self.defined

    def __str__(self) -> str:
        return f"{self.defined.called_as}({', '.join(map(str, self.arguments))})"


Expression = ColumnRef | Literal | Call
Row = Mapping[str, Any]


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
    function = expression.definition
    try:
        if function.nulls == "lazy":
            return function.apply(*(partial(evaluate, argument, row) for argument in expression.arguments))
        arguments = [evaluate(argument, row) for argument in expression.arguments]
        if function.nulls == "strict" and None in arguments:
            return None
        return function.apply(*arguments)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ExpressionError.of(str(expression), str(error)) from error


def is_predicate(expression: Expression) -> bool | None:
    """Whether the value is a truth value; None where only the types of columns tell."""
    if isinstance(expression, Literal):
        return expression.value is None or isinstance(expression.value, bool)
    if isinstance(expression, ColumnRef) or expression.definition.gives in ("branches", "first"):
        return None
    return expression.definition.predicate


def columns_of(expression: Expression) -> Iterator[str]:
    """The columns that an expression reads, with repetitions."""
    if isinstance(expression, ColumnRef):
        yield expression.name
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            if not isinstance(argument, Literal):  # of which a list may have many
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


_SIDES = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}
_CASTS = {"int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN"}
_NARROW = {"8": "TINYINT", "16": "SMALLINT", "32": "INT"}


def _cast(function: str, arguments: list[str]) -> str:
    cast, _, kind = function.upper().removesuffix("_NTZ").rpartition("_")
    wanted = _CASTS.get(kind.lower(), f"{kind}_NTZ" if function.endswith("_ntz") else kind)
    if kind == "NESTED":
        wanted = arguments[1].strip("'").upper()
    elif kind == "DECIMAL":
        wanted = f"DECIMAL({arguments[1]}, {arguments[2]})"
    elif kind == "INT" and len(arguments) == 2:
        wanted = _NARROW[arguments[1]]
    return f"{cast}({arguments[0]} AS {wanted})"


def _written(call: Call) -> str:
    """The call as SQL would spell it."""
    plain = [str(argument) for argument in call.arguments]
    arguments = [_operand(argument, text) for argument, text in zip(call.arguments, plain, strict=True)]
    match call.function:
        case "not":
            return f"NOT {arguments[0]}"
        case "negate":
            return f"-{arguments[0]}"
        case "is_null":
            return f"{arguments[0]} IS NULL"
        case "in":
            return f"{arguments[0]} IN ({', '.join(plain[1:])})"
        case "like" | "ilike":
            return f" {call.function.upper()} ".join(arguments[:2]) + "".join(
                f" ESCAPE {escape}" for escape in plain[2:]
            )
        case "rlike":
            return " RLIKE ".join(arguments)
        case "case":
            branches = [f"WHEN {when} THEN {then}" for when, then in zip(plain[0:-1:2], plain[1::2], strict=False)]
            otherwise = [f"ELSE {plain[-1]}"] if len(plain) % 2 else []
            return " ".join(["CASE", *branches, *otherwise, "END"])
        case "trim" | "ltrim" | "rtrim" if len(plain) == 2:
            return f"TRIM({_SIDES[call.function]} {plain[1]} FROM {plain[0]})"
        case name if "cast_" in name:
            return _cast(name, plain)
        case name if FUNCTIONS[name].form:
            return FUNCTIONS[name].form.format(*arguments, unit=plain[0].strip("'"))
        case name if FUNCTIONS[name].symbol and len(plain) > 1:
            return f" {FUNCTIONS[name].symbol} ".join(arguments)
    return f"{call.function}({', '.join(plain)})"


_WITHOUT_PARENTHESES = ("not", "negate", "is_null", "in", "like", "ilike", "rlike", "bit_not")


def _operand(expression: Expression, text: str) -> str:
    """The text of an operator's argument, in parentheses if it is itself written with an operator."""
    infix = isinstance(expression, Call) and (
        expression.definition.symbol or expression.function in _WITHOUT_PARENTHESES
    )
    return f"({text})" if infix else text
