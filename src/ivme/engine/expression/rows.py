"""Columns of a feed that are expressions, computed by `evaluate` row by row: their meaning, and the plain way.

The kernel's way asks for it where a row is doubtful, and so every failure is reported from here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Protocol

import numpy as np

from ivme.engine.codes.arrow_types import declared_type
from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.codes.domains import Domains
from ivme.engine.expression.feed_column import FeedColumn
from ivme.engine.expression.row_expression import getter
from ivme.errors import ExpressionError
from ivme.query.inference import in_type, type_of
from ivme.query.model import Table
from ivme.query.sql_values import DECIMALS

Row = tuple[Any, ...]

Failure = Callable[[FeedColumn, Row, ExpressionError], ExpressionError]
"""The error to raise for a column that has no value in a row."""


def as_it_is(_column: FeedColumn, _row: Row, error: ExpressionError) -> ExpressionError:
    """The error of an expression, which names neither row nor view."""
    return error


class CodedRows(Protocol):
    """Rows whose columns are there as codes."""

    @property
    def weights(self) -> Codes: ...

    def code(self, position: int) -> Codes:
        """The codes of a column."""

    def listed(self) -> list[list[Any]]:
        """The rows as Python values."""


class RowColumns:
    """Computes columns from rows of Python values."""

    def __init__(self, table: Table, columns: Sequence[FeedColumn], domains: Domains) -> None:
        self._columns = [(column, _code(column, table, domains)) for column in columns]
        self._domains = [domains.domain(declared_type(table, column)) for column in table.columns]

    def column(self, number: int, rows: Sequence[Row], failure: Failure = as_it_is) -> list[int]:
        """One of the columns for some rows, in their order; DataError if an expression has no value."""
        column, code = self._columns[number]
        found = []
        for row in rows:
            try:
                found.append(code(row))
            except ExpressionError as error:
                raise failure(column, row, error) from error
        return found

    def of(self, rows: CodedRows, failure: Failure = as_it_is) -> list[Codes]:
        listed = list(map(tuple, rows.listed()))
        numbers = range(len(self._columns))
        return [np.array(self.column(number, listed, failure), dtype=np.int64) for number in numbers]

    def row(self, codes: tuple[int, ...]) -> tuple[int, ...]:
        values = tuple(domain.decode_value(code) for domain, code in zip(self._domains, codes, strict=True))
        return (*codes, *(code(values) for _, code in self._columns))


def _code(column: FeedColumn, table: Table, domains: Domains) -> Callable[[Row], int]:
    """A function from a row to a column of a feed."""
    get = getter(column.expression, table.column_names, column.guard)
    if column.form == "test":
        return lambda row: int(get(row) is True)
    type_, form = type_of(column.expression, table), _form(column, table, domains)
    return lambda row: form(in_type(get(row), type_, column.expression))


def _form(column: FeedColumn, table: Table, domains: Domains) -> Callable[[Any], int]:
    """A function from an expression's value to a column of a feed."""
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
