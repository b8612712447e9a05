"""A batch of changes: collected, then applied all or nothing.

Strictness is judged on the batch's net weight per row: a row that is inserted and deleted in one batch was never there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, repeat, takewhile
from time import perf_counter
from types import TracebackType
from typing import Any, TypeVar

import pyarrow as pa

from ivme.engine.ingest.row_batch import RowBatch, codes_of, joined
from ivme.engine.ingest.row_check import check_key, keyed_rows
from ivme.engine.ingest.rows import to_arrow
from ivme.engine.runtime.delta import Delta
from ivme.engine.runtime.net_changes import clipped, grown
from ivme.engine.runtime.open_batch import OpenBatch
from ivme.engine.runtime.positions import Progress
from ivme.engine.runtime.record_batches import EncodedBatches
from ivme.engine.runtime.runtime import Decide, Runtime
from ivme.engine.runtime.single_row import MOST_SINGLE_ROWS, RowChange
from ivme.engine.runtime.table_change import DeleteKeys, DeleteWhere, Replace, TableChange, Upsert
from ivme.engine.runtime.table_statement import delete_where, update
from ivme.engine.runtime.view_state import TableState
from ivme.engine.runtime.weights import read_weights
from ivme.errors import DataError, PlanError, SchemaError, UnknownNameError
from ivme.query.model import Table

_PIECE = 65_536
"""So many rows of an iterator are Python objects at a time."""

Answer = TypeVar("Answer")


class Batch(OpenBatch):
    """Changes to several tables that take effect together when the `with` block ends.

    A few tuples in lists stay lists, and take the single-row path if it accepts all of them.
    """

    def __init__(
        self, runtime: Runtime, progress: Progress | None = None, encoded: EncodedBatches | None = None
    ) -> None:
        super().__init__()
        self._runtime = runtime
        self._progress = progress
        self._parts: dict[str, list[RowBatch | TableChange]] = {}
        self._declared: dict[str, Table] = {}
        self._clipped: set[str] = set()
        self._few: list[RowChange] | None = [] if progress is None else None
        self._encoded = EncodedBatches(runtime) if encoded is None else encoded
        self._sweeps = self._encoded.sweeps

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        try:
            if kind is None:
                start = perf_counter()
                self._runtime.notify_observers(self._commit_all(), start)
        finally:
            self._forget()

    def make(self) -> dict[str, int]:
        """Applies the changes, for a caller that holds the lock; once it is released, waits until they are durable.

        How many rows of each table they have.
        """
        self._over = True
        try:
            self._take_batch_path()
            return self._commit(self._parts)
        finally:
            self._forget()

    def _commit_all(self) -> dict[str, int]:
        """Makes the changes, durably if that was requested; how many rows of each table they have."""
        few = self._few
        if few and self._runtime.try_apply_rows(few):
            return Counter(change.table for change in few)
        if self._encoded.parts and self._encoded.try_apply():
            rows = {part.table: len(part.rows) for part in self._encoded.parts}
            self._runtime.reclaim_after_rows(sum(rows.values()))
            return rows
        self._take_batch_path()
        rows = self._commit(self._parts)
        self._runtime.wait_durable()
        return rows

    def check(self) -> None:
        """Raises what ending the batch now would raise, and changes nothing."""
        self.look(lambda: None)

    def look(self, read: Callable[[], Answer]) -> Answer:
        """What `read` finds where the batch has been applied; then it is taken back. Raises what ending it would raise.

        It takes the time of applying the batch. No other thread reads or writes meanwhile.
        """
        answers: list[Answer] = []

        def look(_: Mapping[str, Delta]) -> bool:
            answers.append(read())
            return False

        self.hold(look)
        return answers[-1]

    def hold(self, decide: Decide) -> bool:
        """Applies the batch, calls `decide` with the changes of followed views, and commits or rolls back as it says.

        Whether it was committed; then the batch is over. Raises what ending the batch would raise. No other thread
        reads or writes until it is decided.
        """
        self._check_open()
        self._take_batch_path()
        decisions: list[bool] = []

        def once(changes: Mapping[str, Delta]) -> bool:
            decisions.append(decide(changes))
            return decisions[-1]

        with self._runtime.lock:
            if self._parts:
                self._commit(self._parts, decide=once)
            kept = decisions[-1] if decisions else decide({})
        if kept:
            self._over, self._parts = True, {}
            self._runtime.wait_durable()
        return kept

    def discard(self) -> None:
        """Discards the changes so far."""
        self._check_open()
        self._forget()
        self._progress = None

    def _forget(self) -> None:
        self._parts, self._few = {}, None
        self._encoded = EncodedBatches(self._runtime)

    def insert(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Inserts rows; an iterator or a reader of record batches is read in pieces.

        With `round_floats`, here and below, floats are rounded to the scale of a decimal column.
        """
        if not isinstance(rows, Iterator | pa.RecordBatchReader):
            self._take(table, self._rounded(table, rows) if round_floats else rows, 1)
            return
        self._check_open()
        taken = 0
        with self.all_or_nothing():
            for piece in rows if isinstance(rows, pa.RecordBatchReader) else _pieces(rows):
                try:
                    self._take(table, self._rounded(table, piece) if round_floats else piece, 1)
                except DataError as error:
                    raise DataError(
                        f"{error} (rows are counted from number {taken} here)" if taken else error
                    ) from None
                taken += len(piece)

    def delete(self, table: str, rows: Any, *, strict: bool = True) -> None:
        """Deletes rows."""
        if strict:
            self._take(table, rows, -1)
            return
        self._check_open()
        self._take_batch_path()
        self._clipped.add(self._take_all(table, rows, -1).table.name)

    def delete_keys(self, table: str, keys: Any, *, strict: bool = True) -> None:
        """Deletes the rows with the given primary keys: values, or tuples or dicts for keys of several columns."""
        state = self._changed_table(table)
        if not state.table.key_positions:
            raise SchemaError(f"table {state.table.name} has no primary key to delete by; declare one, or give rows")
        rows = keyed_rows(state.table, keys)
        if rows:
            self._add(state, DeleteKeys(self._rows(state, rows, 1), strict))

    def apply(self, table: str, rows: Any, weights: Any, *, round_floats: bool = False) -> None:
        """Inserts as many copies of each row as its weight; a negative weight deletes copies."""
        self._take(table, self._rounded(table, rows) if round_floats else rows, weights)

    def upsert(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Inserts rows, each in place of the row with the same primary key."""
        state = self._changed_table(table)
        if not state.table.key_positions:
            raise SchemaError(
                f"table {state.table.name} has no primary key to upsert by; declare one, as in "
                f"create_table({state.table.name!r}, ..., primary_key={state.table.column_names[0]!r}), or use insert"
            )
        self._add(state, Upsert(self._rows(state, self._rounded(table, rows) if round_floats else rows, 1)))

    def replace(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Replaces all rows of the table by these; only the difference changes."""
        state = self._changed_table(table)
        self._add(state, Replace(self._rows(state, self._rounded(table, rows) if round_floats else rows, 1)))

    def _rounded(self, table: str, rows: Any) -> pa.Table:
        return to_arrow(rows, self._table(table).table, round_floats=True)

    def truncate(self, table: str) -> None:
        """Deletes all rows."""
        self._add(self._changed_table(table), DeleteWhere(None))

    def delete_where(self, table: str, where: str, /, **parameters: Any) -> None:
        """Deletes the rows that meet a condition: SQL over the table's columns, with `:name` for parameters."""
        state = self._changed_table(table)
        self._add(state, delete_where(state.table, where, parameters))

    def update(
        self,
        table: str,
        /,
        *,
        set: Mapping[str, Any],
        where: str | None = None,
        round_floats: bool = False,
        **parameters: Any,
    ) -> None:
        """Sets columns to new values in the rows that meet a condition, or in all rows.

        A string in `set` is an SQL expression over the old row, as in {"n": "n + 1"}; a value of another type is used
        as it is. Pass a string value as a parameter: {"name": ":name"} with name="Ann".
        """
        state = self._changed_table(table)
        self._add(state, update(state.table, set, where, parameters, round_floats=round_floats))

    def change(self, table: str, change: TableChange) -> None:
        """Changes a table by what was made of a statement already."""
        self._add(self._changed_table(table), change)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """What is added to the batch in this block is a part of it as a whole, or not at all."""
        put_back = self.mark()
        try:
            yield
        except BaseException:
            put_back()
            raise

    def mark(self) -> Callable[[], None]:
        """A function that forgets what was added to the batch since; it may be called more than once."""
        parts = {name: list(changes) for name, changes in self._parts.items()}
        few, clipped = None if self._few is None else list(self._few), set(self._clipped)
        encoded = self._encoded.copy()

        def put_back() -> None:
            self._parts = {name: list(changes) for name, changes in parts.items()}
            self._few, self._clipped = None if few is None else list(few), set(clipped)
            self._encoded = encoded.copy()

        return put_back

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that the batch changes."""
        return (*self._parts, *{change.table for change in (*(self._few or ()), *self._encoded.parts)})

    def _changed_table(self, name: str) -> TableState:
        self._check_open()
        self._take_batch_path()
        state = self._table(name)
        self._check_static(state)
        return state

    def _add(self, state: TableState, change: RowBatch | TableChange) -> None:
        self._declared.setdefault(state.table.name, state.table)
        self._parts.setdefault(state.table.name, []).append(change)

    def _take(self, name: str, rows: Any, weights: Any) -> None:
        self._check_open()
        if type(rows) is list and type(weights) is int and abs(weights) == 1 and not self._encoded.parts:
            with self._runtime.lock:
                if self._few is not None and len(rows) + len(self._few) <= MOST_SINGLE_ROWS:
                    taken = self._runtime.prepare_rows(name, rows, weights)
                    if taken is not None:
                        self._few += taken
                        return
        is_first = self._few == [] and not self._parts
        if is_first and type(rows) in (pa.RecordBatch, pa.Table) and self._encoded.take(name, rows, weights):
            return
        self._take_batch_path()
        self._take_all(name, rows, weights)

    def _take_batch_path(self) -> None:
        """All changes take the batch path from here on, with those that came before; all, or the batch fails."""
        encoded, self._encoded = self._encoded, EncodedBatches(self._runtime)
        for part, rows in encoded.row_batches():
            if rows is None:  # the codes are those of other columns
                self._take_all(part.table, part.data, part.weight)
                continue
            self._declared.setdefault(part.table, part.declared)
            self._parts.setdefault(part.table, []).append(rows)
        if not self._few:
            self._few = None
            return
        with self._runtime.lock:
            try:
                for change in self._few:
                    self._take_all(change.table, [change.row], change.weight)
            except BaseException:
                self._parts = {}
                raise
            self._few = None

    def _take_all(self, name: str, rows: Any, weights: Any) -> TableState:
        state = self._table(name)
        changed = self._rows(state, rows, weights)
        self._check_static(state)
        if len(changed.weights):
            self._add(state, changed)
        return state

    def _rows(self, state: TableState, rows: Any, weights: Any) -> RowBatch:
        layout = self._runtime.catalog.layout(state.table.name)
        with self._runtime.lock:
            is_list, limited = type(rows) is list, self._runtime.catalog.memory_limit is not None
            codes = None if is_list and limited else codes_of(rows, layout)  # a refused batch holds no codes
            if codes is not None and is_list:
                held = RowBatch(layout, read_weights(weights, len(rows), state.table.name), None, codes)
                self._runtime.catalog.holders.add(held)
                return held
        comes = type(weights) is int and weights > 0
        data = to_arrow(rows, state.table if comes else state.table.without_defaults()) if codes is None else rows
        check_key(state.table, data)
        return RowBatch(layout, read_weights(weights, data.num_rows, state.table.name), data, codes)

    def _check_static(self, state: TableState) -> None:
        if state.table.static and self._runtime.backend.size(state.rows):
            raise DataError(f"table {state.table.name} is static: it is loaded once and then does not change")

    def _table(self, name: str) -> TableState:
        if isinstance(name, str) and name in self._runtime.catalog.tables:
            return self._runtime.catalog.tables[name]
        known = {table.lower(): table for table in self._runtime.catalog.tables}
        if not isinstance(name, str) or name.lower() not in known:
            if isinstance(name, str) and name.lower() in {view.lower() for view in self._runtime.catalog.views}:
                raise UnknownNameError(f"{name} is a view; change the tables that it reads")
            raise UnknownNameError(f"there is no table {name}; there are: {', '.join(known.values()) or 'none'}")
        return self._runtime.catalog.tables[known[name.lower()]]

    def _commit(
        self, collected: Mapping[str, Sequence[RowBatch | TableChange]], *, decide: Decide | None = None
    ) -> dict[str, int]:
        """Makes the changes; how many rows of each table they have."""
        batch = {}
        with self._runtime.lock:
            self._encode_anew(collected)
            for name, parts in collected.items():
                state = self._table(name)
                self._check_static(state)
                if state.table is not self._declared[name] and state.table != self._declared[name]:
                    raise PlanError(f"table {name} was given other columns while the batch was open; make it again")
                changed = self._resolved(state, parts)
                changed = clipped(self._runtime.catalog, name, changed) if name in self._clipped else changed
                changed = grown(self._runtime.catalog, name, changed)
                if len(changed.weights):
                    batch[name] = changed
            if batch or self._progress is not None:
                self._runtime.transact(batch, self._progress, decide=decide)
        return {name: len(changed.weights) for name, changed in batch.items()}

    def _resolved(self, state: TableState, parts: Sequence[RowBatch | TableChange]) -> RowBatch:
        """The rows of all changes of a table: those that depend on what is in it see the ones before them."""
        rows: list[RowBatch] = []
        for part in parts:
            if isinstance(part, TableChange):
                rows.append(part.resolved(self._runtime.catalog, state, joined(rows) if rows else None))
            else:
                rows.append(part)
        return joined(rows)

    def _encode_anew(self, collected: Mapping[str, Sequence[RowBatch | TableChange]]) -> None:
        """Codes that nothing held when they were taken back may be other values' now."""
        if self._sweeps != self._runtime.domains.sweeps:
            for part in (each for parts in collected.values() for each in parts):
                given = part.given() if isinstance(part, TableChange) else part
                if given is not None:
                    given.forget_codes()


def _pieces(rows: Iterator[Any]) -> Iterator[list[Any]]:
    return takewhile(len, (list(islice(rows, _PIECE)) for _ in repeat(None)))
