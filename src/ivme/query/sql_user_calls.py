"""Calls of users' functions, whose arguments must have the declared types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from ivme.query.expression import Call, Expression, Literal, UserCall
from ivme.query.functions import Function
from ivme.query.sql_text import SqlText

_WIDENED: dict[tuple[str | None, str], tuple[Any, ...]] = {
    ("int", "float"): ("cast_float",),
    ("int", "decimal"): ("cast_decimal", 20, 0),
    ("decimal", "float"): ("cast_float",),
    ("date", "timestamp"): ("cast_timestamp",),
}
"""What is converted, and how; everything else must be cast by the user."""


def user_call(
    source: SqlText, node: exp.Anonymous, defined: Function, arguments: Sequence[Expression], kinds: list[str | None]
) -> Expression:
    """The call of a function with arguments of these kinds, as far as they are known."""
    if len(arguments) != defined.minimum:
        message = f"the function {defined.called_as} does not take {len(arguments)} arguments"
        raise source.unsupported(message, node, f"write {defined.sql}")
    given: list[Expression] = []
    for place, (argument, kind) in enumerate(zip(arguments, kinds, strict=True)):
        (wanted,) = defined.kinds(place)
        if (kind, wanted) in _WIDENED:
            name, *details = _WIDENED[kind, wanted]
            given.append(Call(name, (argument, *map(Literal, details))))
            continue
        if kind is not None and kind != wanted:
            message = f"{argument} is of type {kind}, and {defined.sql} takes {wanted} there"
            raise source.unsupported(message, node.expressions[place], f"CAST it to {wanted}")
        given.append(argument)
    return UserCall(f"#{defined.called_as.lower()}", tuple(given), defined)
