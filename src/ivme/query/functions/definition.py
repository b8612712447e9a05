"""What the table of functions says about a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ivme.query.types import Type

ANY_NUMBER = 10**6
"""No call has so many arguments."""

NUMBERS = ("int", "decimal", "float")
INTEGERS = ("int",)
TEXT = ("string",)
BYTES = ("string", "binary")
INSTANTS = ("date", "timestamp")
DATED = ("date", "timestamp", "string")
"""What is a date, or the text of one."""

_FIXED = ("int", "float", "string", "bool", "date", "timestamp", "binary")


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function.

    `nulls` is its NULL rule: "strict" (NULL as soon as an argument is, and `apply` sees none), "seen" (`apply` sees
    them), or "lazy" (`apply` gets functions, and calls only those it needs, so that a CASE can guard a division).
    `takes` are the kinds of its first argument, all if it is empty, and `others` those of the arguments behind it, the
    last of them for all that follow; every argument of an arithmetic function is a number. `gives` is the kind of its
    value, or the rule in `inference` that finds it. `runs` is "kernel" for functions that the kernel has, at least for
    numbers, dates and truth values; "by code" for those of text, which are evaluated by `apply` once for each distinct
    value; "by row" for others, which are evaluated by `apply` once for each distinct row of their arguments in a batch.
    `fails` says whether there may be rows without a value, given arguments of the kinds that it takes: "never", "texts"
    (only where a text that is not a date is compared with one), "dates" (only of a text that is not a date),
    "constants" (only for constants that `check` does not take), or "may". `sql` is how it is written; "" if SQL has no
    such function. `form` is how a call of it is shown, where that is not its name with arguments. `check` raises
    ValueError for constants that no row has a value with; it takes the arguments at the places `checked`.
    """

    minimum: int
    maximum: int
    apply: Callable[..., Any]
    sql: str
    gives: str
    takes: tuple[str, ...] = ()
    others: tuple[tuple[str, ...], ...] = ()
    nulls: str = "strict"
    runs: str = "kernel"
    fails: str = "may"
    symbol: str = ""
    """The infix spelling in SQL."""
    form: str = ""
    check: Callable[..., Any] | None = None
    checked: tuple[int, ...] = ()
    returns: Type | None = None
    """The type of the value of a user's function, and `called_as` its name."""
    called_as: str = ""

    @property
    def predicate(self) -> bool:
        """Whether the value is TRUE, FALSE or NULL."""
        return self.gives == "bool"

    @property
    def type(self) -> Type | None:
        """The type of the value, where it does not depend on the arguments."""
        return self.returns or (Type(self.gives) if self.gives in _FIXED else None)

    def kinds(self, place: int) -> tuple[str, ...]:
        """The kinds that the argument at a place may have; all if there are none."""
        if place == 0:
            return self.takes
        return self.others[min(place, len(self.others)) - 1] if self.others else ()
