"""Rows on their way into the kernel: columns as codes and as Arrow, each made when first needed.

A relation's triggers want columns of its rows: most as they are, by their codes; some as the value of an expression.
What they want is sorted out once, when triggers change; a batch then computes each column once for all triggers.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.codes.arrow_types import arrow_schema, arrow_type, declared_type
from ivme.engine.codes.dictionary import Codes
from ivme.engine.codes.domains import BatchEncoder, Domain, Domains
from ivme.engine.expression.computed import computed_columns
from ivme.engine.expression.feed_column import FeedColumn
from ivme.engine.expression.row_expression import Row
from ivme.engine.ingest.feed import Feed
from ivme.engine.ingest.row_columns import row_encoder
from ivme.errors import DataError, ExpressionError
from ivme.query.expression import ColumnRef
from ivme.query.model import Table
from ivme.query.types import Type


class RowBatch:
    """Rows of a relation and their weights. Of `data` and `codes` one may be left out, or a part of the codes."""

    __slots__ = ("__weakref__", "_codes", "_data", "_layout", "weights")

    def __init__(
        self, layout: Layout, weights: Codes, data: pa.Table | None = None, codes: list[Codes | None] | None = None
    ) -> None:
        self._layout = layout
        self.weights = weights
        self._data = data
        self._codes: list[Codes | None] = [None] * len(layout.domains) if codes is None else codes

    def code(self, position: int) -> Codes:
        """The codes of a column."""
        found = self._codes[position]
        if found is None:
            found = self._codes[position] = self._layout.domains[position].encode(self.data.column(position))
        return found

    def codes(self) -> list[Codes]:
        """The codes of all columns."""
        return [self.code(position) for position in range(len(self._codes))]

    def held_codes(self) -> list[Codes]:
        """The codes that it has already."""
        return [codes for codes in self._codes if codes is not None]

    def forget_codes(self) -> None:
        """Encodes the values again, as codes of some may have been taken back. Rows that are codes only are held."""
        if self._data is not None:
            self._codes = [None] * len(self._codes)

    @property
    def data(self) -> pa.Table:
        """The columns in Arrow."""
        if self._data is None:
            decoded = zip(self._layout.domains, self.codes(), strict=True)
            arrays = [domain.decode(codes) for domain, codes in decoded]
            self._data = _table(arrays, self._layout.schema, len(self.weights))
        elif isinstance(self._data, pa.RecordBatch):
            self._data = pa.Table.from_batches([self._data])
        return self._data

    def listed(self) -> list[list[Any]]:
        """The rows as lists of Python values."""
        return list(map(list, self.rows()))

    def rows(self) -> Iterable[tuple[Any, ...]]:
        """The rows as Python values."""
        if not self._codes:
            return repeat((), len(self.weights))
        columns = zip(self._layout.domains, self.codes(), strict=True)
        return zip(*(domain.values(codes.tolist()) for domain, codes in columns), strict=True)

    def kept(self, rows: Sequence[int] | Codes, weights: Codes) -> RowBatch:
        """Some of the rows, with other weights."""
        return RowBatch(self._layout, weights, None, [codes[rows] for codes in self.codes()])


def _table(arrays: list[pa.Array], schema: pa.Schema, rows: int) -> pa.Table:
    """The columns as a table; one without columns has rows, too."""
    if arrays:
        return pa.Table.from_arrays(arrays, schema=schema)
    return pa.table({"": pa.nulls(rows)}).select([])


def joined(parts: Sequence[RowBatch]) -> RowBatch:
    """The rows of several changes of one relation."""
    if len(parts) == 1:
        return parts[0]
    columns = [np.concatenate(codes) for codes in zip(*(part.codes() for part in parts), strict=True)]
    return RowBatch(parts[0]._layout, np.concatenate([part.weights for part in parts]), None, list(columns))


class Layout:
    """The columns of a relation: their domains and Arrow types. Those of a view's parameters may be in front."""

    __slots__ = ("domains", "encoder", "floats", "rows", "schema")

    def __init__(self, table: Table, domains: Domains, front: Sequence[tuple[str, Type]] = ()) -> None:
        types = [*(type_ for _, type_ in front), *(declared_type(table, column) for column in table.columns)]
        self.domains: list[Domain] = [domains.domain(type_) for type_ in types]
        self.encoder = None if front else domains.encoder_of(table.column_names, self.domains)
        self.rows = None if front or not domains.in_kernel else row_encoder(table, self.domains)
        self.schema = pa.schema([*(pa.field(name, arrow_type(type_)) for name, type_ in front), *arrow_schema(table)])
        self.floats = [i for i, domain in enumerate(self.domains) if domain.type.kind == "float"]


def codes_of(rows: Any, layout: Layout) -> list[Codes | None] | None:
    """The codes of rows that are what the table wants as they are; None if not, or if a value is in doubt."""
    if type(rows) is list:
        found = None if layout.rows is None else layout.rows.encode(rows)
        return None if found is None else [*found]
    whole = None if layout.encoder is None else _encoded(rows, layout.encoder)
    if whole is not None:
        return list(whole)
    if not isinstance(rows, pa.Table | pa.RecordBatch) or not _has(rows.schema, layout.schema):
        return None
    try:
        columns = [domain.encode(column) for domain, column in zip(layout.domains, rows.columns, strict=True)]
    except DataError:
        return None
    for i in layout.floats:
        if (columns[i] == 0).any():
            return None  # perhaps a negative zero
    return list(columns)


def _encoded(rows: Any, encoder: BatchEncoder) -> list[Codes] | None:
    """The codes of a record batch, or of a table of one, by the quickest way."""
    batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
    if len(batches) != 1 or not isinstance(batches[0], pa.RecordBatch):
        return None
    try:
        batches[0].validate()
    except pa.ArrowInvalid:
        return None
    return encoder.encode(batches[0].__arrow_c_array__())


def _has(given: pa.Schema, wanted: pa.Schema) -> bool:
    return bool(given.equals(wanted) or (given.names == wanted.names and given.types == wanted.types))


Owner = Callable[[FeedColumn], str]
"""The name of a view that has a column of a feed, for messages."""


class Inputs:
    """What the triggers of a relation want of its rows, by trigger."""

    __slots__ = ("_computed", "_owner", "_plain", "_source", "triggers")

    def __init__(
        self,
        table: Table,
        domains: Domains,
        feeds: Sequence[tuple[str, Feed]],
        owner: Owner = lambda _: "",
        kind: str = "table",
    ) -> None:
        wanted = list(dict.fromkeys(column for _, feed in feeds for column in feed.columns))
        self._owner = owner
        self._source = f"{kind} {table.name}"
        self._plain = [plain_position(column, table) for column in wanted]
        computed = [column for column in wanted if plain_position(column, table) is None]
        self._computed = computed_columns(table, computed, domains) if computed else None
        self.triggers = [(name, [wanted.index(column) for column in feed.columns]) for name, feed in feeds]

    def of(self, changed: RowBatch) -> list[tuple[str, list[Codes]]]:
        """For each trigger its columns; ExpressionError, naming the row and a view, where one has no value."""
        computed = iter([] if self._computed is None else self._computed.of(changed, self._failure))
        columns = [next(computed) if position is None else changed.code(position) for position in self._plain]
        return [(name, [columns[i] for i in picked]) for name, picked in self.triggers]

    def _failure(self, column: FeedColumn, row: Row, error: ExpressionError) -> ExpressionError:
        shown = f"the row {reprlib.repr(row)} of {self._source}"
        return ExpressionError.of(error.expression, error.reason, row=shown, view=self._owner(column))


def plain_position(column: FeedColumn, table: Table) -> int | None:
    """Where the codes of a feed's column are those of a column of the table, which one; else None."""
    if not isinstance(column.expression, ColumnRef) or column.form not in ("code", "int", "float", "known"):
        return None
    name = column.expression.name.lower()
    return next(i for i, each in enumerate(table.columns) if each.name.lower() == name)
