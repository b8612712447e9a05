"""The engine of an embedded database: tables and views over one kernel, changed in atomic batches.

The life of a batch: rows come as Arrow columns with weights; each trigger's feed is computed from them (predicates and
computed columns vectorised, values encoded); every table's own map and every group of views takes them inside one
kernel transaction; views that others are built on, or that somebody follows, report the change of their rows, which
feeds the next views in the same transaction. Any error rolls all of it back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.backend import Codes, NativeBackend
from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.runtime.delta import Delta
from ivme.engine.runtime.external_view import ExternalView
from ivme.engine.runtime.following import Change
from ivme.engine.runtime.installation import Installation
from ivme.engine.runtime.memory import check_memory, leave_no_trace, limit_growth
from ivme.engine.runtime.positions import Progress
from ivme.engine.runtime.reclaim import ROWS_BETWEEN, reclaim
from ivme.engine.runtime.relations import check_numbers, weighted
from ivme.engine.runtime.single_row import MOST_SINGLE_ROWS, Emitted, Few, RowLog, SingleRowPath, single_row
from ivme.engine.runtime.transaction import Act, Transaction, delivery
from ivme.engine.runtime.view_state import Key, TableState, ViewState
from ivme.errors import DataError, MemoryLimitError

Observer = Callable[[int, float], None]
"""Is told the rows of each batch that has been applied, and the seconds that it took."""


MOST_OPERATIONS = 10_000
"""Once a few rows have taken so many, the rest of them take the batch path, which joins all of them at once."""


class _TooLongError(Exception):
    """The single-row path takes too many operations."""


class _CountError(DataError):
    """A count that does not fit, in the batch's last state or in one on the way to it."""


class Runtime(Installation):
    """One kernel, its tables and views, changed in atomic batches."""

    observers: tuple[Observer, ...] = ()
    _rows_written = 0

    def transact(self, batch: Mapping[str, RowBatch], progress: Progress | None = None) -> None:
        """Applies a batch, all or nothing, and tells whoever follows a view that it changed.

        The progress of the source that it comes from is part of it.
        """

        def run(emitted: Emitted) -> None:
            for name, changed in batch.items():
                self._run(name, changed, emitted)

        def run_deletes_first(emitted: Emitted) -> None:
            """In this order no state on the way has a larger count than the batch begins or ends with."""
            net = {name: self._net(name, changed) for name, changed in batch.items()}
            for sign in (-1, 1):
                for name, changed in net.items():
                    rows = np.flatnonzero(np.sign(changed.weights) == sign)
                    if len(rows):
                        self._run(name, changed.kept(rows, changed.weights[rows]), emitted)

        def record() -> None:
            if self.journal is not None:
                self.journal.batch(batch, progress)

        with self.lock:
            self.positions.check(progress)
            limit_growth(self, grows=any((changed.weights > 0).any() for changed in batch.values()))
            try:
                self._transact(batch, run, record, MOST_SINGLE_ROWS, progress)
            except (self.backend.overflow, _CountError):
                self._transact(batch, run_deletes_first, record, 0, progress)
            except MemoryLimitError:
                leave_no_trace(self)
                raise
            reclaim(self)

    def _transact(
        self,
        relations: Collection[str],
        run: Callable[[Emitted], None],
        record: Callable[[], None],
        few: int,
        progress: Progress | None = None,
    ) -> None:
        """Changes relations by what `run` does, passes it on to the views that are built on them, and records it.

        Up to `few` rows of a view are passed on one by one.
        """
        if self.open_reads:
            self.let_reads_finish(relations)
        rebalanced = self.rebalanced()
        for group in rebalanced:
            group.begin()
        undo: list[Act] = [self.backend.rollback]
        undo += [group.roll_back for group in (*rebalanced, *self.maintained.values())]
        undo += [ring_view.undo for ring_view in self.ring_views.values()]
        if self.journal is not None:
            undo.append(partial(self.journal.take_back, self.journal.mark()))
        with Transaction(self.lock, undo) as transaction:
            self.backend.begin()
            changes, touched = self._propagate(relations, run, few)
            self.check_sums()
            check_memory(self)
            for state in self.views.values():
                if state.checks and not state.lazy and touched.intersection(state.relations):
                    self.check_failures(state)
            transaction.finish = self._finish(changes, touched, progress)
            record()

    def _finish(self, changes: Mapping[str, Change], touched: set[str], progress: Progress | None) -> list[Act]:
        """What is left to do once a batch is committed."""
        for ring_view in self.ring_views.values():
            ring_view.prepare()
        acts: list[Act] = [self.backend.commit]
        acts += [group.commit for group in self.maintained.values()]
        acts += [ring_view.keep for ring_view in self.ring_views.values()]
        acts += [keep for _, keep in changes.values() if keep is not None]
        acts += [state.outdate for state in self.views.values() if touched.intersection(state.relations)]
        for view, (changed, _) in changes.items():
            acts += [] if changed is None else self._deliveries(view, changed)
        acts.append(partial(self.positions.advance, progress))
        return acts

    def _deliveries(self, view: str, changed: RowBatch) -> list[Act]:
        """Hands the change of a view's rows to those who follow it, by its codes, which are held until it is gone."""
        queues = self._queues.get(view, ())
        if not queues:
            return []
        self.holders.add(changed)
        delta = Delta(changed)
        return [delivery(queue, delta) for queue in queues]

    def settle(self) -> None:
        """Returns when what this thread committed is as durable as was asked for. Its caller holds no lock."""
        if self.journal is not None:
            self.journal.wait()

    def load(self, changes: Mapping[str, tuple[pa.Table, Codes]]) -> None:
        """Takes changes that were made before, in one batch: negative multiplicities of ring mode may be among them."""
        with self.lock:
            for name in changes:
                self._set_checks(self.tables[name], ring=True)
            batch = {name: RowBatch(self.layout(name), weights, data) for name, (data, weights) in changes.items()}
            self.transact({name: changed for name, changed in batch.items() if len(changed.weights)})
            self._switch_rings(changes)

    def put(self, name: str, row: Any, weight: int) -> bool:
        """Changes the multiplicity of one row on the single-row path; False if the batch path has to."""
        start = perf_counter() if self.observers else None
        with self.lock:
            way = self._way_of_table(name, weight)
            if way is None:
                return False
            if self.open_reads:
                self.let_reads_finish((name,))
            limit_growth(self, grows=weight > 0)
            try:
                if way.followed:
                    kept = way.check(row)
                    done = kept is not None and self._put_all([Few(name, kept, weight, way)])
                else:
                    done = way.put(row, weight)
            except MemoryLimitError:
                leave_no_trace(self)
                raise
            if way.coded:
                self._rows_written += 1
                if self._rows_written >= ROWS_BETWEEN:
                    self._reclaim_after_rows()
        if start is not None and done:
            self.settle()
            self.tell(1, start)
        return done

    def few(self, name: str, rows: Sequence[Any], weight: int) -> list[Few] | None:
        """Changes of a few rows on the single-row path, not yet made; None if it is not for them."""
        with self.lock:
            way = self._way_of_table(name, weight) if self.journal is None else None
        checked = [] if way is None else list(map(way.check, rows))
        if way is None or None in checked:
            return None
        return [Few(name, row, weight, way) for row in checked if row is not None]

    def put_few(self, changes: Sequence[Few]) -> bool:
        """Makes changes of a few rows, all or none; False if they have to take the batch path."""
        with self.lock:
            current = all(self._way_of_table(each.table, each.weight) is each.way for each in changes)
            limit_growth(self, grows=any(each.weight > 0 for each in changes))
            try:
                done = current and self._put_all(changes)
            except MemoryLimitError:
                leave_no_trace(self)
                raise
            self._rows_written += len(changes)
            if self._rows_written >= ROWS_BETWEEN:
                self._reclaim_after_rows()
            return done

    def _reclaim_after_rows(self) -> None:
        """Single rows are quick, so that not each of them looks whether there are codes to take back."""
        self._rows_written = 0
        reclaim(self)

    def _put_all(self, changes: Sequence[Few]) -> bool:
        given = [(change.way, change.way.encode(change.row), change.weight) for change in changes]
        encoded = [(way, codes, weight) for way, codes, weight in given if codes is not None]
        if len(encoded) < len(given):
            return False

        def run(emitted: Emitted) -> None:
            most = self.backend.operations + MOST_OPERATIONS
            for number, (way, codes, weight) in enumerate(encoded):
                if number and self.backend.operations > most:
                    raise _TooLongError
                way.run(codes, weight, emitted)

        def record() -> None:
            for way, codes, weight in encoded:
                if way.log is not None:
                    way.log.append(codes, weight)

        try:
            self._transact({change.table for change in changes}, run, record, MOST_SINGLE_ROWS)
        except (self.backend.broken_check, self.backend.overflow, _TooLongError):
            return False
        return True

    def tell(self, rows: int, start: float) -> None:
        """Tells the observers of a batch that has been applied, and is as durable as was asked for."""
        seconds = perf_counter() - start
        for observer in self.observers:
            observer(rows, seconds)

    def short_way(self, relation: str) -> SingleRowPath | None:
        """How to change single rows of a table, or of a view for those built on it; None if there is no short way."""
        way = self._ways.get(relation)
        if way is None:
            way = self._short_way(relation)
            if way is not None:
                self._ways[relation] = way
        return way

    def _way_of_table(self, name: str, weight: int) -> SingleRowPath | None:
        """The single-row path of what users may change in this direction."""
        state = self.tables.get(name) if type(name) is str else None
        if state is None or (weight < 0 and state.table.append_only):
            return None
        return self.short_way(name)

    def _short_way(self, name: str) -> SingleRowPath | None:
        if not isinstance(self.backend, NativeBackend) or self.ring_views:
            return None
        table = self.relation(name)
        readers = [view for view in self.views.values() if name in view.relations]
        if table.static or any(view.lazy or isinstance(view.group, ExternalView) for view in readers):
            return None
        feeds, rebalanced = self._feeds(name), self.rebalanced(name)
        log = None if self.journal is None or name in self.views else RowLog(self.journal, name, self.layout(name))
        followed = any(view.followers for view in readers)
        checks = [check for view in readers for check in view.checks]
        given = self.backend, self.lock, table, self.layout(name), self.domains, feeds, rebalanced, checks, log
        return single_row(*given, followed=followed)

    def _propagate(
        self, relations: Collection[str], run: Callable[[Emitted], None], few: int
    ) -> tuple[dict[str, Change], set[str]]:
        """The changes of views that are followed, in an order in which each comes after those that it is built on."""
        emitted: Emitted = {}
        run(emitted)
        touched = set(relations)
        changes: dict[str, Change] = {}
        for state in self.views.values():
            if state.followed is None or not touched.intersection(state.relations):
                continue
            touched.add(state.name)
            changed, _ = changes[state.name] = self._change(state, emitted)
            if changed is not None and self._is_read(state.name):
                check_numbers(state, changed)
                self._feed(state.name, changed, emitted, few)
        return changes, touched

    def _change(self, state: ViewState, emitted: Emitted) -> Change:
        """The change of a view's rows."""
        assert state.followed is not None
        if not isinstance(state.group, ExternalView):
            return state.followed.change(emitted.get(state.name, []))
        changed = state.group.changed(state.followed.layout)
        return (changed if len(changed.weights) else None), None

    def _feed(self, view: str, changed: RowBatch, emitted: Emitted, few: int) -> None:
        """Passes the change of a view's rows on to the views that are built on it."""
        way = self.short_way(view) if len(changed.weights) <= few else None
        rows = [] if way is None else way.completed(changed)
        if way is None or rows is None:
            self._run(view, changed, emitted)
            return
        for row, weight in zip(rows, changed.weights.tolist(), strict=True):
            way.run(row, weight, emitted)

    def _is_read(self, view: str) -> bool:
        """Whether other views are built on a view."""
        relations = [state.relations for state in self.views.values()]
        relations += [ring_view.relations for ring_view in self.ring_views.values()]
        return any(view in read for read in relations)

    def _run(self, relation: str, changed: RowBatch, emitted: Emitted) -> None:
        """Runs the triggers of a relation."""
        for ring_view in self.ring_views.values():
            if relation in ring_view.relations:
                ring_view.stage(relation, weighted(changed.data, changed.weights))
        state = self.tables.get(relation)
        groups = {group.trigger(relation): group for group in self.rebalanced(relation)}
        for trigger, columns in self.inputs(relation).of(changed):
            if trigger in self.maintained:
                self._maintain(self.maintained[trigger], columns, changed.weights)
                continue
            try:
                if trigger in groups:
                    deltas = groups[trigger].run(relation, columns, changed.weights)
                else:
                    deltas = self.backend.run(trigger, {relation: (columns, changed.weights)})
                for delta in deltas:
                    emitted.setdefault(delta.view, []).append(delta)
            except self.backend.broken_check as error:
                assert state is not None
                raise self._broken(state, error) from None
            except self.backend.overflow as error:
                what = f"a count of a view over {relation}"
                if state is not None and trigger == state.rows:
                    what = f"a multiplicity in table {relation}"
                raise _CountError(f"{what} does not fit 64 bits; nothing was changed") from error

    def _net(self, name: str, changed: RowBatch) -> RowBatch:
        """Each changed row once, with the sum of its weights."""
        try:
            columns, weights = self.backend.net(changed.codes(), changed.weights)
        except self.backend.overflow as error:
            raise DataError(f"a multiplicity in table {name} does not fit 64 bits; nothing was changed") from error
        return RowBatch(self.layout(name), weights, None, list(columns))

    def _maintain(self, group: ExternalView, columns: Sequence[Codes], weights: Codes) -> None:
        try:
            group.change(columns, weights)
        except Exception as error:
            refusal = group.refusal(error)
            if refusal is None:
                raise
            raise refusal from None

    def _broken(self, state: TableState, error: Exception) -> DataError:
        codes = error.args[1]
        table = state.table
        if len(codes) == len(state.domains):
            row = tuple(domain.decode_value(code) for domain, code in zip(state.domains, codes, strict=True))
            if "unique" not in str(error.args[0]):
                return DataError(
                    f"cannot delete {row!r} from table {table.name}: it is not there as often; nothing was changed "
                    "(strict=False ignores deletes of what is not there)"
                )
        domains = [state.domains[position] for position in table.key_positions]
        values = tuple(domain.decode_value(code) for domain, code in zip(domains, codes, strict=True))
        return DataError(f"two rows of table {table.name} would have the primary key {values!r}; nothing was changed")

    def grown(self, name: str, changed: RowBatch) -> RowBatch:
        """The changes as the table takes them: for one that is append-only net weights per row, none below zero."""
        state = self.tables[name]
        if not state.table.append_only or not (changed.weights < 0).any():
            return changed
        columns, weights = self.backend.net(changed.codes(), changed.weights)
        for number in np.flatnonzero(weights < 0)[:1].tolist():
            row = tuple(d.decode_value(column[number]) for d, column in zip(state.domains, columns, strict=True))
            raise DataError(f"table {name} is append-only: {row!r} cannot be deleted from it; nothing was changed")
        return RowBatch(self.layout(name), weights, None, list(columns))

    def clipped(self, name: str, changed: RowBatch) -> RowBatch:
        """The changes with no row taken away more often than it is there: net weights per row, cut at what is."""
        stored = self.tables[name].rows
        net: dict[Key, tuple[int, int]] = {}
        keys = zip(*(column.tolist() for column in changed.codes()), strict=True)
        for i, (key, weight) in enumerate(zip(keys, changed.weights.tolist(), strict=True)):
            first, total = net.get(key, (i, 0))
            net[key] = (first, total + weight)
        kept = [(i, max(total, -self.backend.get(stored, key))) for key, (i, total) in net.items()]
        kept = [(i, weight) for i, weight in kept if weight]
        if any(weight >= 2**63 for _, weight in kept):
            raise DataError(f"a multiplicity in table {name} does not fit 64 bits; nothing was changed")
        return changed.kept([i for i, _ in kept], np.array([weight for _, weight in kept], dtype=np.int64))

    def subscribe(self, view: str, queue: deque[Delta]) -> None:
        """From now on the queue gets the change of the view's rows for each batch that has one."""
        with self.lock, self.catalog_change():
            limit_growth(self)
            self.follow(view)
            check_memory(self)
            self._queues[view] = [*self._queues.get(view, []), queue]

    def unsubscribe(self, view: str, queue: deque[Delta]) -> None:
        with self.lock:
            if view in self.views and any(other is queue for other in self._queues.get(view, [])):
                with self.catalog_change():
                    self._queues[view] = [other for other in self._queues[view] if other is not queue]
                    self.unfollow(view)
