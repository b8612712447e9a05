"""Columns of a feed that are expressions, computed for one row of values: the quicker way for a few rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from ivme.engine.codes.dictionary import NULL_CODE
from ivme.engine.codes.domains import Domains
from ivme.engine.expression.row_expression import getter
from ivme.engine.ingest.feed import FeedColumn
from ivme.query.expression import Expression
from ivme.query.inference import in_type, type_of
from ivme.query.model import Table
from ivme.query.sql_values import DECIMALS

Row = tuple[Any, ...]


def row_columns(columns: Sequence[FeedColumn], table: Table, domains: Domains) -> Callable[[Row], list[int]]:
    """A function from a row of values to the columns of a feed that are expressions over it.

    Each expression is evaluated once, whatever forms are asked for, and only if its guard holds.
    """
    guards = [(column.guard, None) for column in columns if column.guard is not None]
    wanted = list(dict.fromkeys([*guards, *((column.expression, column.guard) for column in columns)]))
    values = [(None if guard is None else wanted.index((guard, None)), _value(e, table)) for e, guard in wanted]
    forms = [(wanted.index((column.expression, column.guard)), _form(column, table, domains)) for column in columns]

    def compute(row: Row) -> list[int]:
        found: list[Any] = []
        for guard, get in values:
            found.append(get(row) if guard is None or found[guard] is True else None)
        return [form(found[place]) for place, form in forms]

    return compute


def _value(expression: Expression, table: Table) -> Callable[[Row], Any]:
    """A function from a row to an expression's value in its type."""
    get, type_ = getter(expression, table.column_names), type_of(expression, table)
    return lambda row: in_type(get(row), type_, expression)


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
