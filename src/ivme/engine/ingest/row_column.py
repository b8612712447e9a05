"""Columns of a feed that are expressions, computed for one row of values: the quicker way for a few rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from ivme.engine.codes.dictionary import NULL_CODE
from ivme.engine.codes.domains import Domains
from ivme.engine.ingest.feed import FeedColumn
from ivme.errors import ExpressionError
from ivme.query.expression import Call, ColumnRef, Expression, evaluate
from ivme.query.inference import in_type, type_of
from ivme.query.model import Table
from ivme.query.sql_values import DECIMALS

Row = tuple[Any, ...]


def row_columns(columns: Sequence[FeedColumn], table: Table, domains: Domains) -> Callable[[Row], list[int]]:
    """A function from a row of values to the columns of a feed that are expressions over it.

    Each expression is evaluated once, whatever forms are asked for, and only if its guard holds. One that is asked for
    whether it fails is tried before all others.
    """
    guards = [(column.guard, None) for column in columns if column.guard is not None]
    wanted = list(dict.fromkeys([*guards, *((column.expression, column.guard) for column in columns)]))
    tried = list(dict.fromkeys(argument for expression, _ in wanted for argument in _tried(expression)))
    values = [(None if guard is None else wanted.index((guard, None)), _value(e, table, tried)) for e, guard in wanted]
    forms = [(wanted.index((column.expression, column.guard)), _form(column, table, domains)) for column in columns]
    names = table.column_names
    trials = [(argument, *_names(number)) for number, argument in enumerate(tried)]

    def compute(row: Row) -> list[int]:
        known: dict[str, Any] = dict(zip(names, row, strict=True))
        for argument, value, fails in trials:
            try:
                known[value], known[fails] = evaluate(argument, known), False
            except ExpressionError:
                known[value], known[fails] = None, True
        found: list[Any] = []
        for guard, get in values:
            found.append(get(known) if guard is None or found[guard] is True else None)
        return [form(found[place]) for place, form in forms]

    return compute


def _tried(expression: Expression) -> Iterator[Expression]:
    """What an expression asks of whether it fails."""
    if isinstance(expression, Call):
        for argument in expression.arguments:
            if expression.function == "fails":
                yield argument
            else:
                yield from _tried(argument)


def _names(number: int) -> tuple[str, str]:
    """Where the value of something that was tried is among a row's, and whether it failed; no column is named so."""
    return f"\0value {number}", f"\0fails {number}"


def _value(expression: Expression, table: Table, tried: list[Expression]) -> Callable[[dict[str, Any]], Any]:
    """A function from a row by names, with what was tried, to an expression's value in its type."""
    type_ = type_of(expression, table)
    if expression in tried:
        value, fails = _names(tried.index(expression))
        return lambda row: in_type(evaluate(expression, row) if row[fails] else row[value], type_, expression)
    known = _with_tried(expression, tried)
    return lambda row: in_type(evaluate(known, row), type_, expression)


def _with_tried(expression: Expression, tried: list[Expression]) -> Expression:
    """The expression with what was found of whether something fails."""
    if not isinstance(expression, Call):
        return expression
    if expression.function == "fails":
        found = tuple(ColumnRef(_names(tried.index(argument))[1]) for argument in expression.arguments)
        return found[0] if len(found) == 1 else Call("or", found)
    return Call(expression.function, tuple(_with_tried(argument, tried) for argument in expression.arguments))


def _form(column: FeedColumn, table: Table, domains: Domains) -> Callable[[Any], int]:
    """A function from an expression's value to a column of a feed."""
    if column.form == "test":
        return lambda value: int(value is True)
    if column.form == "known":
        return lambda value: NULL_CODE if value is None else 0
    type_ = type_of(column.expression, table)
    assert type_ is not None
    if column.form in ("low", "high"):
        assert type_.scale is not None
        scale, shift = type_.scale, 0 if column.form == "low" else 64
        return lambda value: _word(value, scale, shift)
    return domains.domain(type_).encode_value


def _word(value: Decimal | None, scale: int, shift: int) -> int:
    """A word of a decimal without its point, as a signed number; NULL counts as 0."""
    whole = 0 if value is None else int(value.scaleb(scale, DECIMALS))
    word = whole >> shift & (2**64 - 1)
    return word - 2**64 if word >= 2**63 else word
