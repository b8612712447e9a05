"""Scalar expressions over the columns of one table: computed columns and predicates.

They are kept as a small tree of our own, so that a query stays frozen and printable, and so that each runtime
(the plain interpreter, Arrow, Spark) evaluates the same closed set of functions. Values follow SQL: a comparison
with NULL is NULL, and a predicate keeps a row only if it is true.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """The value of a column in the row at hand."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; None is NULL."""

    value: Any

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        return str(self.value).upper() if isinstance(self.value, bool) else str(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the closed set in `FUNCTIONS`, applied to its arguments."""

    function: str
    arguments: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


Expression = ColumnRef | Literal | Call


def columns_of(expression: Expression) -> Iterator[str]:
    """The columns that an expression reads, with repetitions."""
    if isinstance(expression, ColumnRef):
        yield expression.name
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from columns_of(argument)
