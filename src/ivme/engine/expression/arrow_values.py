"""Expressions over Arrow data that is not in a database: routing, and the checks of what others computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.codes.arrow_types import column_type, combined
from ivme.engine.codes.dictionary import Codes
from ivme.engine.codes.domains import Domain, Domains
from ivme.engine.codes.nested_values import python_values
from ivme.engine.expression.computed import computed_columns
from ivme.engine.expression.feed_column import FeedColumn
from ivme.errors import DataError
from ivme.query.expression import ColumnRef, Expression, columns_of
from ivme.query.inference import type_of
from ivme.query.model import Column, Table
from ivme.query.types import Type


@dataclass(frozen=True, slots=True)
class _ArrowRows:
    """Rows of Arrow data as codes of domains that are made for them."""

    weights: Codes
    columns: list[pa.ChunkedArray]
    domains: list[Domain]

    def code(self, position: int) -> Codes:
        return self.domains[position].encode(self.columns[position])

    def listed(self) -> list[list[Any]]:
        return [list(row) for row in zip(*map(python_values, self.columns), strict=True)]


def evaluate_table(expression: Expression, data: pa.Table) -> pa.Array:
    """The expression's value for each row of the data, in the Arrow type of the expression's type.

    The data's columns have the Arrow types of stored columns. An expression that is only ever NULL gives an
    array of Arrow's null type. Raises `DataError` where an expression has no value for some row.

    >>> from ivme.query.expression import Call, Literal
    >>> evaluate_table(Call("divide", (ColumnRef("n"), Literal(2))), pa.table({"n": [1, None, 4]})).to_pylist()
    [0.5, None, 2.0]
    """
    if isinstance(expression, ColumnRef):
        return combined(data.column(_field(expression.name, data)))
    names = dict.fromkeys(_field(name, data) for name in columns_of(expression))
    table = Table("data", tuple(Column(name, column_type(data.schema.field(name).type)) for name in names))
    type_, domains = type_of(expression, table), _new_domains()
    columns = [domains.domain(column.type or Type("int")) for column in table.columns]
    rows = _ArrowRows(np.ones(data.num_rows, np.int64), [data.column(name) for name in names], columns)
    form = "code" if type_ is not None else "known"
    (codes,) = computed_columns(table, [FeedColumn(expression, form)], domains).of(rows)
    return pa.nulls(data.num_rows) if type_ is None else domains.domain(type_).decode(codes)


def _new_domains() -> Domains:
    try:
        from ivme.engine.codes.native_dictionary import native_domains
    except ImportError:
        return Domains()
    return native_domains()


def _field(name: str, data: pa.Table) -> str:
    found = next((each for each in data.column_names if each.lower() == name.lower()), None)
    if found is None:
        raise DataError(f"the row has no column {name!r}")
    return str(found)
