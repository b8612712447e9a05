"""Changed rows on their way into the kernel: columns as codes and as Arrow, each made when first asked for.

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
from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.codes.domains import BatchEncoder, Domain, Domains
from ivme.engine.expression.arrow_expression import evaluate_columns, evaluate_guarded
from ivme.engine.expression.code_expression import code_number, code_test, has_codes, number_form
from ivme.engine.expression.row_expression import getter
from ivme.engine.ingest.feed import Feed, FeedColumn
from ivme.engine.ingest.row_column import row_columns
from ivme.errors import DataError, ExpressionError
from ivme.query.expression import ColumnRef
from ivme.query.inference import in_type, type_of
from ivme.query.model import Table
from ivme.query.types import Type


class Changed:
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
        """The values are encoded anew: codes of some may have been taken back."""
        assert self._data is not None, "rows that are codes only are held"
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

    def kept(self, rows: Sequence[int] | Codes, weights: Codes) -> Changed:
        """Some of the rows, with other weights."""
        return Changed(self._layout, weights, None, [codes[rows] for codes in self.codes()])


def _table(arrays: list[pa.Array], schema: pa.Schema, rows: int) -> pa.Table:
    """The columns as a table; one without columns has rows, too."""
    if arrays:
        return pa.Table.from_arrays(arrays, schema=schema)
    return pa.table({"": pa.nulls(rows)}).select([])


def joined(parts: Sequence[Changed]) -> Changed:
    """The rows of several changes of one relation."""
    if len(parts) == 1:
        return parts[0]
    columns = [np.concatenate(codes) for codes in zip(*(part.codes() for part in parts), strict=True)]
    return Changed(parts[0]._layout, np.concatenate([part.weights for part in parts]), None, list(columns))


class Layout:
    """The columns of a relation: their domains and Arrow types. Those of a view's parameters may be in front."""

    __slots__ = ("domains", "encoder", "floats", "schema")

    def __init__(self, table: Table, domains: Domains, front: Sequence[tuple[str, Type]] = ()) -> None:
        types = [*(type_ for _, type_ in front), *(declared_type(table, column) for column in table.columns)]
        self.domains: list[Domain] = [domains.domain(type_) for type_ in types]
        self.encoder = None if front else domains.encoder_of(table.column_names, self.domains)
        self.schema = pa.schema([*(pa.field(name, arrow_type(type_)) for name, type_ in front), *arrow_schema(table)])
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


_Column = Callable[[Changed, dict[Any, Any]], Codes]
"""Computes a column of a feed; the dictionary holds what was computed for other columns of the same rows."""

Owner = Callable[[FeedColumn], str]
"""The name of a view that has a column of a feed, for messages."""


class Inputs:
    """What the triggers of a relation want of its rows, by trigger."""

    __slots__ = ("_columns", "_few", "_owner", "_plain", "_source", "_table", "_wanted", "triggers")

    def __init__(
        self,
        table: Table,
        domains: Domains,
        feeds: Sequence[tuple[str, Feed]],
        owner: Owner = lambda _: "",
        kind: str = "table",
    ) -> None:
        self._wanted = wanted = list(dict.fromkeys(column for _, feed in feeds for column in feed.columns))
        self._table = table
        self._owner = owner
        self._source = f"{kind} {table.name}"
        self._columns = [_column(column, table, domains) for column in wanted]
        self._plain = [plain_position(column, table) for column in wanted]
        computed = [column for column in wanted if plain_position(column, table) is None]
        self._few = row_columns(computed, table, domains) if computed else None
        self.triggers = [(name, [wanted.index(column) for column in feed.columns]) for name, feed in feeds]

    def of(self, changed: Changed) -> list[tuple[str, list[Codes]]]:
        """For each trigger its columns."""
        columns = self._of_few(changed) if len(changed.weights) <= _FEW else None
        if columns is None:
            known: dict[Any, Any] = {}
            columns = [
                self._computed(column, wanted, changed, known)
                for column, wanted in zip(self._columns, self._wanted, strict=True)
            ]
        return [(name, [columns[i] for i in picked]) for name, picked in self.triggers]

    def _computed(self, column: _Column, wanted: FeedColumn, changed: Changed, known: dict[Any, Any]) -> Codes:
        try:
            return column(changed, known)
        except ExpressionError as error:
            raise self._named(wanted, changed, error) from error

    def _named(self, column: FeedColumn, changed: Changed, error: ExpressionError) -> ExpressionError:
        """The error with the first row that it is about, and a view that has the expression."""
        get = getter(column.expression, self._table.column_names, column.guard)
        type_ = None if column.form == "test" else type_of(column.expression, self._table)
        for row in changed.rows():
            try:
                in_type(get(row), type_, column.expression)
            except ExpressionError as found:
                shown = f"the row {reprlib.repr(row)} of {self._source}"
                return ExpressionError.of(found.expression, found.reason, row=shown, view=self._owner(column))
        return error.of_view(self._owner(column))

    def _of_few(self, changed: Changed) -> list[Codes] | None:
        """The columns row by row; None if there is nothing to compute, or a value is in doubt."""
        if self._few is None:
            return None
        try:
            rows = [self._few(row) for row in changed.rows()]
        except DataError:
            return None
        computed = iter(np.array(rows, np.int64).reshape(len(rows), self._plain.count(None)).T)
        return [
            np.ascontiguousarray(next(computed)) if position is None else changed.code(position)
            for position in self._plain
        ]


_FEW = 16
"""Up to this many rows are computed one by one, which takes less than a call of Arrow for each expression."""


def plain_position(column: FeedColumn, table: Table) -> int | None:
    """Where the codes of a feed's column are those of a column of the table, which one; else None."""
    if not isinstance(column.expression, ColumnRef) or column.form not in ("code", "int", "float", "known"):
        return None
    name = column.expression.name.lower()
    return next(i for i, each in enumerate(table.columns) if each.name.lower() == name)


def _column(column: FeedColumn, table: Table, domains: Domains) -> _Column:
    """The column, by the quickest way that is exact. Ways over codes never fail, so that they need no guard."""
    position = plain_position(column, table)
    if position is not None:
        return lambda changed, _: changed.code(position)
    in_arrow = _arrow_column(column, table, domains)
    if column.form == "test":
        test = code_test(column.expression, table, domains)
        return in_arrow if test is None else lambda changed, _: test(changed).astype(np.int64)
    type_ = type_of(column.expression, table)
    numeric = code_number(column.expression, table)
    if numeric is None or type_ is None or not (has_codes(type_) or column.form in ("low", "high", "known")):
        return in_arrow
    form, place = column.form, ("numbers", column.expression)

    def computed(changed: Changed, known: dict[Any, Any]) -> Codes:
        if place not in known:
            known[place] = numeric(changed)
        numbers = known[place]
        return in_arrow(changed, known) if numbers is None else number_form(numbers, form)

    return computed


def _arrow_column(column: FeedColumn, table: Table, domains: Domains) -> _Column:
    encode = _encoder(column, table, domains)
    place = expression, guard = column.expression, column.guard
    test = None if guard is None else _column(FeedColumn(guard, "test"), table, domains)

    def values(changed: Changed, known: dict[Any, Any]) -> Any:
        if test is None:
            return evaluate_columns(expression, changed.data)
        if ("test", guard) not in known:
            known["test", guard] = test(changed, known) == 1
        return evaluate_guarded(expression, changed.data, known["test", guard])

    def computed(changed: Changed, known: dict[Any, Any]) -> Codes:
        if place not in known:
            known[place] = values(changed, known)
        return encode(known[place])

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
