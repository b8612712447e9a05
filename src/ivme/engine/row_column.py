"""Columns of a feed that are expressions, computed for one row of values: the quicker way for a few rows."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from ivme.engine.dictionary import NULL_CODE
from ivme.engine.domains import Domains
from ivme.engine.feed import FeedColumn
from ivme.engine.load import getter
from ivme.query.inference import type_of
from ivme.query.model import Table
from ivme.query.sql_values import DECIMALS


def row_column(column: FeedColumn, table: Table, domains: Domains) -> Callable[[tuple[Any, ...]], int]:
    """A function from a row of values to a column of a feed that is an expression over it."""
    get, form = getter(column.expression, table.column_names), column.form
    if form == "test":
        return lambda row: int(get(row) is True)
    if form == "known":
        return lambda row: NULL_CODE if get(row) is None else 0
    type_ = type_of(column.expression, table)
    assert type_ is not None
    if form in ("low", "high"):
        assert type_.scale is not None
        scale, shift = type_.scale, 0 if form == "low" else 64
        return lambda row: _word(get(row), scale, shift)
    encode = domains.domain(type_).encode_value
    return lambda row: encode(get(row))


def _word(value: Any, scale: int, shift: int) -> int:
    """A word of a decimal without its point, as a signed number; NULL counts as 0. Quotients are rounded."""
    whole = 0 if value is None else int(Decimal(value).scaleb(scale, DECIMALS).to_integral_value(ROUND_HALF_UP))
    word = whole >> shift & (2**64 - 1)
    return word - 2**64 if word >= 2**63 else word
