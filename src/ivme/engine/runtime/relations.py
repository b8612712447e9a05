"""One kernel with its tables and views, and how rows are read from them."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.backend import Backend, Block, Codes, Cursor, Listed
from ivme.engine.codes.domains import NAN_CODE, Domains
from ivme.engine.codes.value_check import NAN_REASON
from ivme.engine.expression.feed_column import FeedColumn
from ivme.engine.ingest.feed import Feed
from ivme.engine.ingest.row_batch import Inputs, Layout, RowBatch
from ivme.engine.runtime.decoding import Row, is_global
from ivme.engine.runtime.delta import Delta
from ivme.engine.runtime.error_check import visible_failure
from ivme.engine.runtime.external_view import ExternalView
from ivme.engine.runtime.following import net, representatives
from ivme.engine.runtime.image import Image
from ivme.engine.runtime.journal import Journal
from ivme.engine.runtime.memory import check_memory, limit_growth, memory_of
from ivme.engine.runtime.open_read import FIRST_ROWS, MANY, OpenRead
from ivme.engine.runtime.positions import Positions
from ivme.engine.runtime.reclaim import Holder
from ivme.engine.runtime.ring_view import Participant
from ivme.engine.runtime.shared_views import SharedViews, too_many
from ivme.engine.runtime.single_row import SingleRowPath
from ivme.engine.runtime.stored_sums import check_row
from ivme.engine.runtime.transaction import StateLock, Transaction
from ivme.engine.runtime.view_state import TableState, ViewState
from ivme.errors import DataError, PlanError
from ivme.plan.ir import program as ir
from ivme.query.model import Table


class Relations:
    """The tables and views of a database. Whoever changes or reads them holds `lock`."""

    def __init__(self, backend: Backend, domains: Domains) -> None:
        self.backend = backend
        self.domains = domains
        self.lock = StateLock()
        self.tables: dict[str, TableState] = {}
        self.views: dict[str, ViewState] = {}
        self.positions = Positions()
        self.journal: Journal | None = None
        self.image: Image | None = None
        self.memory_limit: int | None = None
        self.is_limited = False
        self.ring_views: dict[str, Participant] = {}
        self.maintained: dict[str, ExternalView] = {}
        self.open_reads: dict[int, weakref.ref[OpenRead]] = {}
        self.holders: weakref.WeakSet[Holder] = weakref.WeakSet()
        self._groups: dict[tuple[str, ...], SharedViews] = {}
        self._groups_made = 0
        self._queues: dict[str, list[deque[Delta]]] = {}
        self._layouts: dict[str, Layout] = {}
        self._inputs: dict[str, Inputs] = {}
        self._ways: dict[str, SingleRowPath] = {}
        self._misfits: list[tuple[str, tuple[int, ...]]] = []

    def relation(self, name: str) -> Table:
        """The table of that name, or the view seen as one."""
        return self.tables[name].table if name in self.tables else self.views[name].table

    def layout(self, relation: str) -> Layout:
        """The columns of a table or view."""
        if relation not in self._layouts:
            self._layouts[relation] = Layout(self.relation(relation), self.domains)
        return self._layouts[relation]

    def change_layout(self, state: ViewState) -> Layout:
        """The columns of a view's changes: those of its parameters in front."""
        typed = state.typed
        given = zip(typed.query.parameters, typed.query.input, strict=True)
        return Layout(state.table, self.domains, [(name, typed.types[variable]) for name, variable in given])

    def inputs(self, relation: str) -> Inputs:
        """What the triggers of a relation want: first that of a table's own maps, then those of the groups."""
        found = self._inputs.get(relation)
        if found is None:
            found = self._inputs[relation] = self._wanted(relation, self._feeds(relation))
        return found

    def _feeds(self, relation: str) -> list[tuple[str, Feed]]:
        groups = [group for group in self._groups.values() if relation in group.feeds]
        groups += [group for group in self.maintained.values() if relation in group.feeds]
        feeds = [(group.trigger(relation), group.feeds[relation]) for group in groups]
        state = self.tables.get(relation)
        return feeds if state is None else [(state.rows, state.feed), *feeds]

    def _wanted(self, relation: str, feeds: list[tuple[str, Feed]]) -> Inputs:
        """What triggers want of a relation's rows, in a form that knows whom to name if there is no such thing."""
        kind = "table" if relation in self.tables else "view"
        return Inputs(self.relation(relation), self.domains, feeds, partial(self._owner, relation), kind)

    def _owner(self, relation: str, column: FeedColumn) -> str:
        """A view that computes a column from a relation's rows, or nothing if it is not there yet."""
        for name, state in self.views.items():
            for atom in state.atoms:
                guarded = column.expression in atom.columns and column.guard == atom.where
                if atom.relation == relation and (guarded or column.expression == atom.where):
                    return name
        return ""

    @property
    def groups(self) -> list[SharedViews]:
        """The groups of views that are made of maps."""
        return list(self._groups.values())

    def rebalanced(self, relation: str | None = None) -> list[SharedViews]:
        """The groups of views with partitions; with a relation, those that read it."""
        return [g for g in self._groups.values() if g.rebalancer is not None and relation in (None, *g.feeds)]

    def forget_inputs(self) -> None:
        """To be called whenever a trigger, a table or a view comes, goes or changes."""
        self._layouts.clear()
        self._inputs.clear()
        self._ways.clear()

    def memory(self) -> dict[str, int]:
        """The bytes that rows take; see `memory_of`."""
        return memory_of(self)

    def forget_constants(self) -> None:
        """To be called before codes are taken back: those of constants, and of what is remembered, are found anew."""
        self.domains.memos.forget()

    def all_rows(self, relation: str, *, distinct: bool = True) -> RowBatch:
        """All rows of a table or view, with their multiplicities; equal ones once, unless not asked for."""
        if relation in self.tables:
            columns, counts = self.backend.scan(self.tables[relation].rows, distinct=distinct)
            return RowBatch(self.layout(relation), counts, None, list(columns))
        state = self.views[relation]
        if isinstance(state.group, ExternalView):
            return state.group.all_rows(self.layout(relation))
        parts = [(state.finisher.codes(b), state.finisher.multiplicities(b)) for b in self.blocks(state, ())]
        if not parts and is_global(state.typed.query.head, state.typed.query.output):
            parts = [(state.finisher.nothing_codes(), np.ones(1, np.int64))]
        layout, nothing = self.layout(relation), np.empty(0, np.int64)
        columns = [np.concatenate([nothing, *(part[i] for part, _ in parts)]) for i in range(len(layout.domains))]
        weights = np.concatenate([nothing, *(counts for _, counts in parts)])
        if state.hides_keys:
            columns, weights = net(self.backend, columns, weights)
        return RowBatch(layout, weights, None, list(columns))

    def rows_to_feed(self, relation: str, *, distinct: bool = True) -> RowBatch:
        """The same for another view, which takes what a table may hold."""
        rows = self.all_rows(relation, distinct=distinct)
        if relation in self.views:
            check_numbers(self.views[relation], rows)
        return rows

    def contents(self, relation: str) -> tuple[pa.Table, Codes]:
        """All rows of a table or view in Arrow, and their multiplicities."""
        rows = self.all_rows(relation)
        return rows.data, rows.weights

    def _run_once(self, steps: list[ir.Step], slots: tuple[str, ...]) -> None:
        """Runs steps over whole relations, as a bulk build does."""
        feeds = self.backend.set_trigger("once", steps, slots)
        try:
            inputs = {}
            for relation, feed in feeds.items():
                rows = self.rows_to_feed(relation, distinct=False)
                inputs[relation] = (self._wanted(relation, [("once", feed)]).of(rows)[0][1], rows.weights)
            self.backend.begin()
            try:
                self.backend.run("once", inputs)
                self._misfits += self.backend.misfits()
            except BaseException:
                self.backend.rollback()
                raise
            self.backend.commit()
        except self.backend.overflow as error:
            raise DataError(f"a count over {', '.join(feeds)} does not fit 64 bits") from error
        finally:
            self.backend.drop_trigger("once")

    def check_sums(self) -> None:
        """Raises DataError if the open transaction left a stored sum beyond the type in which a view shows it."""
        for name, codes in dict.fromkeys(self.backend.misfits()):
            for view in (view for group in self._groups.values() for view in group.stored_sums.get(name, ())):
                check_row(self.views[view], codes)

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
        with self.lock:
            self._check_there(state)
            self._refresh(state)
            _, (_, counts, slots, extremes) = state.group.points(state.name, representatives(state, columns))
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
        self._check_there(state)
        self._refresh(state)
        return state.group.open(state.name, inputs, whole=whole)

    def next_block(self, state: ViewState, cursor: Cursor, size: int) -> Block:
        try:
            block = cursor.next_block(size)
        except self.backend.overflow as error:
            raise too_many(state.name) from error
        state.group.observed.rows += len(block[1])
        return block

    def let_reads_finish(self, relations: Collection[str] | None = None) -> None:
        """Before relations change, or with None anything: answers that are read from them are read to their end."""
        changed = set(relations or ())
        for state in self.views.values():
            if relations is None or changed.intersection(state.relations):
                changed.add(state.name)
        for known in tuple(self.open_reads.values()):
            read = known()
            if read is not None and (read.state.name in changed):
                read.finish()

    def small_answer(self, state: ViewState, inputs: tuple[int, ...]) -> Listed | None:
        """The whole answer to an access request if it has few rows, None if there may be more; under the lock."""
        self._check_there(state)
        self._refresh(state)
        return state.group.request(state.name, inputs, FIRST_ROWS)

    def request_many(self, state: ViewState, inputs: Mapping[str, Codes]) -> tuple[Codes, Block]:
        """The rows of many access requests, each with the number of its request."""
        with self.lock:
            self._check_there(state)
            self._refresh(state)
            given = [inputs[original] for _, original in state.group.enumerations[state.name].inputs]
            return state.group.request_many(state.name, given)

    def _check_there(self, state: ViewState) -> None:
        if self.views.get(state.name) is not state:
            raise PlanError(f"view {state.name} was dropped, or its database closed")

    def _refresh(self, state: ViewState) -> None:
        """Strategy `recompute`: builds the view anew if a table changed since the last read."""
        if not state.lazy or not state.stale:
            return
        with self.lock:
            if self.lock.pending is not None:  # as part of what is under way
                self._rebuild(state)
                return
            with Transaction(self.lock, [self.backend.rollback]):
                limit_growth(self)
                self._rebuild(state)
                check_memory(self)

    def _rebuild(self, state: ViewState) -> None:
        """One that is interrupted, or refused, leaves the view stale."""
        steps: list[ir.Step] = []
        filled: frozenset[str] = frozenset()
        beside = (check.name for check in state.checks if check.group is state.group)  # others are maintained
        for name in (state.name, *beside):
            steps += state.group.assembly.build(name, filled)
            filled = frozenset(step.map for step in steps if isinstance(step, ir.Add))
        for name in filled:
            self.backend.clear_map(name)
        self._run_once(steps, state.group.slots)
        self.check_failures(state)
        state.stale = False


def check_numbers(state: ViewState, rows: RowBatch) -> None:
    """Refuses rows of a view that a table could not hold: a sum of floats may be no number."""
    for position in state.finisher.floats:
        if (rows.code(position) == NAN_CODE).any():
            raise DataError(f"view {state.name}, column {state.table.column_names[position]}: {NAN_REASON}")


def weighted(data: pa.Table, weights: Codes) -> dict[Row, int]:
    """Rows as Python values with their net weights."""
    total: dict[Row, int] = {}
    columns = [column.to_pylist() for column in data.columns]
    rows = zip(*columns, strict=True) if columns else iter([()] * data.num_rows)
    for row, weight in zip(rows, weights.tolist(), strict=True):
        total[row] = total.get(row, 0) + weight
    return {row: weight for row, weight in total.items() if weight}
