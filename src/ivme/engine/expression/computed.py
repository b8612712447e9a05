"""What computes the columns of a feed that are expressions: the kernel, or `evaluate` without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ivme.engine.codes.dictionary import Codes
from ivme.engine.codes.domains import Domains
from ivme.engine.expression.feed_column import FeedColumn
from ivme.engine.expression.rows import CodedRows, Failure, RowColumns
from ivme.query.model import Table


class ComputedColumns(Protocol):
    """Columns of a feed that are expressions over a relation's rows."""

    def of(self, rows: CodedRows, failure: Failure = ..., /) -> list[Codes]:
        """The columns for some rows; DataError where an expression has no value, as `failure` words it."""

    def row(self, codes: tuple[int, ...], /) -> tuple[int, ...]:
        """The codes of a row with those of the columns behind them; DataError where an expression has no value."""


def computed_columns(table: Table, columns: Sequence[FeedColumn], domains: Domains) -> ComputedColumns:
    """Computes columns over the rows of a table; make it once, whenever what is wanted changes."""
    if not domains.in_kernel:
        return RowColumns(table, columns, domains)
    from ivme.engine.expression.columns import KernelColumns

    return KernelColumns(table, columns, domains)
