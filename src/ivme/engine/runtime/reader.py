"""How rows are read from tables and views: whole, by access requests, and by single rows."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.backend import Block, Codes, Cursor, Listed
from ivme.engine.codes.domains import NAN_CODE
from ivme.engine.codes.value_check import NAN_REASON
from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.runtime.catalog import Catalog
from ivme.engine.runtime.decoding import Row, is_global
from ivme.engine.runtime.error_check import visible_failure
from ivme.engine.runtime.external_view import ExternalView
from ivme.engine.runtime.following import net, representatives
from ivme.engine.runtime.memory import check_memory, limit_growth
from ivme.engine.runtime.open_read import FIRST_ROWS, MANY
from ivme.engine.runtime.stored_rows import StoredRows
from ivme.engine.runtime.transaction import SharedSide, StateLock, Transaction, Undo
from ivme.engine.runtime.view_readers import too_many
from ivme.engine.runtime.view_state import ViewState
from ivme.errors import DataError
from ivme.plan.ir import program as ir
from ivme.query.model import Table


class Reader:
    """Reads what is in a catalog. A view that is recomputed is built when it is read."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def relation(self, name: str) -> Table:
        """The table of that name, or the view seen as one."""
        return self.catalog.relation(name)

    def is_shared(self, state: ViewState) -> bool:
        """Whether reading a view changes nothing, so that readers do it beside each other.

        Views change that are built when they are read; parameters may get codes of their own; of what is not made of
        the kernel's maps it is not known.
        """
        query = state.typed.query
        plain = self.catalog.backend.shares_reading and state.group.shares_reading
        return plain and not (query.ends or any(query.known) or state.lazy)

    def is_lazy(self, state: ViewState) -> bool:
        """Whether a request holds what its rows are made of: they are read while they are taken then."""
        return not isinstance(state.group, ExternalView) and state.group.is_lazy(state.name)

    def lock_of(self, state: ViewState) -> StateLock | SharedSide:
        """The lock under which a view is read."""
        return self.catalog.lock.shared if self.is_shared(state) else self.catalog.lock

    def all_rows(self, relation: str, *, only_decodes: bool = False) -> RowBatch:
        """All rows of a table or view, with their multiplicities; equal ones once.

        Who only decodes them may get several codes for equal strings of a table."""
        if relation in self.catalog.tables:
            self.catalog.check_kept(relation)
            stored = self.catalog.tables[relation].rows
            columns, counts = self.catalog.backend.scan(stored, only_decodes=only_decodes)
            return RowBatch(self.catalog.layout(relation), counts, None, list(columns))
        state = self.catalog.views[relation]
        if isinstance(state.group, ExternalView):
            return state.group.all_rows(self.catalog.layout(relation))
        parts = [(state.finisher.codes(b), state.finisher.multiplicities(b)) for b in self.blocks(state, ())]
        if not parts and is_global(state.typed.query.head, state.typed.query.output):
            parts = [(state.finisher.nothing_codes(), np.ones(1, np.int64))]
        layout, nothing = self.catalog.layout(relation), np.empty(0, np.int64)
        columns = [np.concatenate([nothing, *(part[i] for part, _ in parts)]) for i in range(len(layout.domains))]
        weights = np.concatenate([nothing, *(counts for _, counts in parts)])
        if state.hides_keys:
            columns, weights = net(self.catalog.backend, columns, weights)
        return RowBatch(layout, weights, None, list(columns))

    def rows_to_feed(self, relation: str, read: Container[str] | None = None, *, each: bool = False) -> RowBatch:
        """The same for another view, which takes only what a table may hold, in the columns that it reads (None: all).

        With `each`, equal rows of a table may come more than once, and only requested columns are copied.
        """
        if each and relation in self.catalog.tables:
            self.catalog.check_kept(relation)
            stored = self.catalog.tables[relation].rows
            return StoredRows(self.catalog.layout(relation), self.catalog.backend, stored)
        rows = self.all_rows(relation)
        if relation in self.catalog.views:
            check_numbers(self.catalog.views[relation], rows, read)
        return rows

    def contents(self, relation: str) -> tuple[pa.Table, Codes]:
        """All rows of a table or view in Arrow, and their multiplicities."""
        rows = self.all_rows(relation, only_decodes=True)
        return rows.data, rows.weights

    def run_once(self, steps: Sequence[ir.Step], slots: tuple[str, ...]) -> None:
        """Runs steps over whole relations, as a bulk build does."""
        feeds = self.catalog.backend.set_trigger("once", steps, slots)
        try:
            inputs = {}
            for relation, feed in feeds.items():
                rows = self.rows_to_feed(relation, feed.read, each=True)
                inputs[relation] = (self.catalog.wanted(relation, [("once", feed)]).of(rows)[0][1], rows.weights)
            self.catalog.backend.begin()
            try:
                self.catalog.backend.run("once", inputs)
                self.catalog.misfits += self.catalog.backend.misfits()
            except BaseException:
                self.catalog.backend.roll_back()
                raise
            self.catalog.backend.commit()
        except self.catalog.backend.overflow as error:
            raise DataError(f"a count over {', '.join(feeds)} does not fit 64 bits") from error
        finally:
            self.catalog.backend.drop_trigger("once")

    def check_failures(self, state: ViewState) -> None:
        """Raises ExpressionError if the view would show a row for which an expression fails.

        What was open before the call has to be rolled back then.
        """
        for check in state.checks:
            if check.has_row():
                raise visible_failure(self, state, check)

    def row_at(self, state: ViewState, codes: list[int], inputs: Mapping[str, Any]) -> tuple[Row, int] | None:
        """The row whose inputs and outputs are given, with its multiplicity, or None; constant time."""
        columns = [np.array([code], dtype=np.int64) for code in codes]
        with self.lock_of(state):
            self.catalog.check_there(state)
            self.refresh(state)
            _, (_, counts, slots, extremes) = state.group.points(state.name, representatives(state, columns))
        self.note_request(state, len(counts))
        if not len(counts):
            return None
        block: Block = (columns[len(state.typed.query.input) :], counts, slots, extremes)
        return next(state.finisher.rows(block, inputs))

    def blocks(self, state: ViewState, inputs: tuple[int, ...], *, whole: bool = True) -> Iterator[Block]:
        """The answer to a request in blocks, for a caller who holds the lock and, if `whole`, reads all of it."""
        cursor = self.open_cursor(state, inputs, whole=whole)
        while len((block := self.next_block(state, cursor, MANY))[1]):
            yield block

    def open_cursor(self, state: ViewState, inputs: tuple[int, ...], *, whole: bool = False) -> Cursor:
        self.catalog.check_there(state)
        self.refresh(state)
        try:
            return state.group.open(state.name, inputs, whole=whole)
        except self.catalog.backend.overflow as error:
            raise too_many(state.name) from error

    def next_block(self, state: ViewState, cursor: Cursor, size: int) -> Block:
        try:
            block = cursor.next_block(size)
        except self.catalog.backend.overflow as error:
            raise too_many(state.name) from error
        state.group.observed.rows += len(block[1])
        return block

    def small_answer(self, state: ViewState, inputs: tuple[int, ...], *, waits: bool = True) -> Listed | None:
        """The whole answer to an access request if it has few rows, None if there may be more.

        Under the lock; without it, None also if it would have to wait for a writer.
        """
        self.catalog.check_there(state)
        if not waits:
            answer = state.group.try_request(state.name, inputs, FIRST_ROWS)
        else:
            self.refresh(state)
            answer = state.group.request(state.name, inputs, FIRST_ROWS)
        if answer is not None:
            self.note_request(state, len(answer[1]))
        return answer

    def note_request(self, state: ViewState, rows: int, requests: int = 1) -> None:
        """Takes down that requests were answered, with so many rows together."""
        state.observed.read(rows, requests)
        self.catalog.note_uses(requests)

    def request_many(self, state: ViewState, inputs: Mapping[str, Codes]) -> tuple[Codes, Block]:
        """The rows of many access requests, each with the number of its request."""
        with self.lock_of(state):
            self.catalog.check_there(state)
            self.refresh(state)
            given = [inputs[original] for _, original in state.group.enumerations[state.name].inputs]
            numbers, block = state.group.request_many(state.name, given)
        self.note_request(state, len(numbers), len(given[0]) if given else 1)
        return numbers, block

    def refresh(self, state: ViewState) -> None:
        """Strategy `recompute`: rebuilds the view if a table changed since the last read."""
        if not state.lazy or not state.stale:
            return
        with self.catalog.lock:
            if self.catalog.lock.pending is not None:  # as part of what is under way
                self._rebuild(state)
                return
            with Transaction(self.catalog.lock, [Undo([self.catalog.backend.roll_back])]):
                limit_growth(self.catalog)
                self._rebuild(state)
                check_memory(self.catalog)

    def _rebuild(self, state: ViewState) -> None:
        """One that is interrupted, or refused, leaves the view stale."""
        beside = (check.name for check in state.checks if check.group is state.group)  # others are maintained
        runs: list[tuple[ir.Step, ...]] = []
        filled: frozenset[str] = frozenset()
        for name in (state.name, *beside):
            runs.append(state.group.views[name].assembly.build(name, filled))
            filled = filled.union(step.map for step in runs[-1] if isinstance(step, ir.Add))
        for name in filled:
            self.catalog.backend.clear_map(name)
        for steps in runs:
            self.run_once(steps, state.group.slots)
        self.check_failures(state)
        state.stale = False


def check_numbers(state: ViewState, rows: RowBatch, read: Container[str] | None = None) -> None:
    """Refuses rows that a table could not hold in the columns that are read: a sum of floats may be no number."""
    for position in state.floats:
        column = state.table.column_names[position]
        if (read is None or column in read) and (rows.code(position) == NAN_CODE).any():
            raise DataError(f"view {state.name}, column {column}: {NAN_REASON}")
