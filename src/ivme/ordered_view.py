"""A view with ORDER BY or LIMIT: a block keeps all of its rows, and they are sorted and cut when they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivme.engine.backend import Block, Cursor, Listed
from ivme.engine.codes.dictionary import Codes
from ivme.engine.ingest.row_batch import Layout, RowBatch
from ivme.engine.read.recompute import Row, recompute
from ivme.engine.read.verify import compare_rows, counted
from ivme.engine.runtime.distinct import Weighted
from ivme.engine.runtime.external_view import ExternalView
from ivme.engine.runtime.following import net
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.view_state import ViewState
from ivme.errors import PlanError
from ivme.plan.ir.program import Enumeration
from ivme.query.model import Query
from ivme.query.order import HIDDEN, Order


class OrderedView(ExternalView):
    """The rows of the view `inner` in an order; `shape` is the query that they look like they come from."""

    needs_changes = False

    def __init__(self, shape: Query, inner: str, order: Order, reader: Reader) -> None:
        catalog = reader.catalog
        super().__init__(shape.name, ("ordered", shape.name), catalog.backend, catalog.domains, ())
        self.relations = (inner,)
        self.enumerations = {shape.name: Enumeration(tuple((v, v) for v in shape.input), shape.output, (), (), ())}
        self.inner = inner
        self._order = order.over(catalog.views[inner].table.column_names)
        self._reader = reader
        self._has_inputs = bool(shape.input)
        self._shown: RowBatch | None = None
        self._next: RowBatch | None = None
        self._touched = False

    # Changes

    def build(self, rows: Mapping[str, RowBatch]) -> None:
        """There is nothing to build."""

    def apply(self, relation: str, rows: RowBatch) -> None:  # noqa: ARG002  it reads one
        self._touched = True

    def commit(self) -> None:
        self._shown, self._next = self._shown if self._next is None else self._next, None
        self._touched = False

    def roll_back(self) -> None:
        self._next, self._touched = None, False

    def follow(self, on: bool) -> None:
        if on and self._has_inputs:
            message = "has parameters and an order, so that its changes cannot be followed; follow it without LIMIT"
            raise PlanError(f"view {self.name} {message}")
        self._shown = self._sorted(()) if on else None

    def changed(self, layout: Layout) -> RowBatch:
        """The rows that come and go: those shown now against those shown before."""
        assert self._shown is not None
        self._next = self._sorted(()) if self._touched else self._shown
        columns = [np.concatenate([new, old]) for new, old in zip(self._next.codes(), self._shown.codes(), strict=True)]
        weights = np.concatenate([self._next.weights, -self._shown.weights])
        names = self._reader.catalog.relation(self.inner).column_names
        kept = [column for column, name in zip(columns, names, strict=True) if not name.startswith(HIDDEN)]
        kept, weights = net(self._backend, kept, weights)
        return RowBatch(layout, weights, None, list(kept))

    # Reading

    def _sorted(self, inputs: Sequence[int]) -> RowBatch:
        """The rows that are shown, in their order."""
        state = self._reader.catalog.views[self.inner]
        rows = self._reader.all_rows(self.inner) if not self._has_inputs else self._requested(state, inputs)
        order = _sort(rows.data, self._order)
        counts = rows.weights[order]
        if not self._order.is_whole:
            order, counts = _cut(order, counts, self._order)
        return rows.kept(order, counts)

    def arranged(self, parts: Sequence[Weighted], schema: pa.Schema) -> Weighted:
        """Rows of the inner view, as this one shows them."""
        names = self._reader.catalog.relation(self.inner).column_names
        counts = np.concatenate([np.empty(0, np.int64), *(each for _, each in parts)])
        if not parts:
            return pa.RecordBatch.from_pylist([], schema=schema), counts
        data = pa.Table.from_batches([batch for batch, _ in parts])
        order = _sort(data, self._order)
        weights = counts[order]
        if not self._order.is_whole:
            order, weights = _cut(order, weights, self._order)
        rows = data.take(pa.array(order))
        shown = [rows.column(place).combine_chunks() for place, name in enumerate(names) if not name.startswith(HIDDEN)]
        return pa.RecordBatch.from_arrays(shown, schema=schema), weights

    def _requested(self, state: ViewState, inputs: Sequence[int]) -> RowBatch:
        layout, nothing = self._reader.catalog.layout(self.inner), np.empty(0, np.int64)
        values = {
            variable: state.finisher.domain(variable).decode_value(code)
            for variable, code in zip(state.typed.query.input, inputs, strict=True)
        }
        parts, weights = [], [nothing]
        codes = dict(zip(state.typed.query.input, inputs, strict=True))
        wanted = tuple(codes[original] for _, original in state.group.enumerations[state.name].inputs)
        for block in self._reader.blocks(state, wanted):
            batch, counts = state.finisher.batch(block, values)
            parts.append(batch)
            weights.append(counts)
        return RowBatch(layout, np.concatenate(weights), pa.Table.from_batches(parts, schema=layout.schema))

    def all_rows(self, layout: Layout) -> RowBatch:
        rows = self._sorted(())
        names = self._reader.catalog.relation(self.inner).column_names
        codes = [column for column, name in zip(rows.codes(), names, strict=True) if not name.startswith(HIDDEN)]
        return RowBatch(layout, rows.weights, None, list(codes))

    def open(self, view: str, inputs: Sequence[int], *, whole: bool = False) -> Cursor:  # noqa: ARG002
        return _Rows(self._sorted(inputs))

    def request(self, view: str, inputs: Sequence[int], limit: int) -> Listed | None:  # noqa: ARG002
        return None

    def request_many(self, reader: str, columns: Sequence[Codes]) -> tuple[Codes, Block]:  # noqa: ARG002
        numbers, parts = [np.empty(0, np.int64)], []
        for number, inputs in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            rows = self._sorted(inputs)
            numbers.append(np.full(len(rows.weights), number))
            parts.append(rows)
        width = len(self._reader.catalog.relation(self.inner).column_names)
        nothing = np.empty(0, np.int64)
        joined = [np.concatenate([nothing, *(part.code(i) for part in parts)]) for i in range(width)]
        counts = np.concatenate([nothing, *(part.weights for part in parts)])
        return np.concatenate(numbers), (joined, counts, [], [])

    def points(self, view: str, columns: Sequence[Codes]) -> tuple[Codes, Block]:  # noqa: ARG002
        """The rows at whole keys: inputs, then outputs."""
        count = len(columns) - len(self.enumerations[self.name].outputs)
        numbers, block = self.request_many(self.name, columns[:count]) if count else (None, self._all())
        found = block[0]
        wanted = np.ones(len(block[1]), bool)
        for column, codes in zip(columns[count:], found, strict=True):
            wanted &= codes == (column[0] if numbers is None else column[numbers])
        places = np.flatnonzero(wanted)
        first = np.zeros(len(places), np.int64) if numbers is None else numbers[places]
        return first, ([codes[places] for codes in found], block[1][places], [], [])

    def _all(self) -> Block:
        rows = self._sorted(())
        return rows.codes(), rows.weights, [], []

    def held_codes(self) -> list[Codes]:
        return [] if self._shown is None else self._shown.held_codes()

    def memory_bytes(self) -> int:
        return 0 if self._shown is None else sum(codes.nbytes for codes in self._shown.held_codes())

    def verify(self, reader: Reader, state: ViewState) -> None:
        """Compares the rows with those that Python sorts; of a view with parameters, those of some requests."""
        for inputs, rows in self._expected(reader):
            given = f" for {inputs!r}" if inputs else ""
            domains = [state.finisher.domain(variable) for variable in state.typed.query.input]
            codes = [domain.encode_value(value) for domain, value in zip(domains, inputs, strict=True)]
            shown = self._sorted(codes)
            found = zip(shown.rows(), shown.weights.tolist(), strict=True)
            expected = counted((row, 1) for row in _first(rows, self._order))
            compare_rows(f"view {state.name}{given}", expected, counted(found))

    def _expected(self, reader: Reader) -> Iterator[tuple[Row, list[Row]]]:
        """Requests, each with all rows of the block that it has, repeated by their multiplicities."""
        if not self._has_inputs:
            rows = reader.all_rows(self.inner)
            pairs = zip(rows.rows(), rows.weights.tolist(), strict=True)
            yield (), [row for row, weight in pairs for _ in range(weight)]
            return
        query = reader.catalog.views[self.inner].typed.written
        groups: dict[Row, list[Row]] = {}
        for key, (row, count) in recompute(reader, query).items():
            groups.setdefault(key[: len(query.input)], []).extend([row] * count)
        yield from list(groups.items())[:_SAMPLED]


_SAMPLED = 64
"""How many requests are verified."""


def _first(rows: list[Row], order: Order) -> list[Row]:
    """The rows that are shown, found by Python's sort."""
    whole = _stable(sorted(rows, key=lambda row: [_rank(value) for value in row]), order)
    return whole[order.offset : None if order.limit is None else order.offset + order.limit]


def _rank(value: object) -> tuple[bool, object]:
    return (value is not None, value if value is not None else 0)


def _stable(rows: list[Row], order: Order) -> list[Row]:
    """Rows that are sorted by all columns, sorted by the keys."""
    for key in reversed(order.keys):
        place = key.column
        assert isinstance(place, int)
        nulls = [row for row in rows if row[place] is None]
        known = [row for row in rows if row[place] is not None]
        known.sort(key=itemgetter(place), reverse=key.descending)
        rows = nulls + known if key.nulls_first else known + nulls
    return rows


def _sort(data: pa.Table, order: Order) -> Codes:
    """The positions of rows in their order."""
    ways = [(key.column, key.descending, key.nulls_first) for key in order.keys]
    ways += [(place, False, True) for place in range(data.num_columns)]
    columns, directions = [], []
    for place, descending, nulls_first in ways:
        assert isinstance(place, int)
        column = data.column(place)
        columns += [pc.cast(pc.is_null(column), pa.int8()), column]
        directions += ["descending" if nulls_first else "ascending", "descending" if descending else "ascending"]
    if not columns:
        return np.arange(data.num_rows, dtype=np.int64)
    names = [str(number) for number in range(len(columns))]
    found = pc.sort_indices(pa.table(columns, names=names), sort_keys=list(zip(names, directions, strict=True)))
    places: Codes = found.to_numpy().astype(np.int64)
    return places


def _cut(rows: Codes, counts: Codes, order: Order) -> tuple[Codes, Codes]:
    """The rows from OFFSET up to LIMIT. Of a repeated row at an edge, only the copies inside count."""
    ends = np.cumsum(counts)
    last = ends[-1] if order.limit is None and len(ends) else order.offset + (order.limit or 0)
    kept = np.clip(np.minimum(ends, last) - np.maximum(ends - counts, order.offset), 0, None)
    there = np.flatnonzero(kept)
    return rows[there], kept[there]


class _Rows:
    """The rows of a batch in pages."""

    def __init__(self, rows: RowBatch) -> None:
        self._rows = rows
        self._start = 0

    def next_block(self, max_rows: int = 8192) -> Block:
        end = self._start + max_rows
        columns = [codes[self._start : end] for codes in self._rows.codes()]
        counts = self._rows.weights[self._start : end]
        self._start = end
        return columns, counts, [], []
