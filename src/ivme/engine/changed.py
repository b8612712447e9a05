"""Changed rows on their way into the kernel: columns as codes and as Arrow, each made when first asked for.

A relation's triggers want columns of its rows: most as they are, by their codes; some as the value of an expression.
What they want is sorted out once, when triggers change; a batch then computes each column once for all triggers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.arrow_expression import evaluate_columns
from ivme.engine.arrow_types import arrow_schema, declared_type
from ivme.engine.code_expression import code_number, code_test, has_codes, number_form
from ivme.engine.dictionary import NULL_CODE, Codes
from ivme.engine.domains import BatchEncoder, Domain, Domains
from ivme.engine.feed import Feed, FeedColumn
from ivme.engine.row_column import row_column
from ivme.errors import DataError
from ivme.query.expression import ColumnRef
from ivme.query.inference import type_of
from ivme.query.model import Table


class Changed:
    """Rows of a relation and their weights. Of `data` and `codes` one may be left out, or a part of the codes."""

    __slots__ = ("_codes", "_data", "_layout", "weights")

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

    @property
    def data(self) -> pa.Table:
        """The columns in Arrow."""
        if self._data is None:
            decoded = zip(self._layout.domains, self.codes(), strict=True)
            arrays = [domain.decode(codes) for domain, codes in decoded]
            self._data = pa.Table.from_arrays(arrays, schema=self._layout.schema)
        elif isinstance(self._data, pa.RecordBatch):
            self._data = pa.Table.from_batches([self._data])
        return self._data

    def listed(self) -> list[list[Any]]:
        """The rows as Python values."""
        columns = zip(self._layout.domains, self.codes(), strict=True)
        return [list(row) for row in zip(*(domain.values(codes.tolist()) for domain, codes in columns), strict=True)]

    def kept(self, rows: Sequence[int] | Codes, weights: Codes) -> Changed:
        """Some of the rows, with other weights."""
        return Changed(self._layout, weights, None, [codes[rows] for codes in self.codes()])


def joined(parts: Sequence[Changed]) -> Changed:
    """The rows of several changes of one relation."""
    if len(parts) == 1:
        return parts[0]
    columns = [np.concatenate(codes) for codes in zip(*(part.codes() for part in parts), strict=True)]
    return Changed(parts[0]._layout, np.concatenate([part.weights for part in parts]), None, list(columns))


class Layout:
    """The columns of a relation: their domains and Arrow types."""

    __slots__ = ("domains", "encoder", "floats", "schema")

    def __init__(self, table: Table, domains: Domains) -> None:
        self.domains: list[Domain] = [domains.domain(declared_type(table, column)) for column in table.columns]
        self.encoder = domains.encoder_of(table.column_names, self.domains)
        self.schema = arrow_schema(table)
        self.floats = [i for i, domain in enumerate(self.domains) if domain.type.kind == "float"]


def codes_of(rows: Any, layout: Layout) -> list[Codes | None] | None:
    """The codes of Arrow rows that are what the table wants as they are; None if not, or if a value is in doubt."""
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


def _encoded(rows: Any, encoder: BatchEncoder) -> Codes | None:
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


_Column = Callable[[Changed, list[Any]], Codes]
"""Computes a column of a feed; the list holds what was computed for other columns from the same expression."""


class Inputs:
    """What the triggers of a relation want of its rows, by trigger."""

    __slots__ = ("_columns", "_expressions", "_few", "triggers")

    def __init__(self, table: Table, domains: Domains, feeds: Sequence[tuple[str, Feed]]) -> None:
        wanted = list(dict.fromkeys(column for _, feed in feeds for column in feed.columns))
        expressions = list(dict.fromkeys(column.expression for column in wanted))
        self._expressions = len(expressions)
        self._columns = [_column(column, expressions.index(column.expression), table, domains) for column in wanted]
        self._few = [_few_column(column, table, domains) for column in wanted]
        self.triggers = [(name, [wanted.index(column) for column in feed.columns]) for name, feed in feeds]

    def of(self, changed: Changed) -> list[tuple[str, list[Codes]]]:
        """For each trigger its columns."""
        columns = self._of_few(changed) if len(changed.weights) <= _FEW else None
        if columns is None:
            evaluated: list[Any] = [None] * (2 * self._expressions)
            columns = [column(changed, evaluated) for column in self._columns]
        return [(name, [columns[i] for i in picked]) for name, picked in self.triggers]

    def _of_few(self, changed: Changed) -> list[Codes] | None:
        """The columns row by row; None if there is nothing to compute, or a value is in doubt."""
        if all(isinstance(column, int) for column in self._few):
            return None
        rows = list(map(tuple, changed.listed()))
        try:
            return [
                changed.code(column) if isinstance(column, int) else np.array([column(row) for row in rows], np.int64)
                for column in self._few
            ]
        except DataError:
            return None


_FEW = 16
"""Up to this many rows are computed one by one, which takes less than a call of Arrow for each expression."""


def _few_column(column: FeedColumn, table: Table, domains: Domains) -> int | Callable[[tuple[Any, ...]], int]:
    position = plain_position(column, table)
    return row_column(column, table, domains) if position is None else position


def plain_position(column: FeedColumn, table: Table) -> int | None:
    """Where the codes of a feed's column are those of a column of the table, which one; else None."""
    if not isinstance(column.expression, ColumnRef) or column.form not in ("code", "int", "float", "known"):
        return None
    name = column.expression.name.lower()
    return next(i for i, each in enumerate(table.columns) if each.name.lower() == name)


def _column(column: FeedColumn, place: int, table: Table, domains: Domains) -> _Column:
    """The column `place` among the expressions, by the quickest way that is exact."""
    position = plain_position(column, table)
    if position is not None:
        return lambda changed, _: changed.code(position)
    in_arrow = _arrow_column(column, 2 * place, table, domains)
    if column.form == "test":
        test = code_test(column.expression, table, domains)
        return in_arrow if test is None else lambda changed, _: test(changed).astype(np.int64)
    type_ = type_of(column.expression, table)
    numeric = code_number(column.expression, table)
    if numeric is None or type_ is None or not (has_codes(type_) or column.form in ("low", "high", "known")):
        return in_arrow
    form, numbered = column.form, 2 * place + 1

    def computed(changed: Changed, evaluated: list[Any]) -> Codes:
        if evaluated[numbered] is None:
            evaluated[numbered] = numeric(changed) or _TOO_LARGE
        numbers = evaluated[numbered]
        return in_arrow(changed, evaluated) if numbers is _TOO_LARGE else number_form(numbers, form)

    return computed


_TOO_LARGE = object()
"""In place of numbers that may not fit 64 bits."""


def _arrow_column(column: FeedColumn, place: int, table: Table, domains: Domains) -> _Column:
    expression = column.expression
    encode = _encoder(column, table, domains)

    def computed(changed: Changed, evaluated: list[Any]) -> Codes:
        if evaluated[place] is None:
            evaluated[place] = evaluate_columns(expression, changed.data)
        return encode(evaluated[place])

    return computed


def _encoder(column: FeedColumn, table: Table, domains: Domains) -> Callable[[Any], Codes]:
    if column.form == "test":
        return _tested
    if column.form == "known":
        return _known
    if column.form in ("low", "high"):
        word = 0 if column.form == "low" else 1
        return lambda array: _word(array, word)
    type_ = type_of(column.expression, table)
    assert type_ is not None
    return domains.domain(type_).encode


def _tested(array: Any) -> Codes:
    """1 where a predicate holds; neither false nor NULL is that."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), dtype=np.int64)
    held = array.fill_null(False) if array.null_count else array
    codes: Codes = held.cast(pa.int8()).to_numpy().astype(np.int64)
    return codes


def _known(array: Any) -> Codes:
    """A code that is NULL where the value is, and says nothing else."""
    codes = np.zeros(len(array), dtype=np.int64)
    if array.null_count:
        codes[array.is_null().to_numpy(zero_copy_only=False)] = NULL_CODE
    return codes


def _word(array: Any, word: int) -> Codes:
    """The low or high words of decimals without their point; NULL counts as 0."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    array = array.fill_null(0) if array.null_count else array
    words = np.frombuffer(array.buffers()[1] or b"", dtype="<i8").reshape(-1, 2)
    return np.ascontiguousarray(words[array.offset : array.offset + len(array), word])
