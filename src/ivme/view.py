"""A view: its rows at any time, whole or for one key, and the stream of its changes."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Never

import numpy as np
import pyarrow as pa

from ivme.changes import Changes
from ivme.engine.codes.arrow_types import arrow_type
from ivme.engine.read.asked import Asked
from ivme.engine.read.reasons import Reasons
from ivme.engine.runtime.decoding import is_global
from ivme.engine.runtime.distinct import added_up, one_each
from ivme.engine.runtime.open_read import OpenRead, Rows, repeated, rows_of
from ivme.engine.runtime.runtime import Runtime
from ivme.engine.runtime.transaction import SharedSide, StateLock
from ivme.engine.runtime.view_state import ViewState
from ivme.errors import DataError, PlanError, UnnamedValueError, VerificationError
from ivme.views.base_view import Row
from ivme.views.positioned_view import PositionedView

if TYPE_CHECKING:
    from ivme.plan.explain.explanation import Explanation


_READS_OF_MANY = 63
"""How often a view that had many rows is read before it is tried again whether it has few."""


class View(PositionedView):
    """The rows of a query, maintained in the kernel's maps."""

    def __init__(self, runtime: Runtime, state: ViewState) -> None:
        self._runtime = runtime
        self.state = state
        self.calls: tuple[str, ...] = ()
        self.made_with: tuple[Any, Mapping[str, object]] = ("", {})
        self.analysed: Callable[[], Explanation] = lambda: state.explanation
        self.before_following: Callable[[], object] = int
        self.asked = Asked(runtime.reader, state)
        self._hides_keys = state.hides_keys
        self._latest = threading.local()
        self._many_reads = 0

    @property
    def name(self) -> str:
        return self.state.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.state.table.column_names

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters; empty for a view without parameters."""
        return self.state.typed.query.parameters

    @property
    def relations(self) -> tuple[str, ...]:
        """The tables and views that the view reads."""
        return self.state.relations

    @property
    def schema(self) -> pa.Schema:
        return self.state.finisher.schema

    @property
    def change_schema(self) -> pa.Schema:
        """The Arrow types of the columns of a change's row: the parameters in front, then those of a row."""
        typed = self.state.typed
        inputs = zip(typed.query.parameters, typed.query.input, strict=True)
        fields = [pa.field(name, arrow_type(typed.types[variable])) for name, variable in inputs]
        return pa.schema([*fields, *self.schema])

    def __repr__(self) -> str:
        parameters = f"({', '.join(self.parameters)})" if self.parameters else ""
        return f"<View {self.name}{parameters}: {', '.join(self.columns)}>"

    # Reading

    def __iter__(self) -> Iterator[Row]:
        if self.parameters:  # they have defaults, or the request is refused
            return self()
        few = self._all_if_few()
        if few is not None:
            self._latest.rows = lambda: None
            return iter(few)
        rows = self._read({}, repeated)
        self._latest.rows = weakref.ref(rows)
        return rows

    def _all_if_few(self) -> list[Row] | None:
        """All rows, if one call of the kernel finds that there are few; a view that had many is seldom tried again."""
        self.check_readable()
        if self._many_reads:
            self._many_reads -= 1
            return None
        found = self._try_few({}) if self._runtime.reader.is_shared(self.state) else None
        self._many_reads = _READS_OF_MANY if found is None else 0
        return found

    def __length_hint__(self) -> int:
        """Python asks this when it makes a list of a view, having begun to iterate: then all rows are read at once."""
        latest: Callable[[], Rows | None] = getattr(self._latest, "rows", lambda: None)
        self._latest.rows = lambda: None
        rows = latest()
        return NotImplemented if rows is None else rows.__length_hint__()

    def __call__(self, *unnamed: Never, **parameters: Any) -> Iterator[Row]:
        """The rows of an access request; a row of multiplicity m comes m times.

        All are of one state of the database. Those of a view without parameters that has many are read while they are
        taken, and so are those of a view whose requests find them one by one (`explain` says which).
        """
        if unnamed:
            raise UnnamedValueError.of_view(self.name, self.parameters, unnamed)
        few = self.few_rows(parameters) if self.parameters else None if parameters else self._all_if_few()
        return self._read(parameters, repeated) if few is None else iter(few)

    def items(self, **parameters: Any) -> Iterator[tuple[Row, int]]:
        """The distinct rows, with their multiplicities; all from one state of the database."""
        rows = self._read(parameters, iter)
        if not self._hides_keys:
            return rows
        rows.read.read_all()
        return iter(added_up(rows).items())

    def _begin(self, parameters: Mapping[str, Any]) -> tuple[OpenRead, dict[str, Any]]:
        """An answer that is about to be read, and the values of its parameters by variable."""
        self.check_readable()
        with self.read_lock:  # codes of parameters stay what they are until the answer holds them
            codes, inputs = self.asked.codes(parameters)
            self.state.observed.asked.append(parameters)
            return OpenRead(self._runtime.reader, self.state, codes), inputs

    def _read(self, parameters: Mapping[str, Any], shown: Callable[[Iterable[tuple[Row, int]]], Iterator[Any]]) -> Rows:
        state = self.state
        read, inputs = self._begin(parameters)
        if self.parameters:
            (read.begin if self._runtime.reader.is_lazy(state) else read.read_all)()

        def parts() -> Iterator[Iterator[Any]]:
            nothing = is_global(state.typed.query.head, state.typed.query.output)
            for block in read:
                nothing = False
                yield shown(state.finisher.rows(block, inputs))
            if nothing:
                yield shown([(state.finisher.nothing(), 1)])

        return rows_of(read, parts())

    def few_rows(self, parameters: Mapping[str, Any]) -> list[Row] | None:
        """The rows of an access request that has few of them, all at once; None if it may have many."""
        self.check_readable()
        if self._runtime.reader.is_shared(self.state):
            found = self._try_few(parameters)
            if found is not None:
                return found
        with self.read_lock:
            return self._few(parameters)

    def _try_few(self, parameters: Mapping[str, Any]) -> list[Row] | None:
        """The same without the lock, as one call of the kernel reads one state: None, to be read under the lock, if a
        writer is at work, codes were taken back or plans changed meanwhile, or anything is wrong (decision 0220)."""
        domains, catalog = self._runtime.domains, self._runtime.catalog
        before = domains.sweeps, catalog.revision
        if domains.is_sweeping or catalog.lock.pending is not None:
            return None
        try:
            found = self._few(parameters, waits=False)
        except Exception:
            return None
        return found if catalog.lock.pending is None and before == (domains.sweeps, catalog.revision) else None

    def _few(self, parameters: Mapping[str, Any], *, waits: bool = True) -> list[Row] | None:
        state = self.state
        codes, inputs = self.asked.codes(parameters)
        state.observed.asked.append(parameters)
        block = None if codes is None else self._runtime.reader.small_answer(state, codes, waits=waits)
        if block is None:
            return None
        if not len(block[1]) and is_global(state.typed.query.head, state.typed.query.output):
            return [state.finisher.nothing()]
        return state.finisher.few(block, inputs)

    def request_many(self, **columns: Any) -> pa.Table:
        """The rows for many values of the parameters: each parameter is a list, or an array of NumPy or Arrow.

        The columns of the result are the parameters, then those of the view. Its rows are in the order of the requests.
        """
        from ivme.engine.read.requests import request_many

        self.check_readable()
        whole = self.asked.complete(columns)
        count = max((len(values) for values in columns.values()), default=1)
        asked = {name: columns[name] if name in columns else [value] * count for name, value in whole.items()}
        with self.read_lock:
            return request_many(self._runtime.reader, self.state, asked)

    def scalar(self, **parameters: Any) -> Any:
        rows = self.few_rows(parameters)
        if rows is not None and len(rows) == 1 and len(rows[0]) == 1:
            return rows[0][0]
        with self.read_lock:
            return super().scalar(**parameters)

    def count(self, **parameters: Any) -> int:
        """The number of rows, with multiplicities.

        It costs O(log N) if an ordered map holds the rows, and O(1) if they are the entries of a map, as groups are.
        """
        query = self.state.typed.query
        known = None if parameters else self.known_size()
        if known is not None:
            return known
        read, _ = self._begin(parameters)
        read.read_all()
        counts = [self.state.finisher.multiplicities(block) for block in read]
        return sum(int(each.sum()) for each in counts) if counts else int(is_global(query.head, query.output))

    def __len__(self) -> int:
        """How many rows there are. Python asks this when it makes a list of a view, too: then all rows are read."""
        self.__length_hint__()
        return int(self.to_arrow().num_rows) if self.state.ring else self.count()  # negative rows are not shown

    def to_arrow(self, **parameters: Any) -> pa.Table:
        """The rows as an Arrow table, all from one state of the database."""
        return self.limited_table(parameters)

    def limited_table(self, parameters: Mapping[str, Any], most: int | None = None) -> pa.Table:
        """The rows in Arrow; a DataError if there are more than `most`."""
        batches = []
        for batch, counts in self.group_batches(parameters, most):
            plain = batch.num_columns > 0 and bool((counts == 1).all())
            whole = np.repeat(np.arange(len(counts)), np.maximum(counts, 0))
            batches.append(batch if plain else batch.take(pa.array(whole)))
        return pa.Table.from_batches(batches, schema=self.state.finisher.schema)

    def weighted(self, **parameters: Any) -> list[tuple[pa.RecordBatch, np.ndarray[Any, Any]]]:
        """The distinct rows as Arrow batches, each with the multiplicities of its rows."""
        return (
            [one_each(self.group_batches(parameters), self.schema)]
            if self._hides_keys
            else self.group_batches(parameters)
        )

    def group_batches(
        self, parameters: Mapping[str, Any], most: int | None = None
    ) -> list[tuple[pa.RecordBatch, np.ndarray[Any, Any]]]:
        """The same for each group, also those that look the same; a DataError if there are more than `most` rows."""
        state = self.state
        batches: list[tuple[pa.RecordBatch, np.ndarray[Any, Any]]] = []
        rows = 0
        read, inputs = self._begin(parameters)
        read.read_all(most)
        for block in read:
            batches.append(state.finisher.batch(block, inputs))
            rows += int(np.maximum(batches[-1][1], 0).sum())
            if most is not None and rows > most:
                raise DataError(f"view {self.name} has more than {most} rows here")
        if not batches and is_global(state.typed.query.head, state.typed.query.output):
            row = dict(zip(state.finisher.schema.names, state.finisher.nothing(), strict=True))
            return [(pa.RecordBatch.from_pylist([row], schema=state.finisher.schema), np.ones(1, np.int64))]
        return batches

    def multiplicity(self, row: Row, **parameters: Any) -> int:
        """The number of copies of a row in the view; constant time if the row has all columns of GROUP BY."""
        self.check_readable()
        query = self.state.typed.query
        if not isinstance(row, tuple | list) or len(row) != len(query.head):
            raise DataError(f"a row of view {self.name} has {len(query.head)} columns: {', '.join(self.columns)}")
        row = tuple(row)
        shown = {column.source: value for column, value in zip(query.head, row, strict=True)}
        if not set(query.output) <= set(shown) or is_global(query.head, query.output) or any(query.known):
            rows = self._read(parameters, iter)
            rows.read.read_all()
            return sum(multiplicity for found, multiplicity in rows if found == row)
        with self.read_lock:
            requested, inputs = self.asked.codes(parameters)
            values: dict[Any, Any] = {**shown, **inputs}
            codes = [self.state.finisher.domain(v).find_value(values[v]) for v in query.free]
            if requested is None or None in codes:
                return 0
            found = self._runtime.reader.row_at(self.state, [code for code in codes if code is not None], inputs)
        return found[1] if found is not None and found[0] == row else 0

    # Reasons

    def _reasons(self, row: Row, parameters: Mapping[str, Any], *, present: bool) -> Reasons:
        from ivme.views.view_reasons import reasons_of

        given = self.asked.joined(parameters)
        return reasons_of(self._runtime.reader, self.state, row, given, present=present)

    # Changes

    def changes(self, *, wait: bool = False, **parameters: Never) -> Changes:
        """A feed of the changes of the view: one for each batch from now on that changes its rows.

        Each change maps rows to the change of their multiplicity; `to_arrow()` and `weights` return it as columns. Rows
        of a view with parameters begin with the parameters' values. A view with aggregates stores a copy of its rows
        for this. A view that is computed only when it is read is replanned.

        Iterating yields the changes since the last time; with `wait`, and in `async for`, it waits for more.
        """
        return super().changes(wait=wait, **parameters)

    def check_followed(self) -> None:
        query = self.state.typed.query
        if query.input and query.aggregates:
            raise PlanError(
                f"view {self.name} has parameters and aggregates, so its changes cannot be followed; "
                f"follow a view that groups by {', '.join(query.parameters)} instead"
            )

    # About the view

    def explain(self, *, analyze: bool = False) -> Explanation:
        """How the view is maintained and what that costs; with `analyze`, also operations counted on a copy of it."""
        return self.analysed() if analyze else self.state.explanation

    def stats(self) -> dict[str, Any]:
        """The view's strategy, the sizes of its maps (shared maps included), the kernel's operations, and the memory
        of all maps and dictionaries.

        With heavy and light parts also N, the thresholds, the number of heavy keys, and the cost of rebalancing so far.
        """
        self.check_alive()
        group, size = self.state.group, self._runtime.backend.size
        with self._runtime.lock:
            found = {
                "strategy": self.state.explanation.strategy,
                "maps": {n.replace("\0", "."): size(n) for n in group.maps_of(self.name)},
                **self.engine_stats(),
            }
            return found if group.rebalancer is None else {**found, **group.rebalancer.stats()}

    def verify(self) -> None:
        """Recomputes the view from its tables by another engine; raises VerificationError at the first difference."""
        from ivme.engine.read.verify import verify

        self.check_alive()
        try:
            verify(self._runtime.reader, self.state, lambda state: View(self._runtime, state))
        except VerificationError as error:
            if not self.calls:
                raise
            called = ", ".join(self.calls)
            message = f"{error}; it calls {called}, and a function that is not pure makes such a difference"
            raise VerificationError(message) from error

    # For the packages around the database

    @property
    def lock(self) -> StateLock:
        return self._runtime.lock

    @property
    def read_lock(self) -> StateLock | SharedSide:
        return self._runtime.reader.lock_of(self.state)

    def follow(self, queue: deque[Any]) -> None:
        self.before_following()
        self._runtime.subscribe(self.name, queue)

    def unfollow(self, queue: deque[Any]) -> None:
        self._runtime.unsubscribe(self.name, queue)

    def engine_stats(self) -> dict[str, int]:
        return {"operations": self._runtime.backend.operations, **self._runtime.catalog.memory()}
