"""The engine of an embedded database: tables and views over one kernel, changed in atomic batches.

The life of a batch: rows come as Arrow columns with weights; each trigger's feed is computed and encoded from them;
every table's map, group of views and participant takes them inside one transaction; views that others are built on, or
that are followed, report how their rows change, which feeds the next views. Any error rolls all of it back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.backend import Backend, Codes
from ivme.engine.codes.domains import Domains
from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.runtime.catalog import Catalog
from ivme.engine.runtime.catalog_change import CatalogChange
from ivme.engine.runtime.delta import Delta
from ivme.engine.runtime.external_view import change_of, counts_together
from ivme.engine.runtime.following import Change, deliveries, deltas
from ivme.engine.runtime.installation import Installation
from ivme.engine.runtime.journal import Journal, taken_durably
from ivme.engine.runtime.memory import check_memory, leave_no_trace, limit_growth
from ivme.engine.runtime.net_changes import net_changes
from ivme.engine.runtime.participant import MaintainedView
from ivme.engine.runtime.plain_batch import try_apply_plain
from ivme.engine.runtime.positions import Progress
from ivme.engine.runtime.reader import Reader, check_numbers
from ivme.engine.runtime.reclaim import ROWS_BETWEEN, reclaim
from ivme.engine.runtime.single_row import MOST_SINGLE_ROWS, RowChange, SingleRowPath, new_path, open_gate
from ivme.engine.runtime.transaction import Act, Transaction, Undo
from ivme.engine.runtime.triggers import CountError, Triggers
from ivme.engine.runtime.view_chain import open_chained
from ivme.errors import MemoryLimitError
from ivme.query.functions.running import refuse_within_functions

Observer = Callable[[Mapping[str, int], float], None]
"""Is told the rows of each batch that has been applied, and the seconds that it took."""

Apply = Callable[[Mapping[str, RowBatch]], None]
"""Applies the changed rows of relations."""

Decide = Callable[[Mapping[str, Delta]], bool]
"""Whether an applied batch is committed. It is given the changes of the followed views."""

MOST_OPERATIONS = 10_000
"""Once a few rows have taken so many, the rest of them take the batch path, which joins all of them at once."""


class _TooLongError(Exception):
    """The single-row path takes too many operations."""


class _TakenBackError(Exception):
    """A batch could have been committed, and was rolled back on request."""


class Runtime:
    """One kernel, its tables and views, changed in atomic batches.

    `catalog` has what is there, `reader` reads it, `installation` changes which tables and views there are.
    """

    def __init__(self, backend: Backend, domains: Domains) -> None:
        self.catalog = Catalog(backend, domains)
        self.reader = Reader(self.catalog)
        self.installation = Installation(self.catalog, self.reader)
        self.backend = backend
        self.domains = domains
        self.lock = self.catalog.lock
        self._observers: tuple[Observer, ...] = ()
        self._rows_written = 0
        gate = self.catalog.row_gate
        self.take_rows: Callable[[Any, Any, int], bool] = (lambda *_: False) if gate is None else gate.apply
        """Changes the multiplicity of a few rows, all or none, in one call of the kernel; False if a batch has to."""

    def set_journal(self, journal: Journal, *, waits: bool) -> None:
        """From now on commits are written to a journal; with `waits`, they return when they are durable."""
        self.catalog.journal = journal
        self.catalog.forget_inputs()  # what was made before logs nothing
        if waits:
            self.take_rows = taken_durably(self.take_rows, journal)

    @property
    def observers(self) -> tuple[Observer, ...]:
        """Who is told of batches."""
        return self._observers

    @observers.setter
    def observers(self, observers: tuple[Observer, ...]) -> None:
        self._observers = observers
        if self.catalog.row_gate is not None:
            self.catalog.row_gate.is_open = not observers

    # Batches

    def transact(
        self, batch: Mapping[str, RowBatch], progress: Progress | None = None, *, decide: Decide | None = None
    ) -> None:
        """Applies a batch, all or nothing, and tells the followers of a view that it changed.

        The progress of its source is part of it. `decide` is called where it would be recorded, or taken back.
        """

        def run(_: Triggers, apply: Apply) -> None:
            apply(batch)

        def run_deletes_first(_: Triggers, apply: Apply) -> None:
            """In this order no state on the way has a larger count than the batch begins or ends with."""
            net = {name: net_changes(self.catalog, name, changed) for name, changed in batch.items()}
            for sign in (-1, 1):
                for name, changed in net.items():
                    rows = np.flatnonzero(np.sign(changed.weights) == sign)
                    if len(rows):
                        apply({name: changed.kept(rows, changed.weights[rows])})

        def record(changes: Mapping[str, Change]) -> None:
            if decide is not None and not decide(deltas(changes)):
                raise _TakenBackError
            if self.catalog.journal is not None:
                self.catalog.journal.batch(batch, progress)
            self._note_in_builds(batch)

        refuse_within_functions()
        with self.lock:
            if progress is None and decide is None and try_apply_plain(self.catalog, batch):
                self._open_paths(batch)
                self.reclaim_after_rows(sum(len(changed.weights) for changed in batch.values()))
                return
            self.catalog.positions.check(progress)
            limit_growth(self.catalog, grows=any((changed.weights > 0).any() for changed in batch.values()))
            try:
                try:
                    self._transact(batch, run, record, MOST_SINGLE_ROWS, progress, is_open=decide is not None)
                except (self.backend.overflow, CountError):
                    self._transact(batch, run_deletes_first, record, 0, progress, is_open=decide is not None)
            except _TakenBackError:
                return
            except MemoryLimitError:
                leave_no_trace(self.catalog)
                raise
            self._open_paths(batch)
            self.reclaim_after_rows(sum(len(changed.weights) for changed in batch.values()))

    def _open_paths(self, tables: Collection[str]) -> None:
        """The kernel takes short lists and record batches of these tables from now on, where it may."""
        for name in tables:
            self.single_row_path(name)

    def load(self, changes: Mapping[str, tuple[pa.Table, Codes]]) -> None:
        """Takes changes that were made before, in one batch: negative multiplicities of ring mode may be among them."""
        with self.lock:
            for name in changes:
                self.installation.set_checks(self.catalog.tables[name], ring=True)
            layout = self.catalog.layout
            batch = {name: RowBatch(layout(name), weights, data) for name, (data, weights) in changes.items()}
            self.transact({name: changed for name, changed in batch.items() if len(changed.weights)})
            self.installation.switch_rings(changes)

    def _transact(
        self,
        relations: Collection[str],
        run: Callable[[Triggers, Apply], None],
        record: Callable[[Mapping[str, Change]], None],
        few: int,
        progress: Progress | None = None,
        is_open: bool = False,
    ) -> None:
        """Changes relations by what `run` does, passes it on to the views that are built on them, and records it.

        Up to `few` rows of a view are passed on one by one. One that is held may be a part of a catalog's change.
        """
        refuse_within_functions()
        catalog = self.catalog
        catalog.let_reads_finish(relations)
        triggers, participants = Triggers(catalog), list(catalog.participants.values())
        parts: list[Triggers | MaintainedView] = [triggers, *participants]
        undo = [] if catalog.journal is None else [partial(catalog.journal.roll_back, catalog.journal.mark())]

        def apply(changed: Mapping[str, RowBatch]) -> None:
            triggers.apply(changed)
            for relation, rows in changed.items():
                for participant in participants:
                    if relation in participant.relations:
                        participant.apply(relation, rows)

        outer = self.lock.pending if is_open and isinstance(self.lock.pending, CatalogChange) else None
        with Transaction(self.lock, [*parts, Undo(undo)], outer=outer) as transaction:
            triggers.begin()
            run(triggers, apply)
            changes, touched = self._propagate(relations, triggers, apply, few)
            for part in parts:
                part.prepare()
            check_memory(self.catalog)
            for state in catalog.views.values():
                if state.checks and not state.lazy and touched.intersection(state.relations):
                    self.reader.check_failures(state)
            transaction.then = self._then(changes, touched, progress)
            record(changes)

    def _then(self, changes: Mapping[str, Change], touched: set[str], progress: Progress | None) -> list[Act]:
        """What is left to do once a batch is committed."""
        acts: list[Act] = [keep for _, keep in changes.values() if keep is not None]
        acts += [state.outdate for state in self.catalog.views.values() if touched.intersection(state.relations)]
        for view, (changed, _) in changes.items():
            if changed is not None:
                acts += deliveries(self.catalog.holders, self.catalog.queues.get(view, ()), changed)
        acts.append(partial(self.catalog.positions.advance, progress))
        return acts

    def _note_in_builds(self, batch: Mapping[str, RowBatch]) -> None:
        """Views that are being built are told of a batch when the transaction that is under way commits."""
        if self.catalog.builds and isinstance(self.lock.pending, Transaction):
            noted = [act for build in self.catalog.builds for act in build.note(batch)]
            self.lock.pending.then = [*self.lock.pending.then, *noted]

    # Views on views

    def _propagate(
        self, relations: Collection[str], triggers: Triggers, apply: Apply, few: int
    ) -> tuple[dict[str, Change], set[str]]:
        """The changes of views that are followed, in an order in which each comes after those that it is built on."""
        touched = set(relations)
        changes: dict[str, Change] = {}
        for state in self.catalog.views.values():
            if state.followed is None or not touched.intersection(state.relations):
                continue
            touched.add(state.name)
            changed, _ = changes[state.name] = change_of(state, triggers.emitted.get(state.name, []))
            if changed is not None and self.catalog.readers(state.name):
                check_numbers(state, changed, self.catalog.read_columns(state.name))
                self._feed(state.name, changed, triggers, apply, 0 if counts_together(state) else few)
        return changes, touched

    def _feed(self, view: str, changed: RowBatch, triggers: Triggers, apply: Apply, few: int) -> None:
        """Passes the change of a view's rows on to the views that are built on it."""
        path = self.single_row_path(view) if len(changed.weights) <= few else None
        rows = [] if path is None else path.completed(changed)
        if path is None or rows is None:
            apply({view: changed})
            return
        for row, weight in zip(rows, changed.weights.tolist(), strict=True):
            path.run(row, weight, triggers.emitted)

    def subscribe(self, view: str, queue: deque[Delta]) -> None:
        """From now on the queue gets the change of the view's rows for each batch that has one."""
        with self.lock, self.installation.catalog_change():
            limit_growth(self.catalog)
            self.installation.follow(view)
            check_memory(self.catalog)
            self.catalog.queues[view] = [*self.catalog.queues.get(view, []), queue]
            self.catalog.forget_inputs()

    def unsubscribe(self, view: str, queue: deque[Delta]) -> None:
        catalog = self.catalog
        with self.lock:
            if view in catalog.views and any(other is queue for other in catalog.queues.get(view, [])):
                with self.installation.catalog_change():
                    catalog.queues[view] = [other for other in catalog.queues[view] if other is not queue]
                    self.installation.unfollow(view)
                    catalog.forget_inputs()

    # Single rows

    def try_apply_row(self, name: str, row: Any, weight: int) -> bool:
        """Changes the multiplicity of one row on the single-row path; False if the batch path has to."""
        refuse_within_functions()
        start = perf_counter() if self.observers else None
        with self.lock:
            path = self._path_of_table(name, weight)
            if path is None:
                return False
            if self.catalog.open_reads:
                self.catalog.let_reads_finish((name,))
            limit_growth(self.catalog, grows=weight > 0)
            try:
                if path.followed:
                    checked = path.check(row)
                    done = checked is not None and self._apply_all([RowChange(name, checked, weight, path)])
                else:
                    done = path.apply(row, weight)
            except MemoryLimitError:
                leave_no_trace(self.catalog)
                raise
            self._count_rows(1)
        if start is not None and done:
            self.wait_durable()
            self.notify_observers({name: 1}, start)
        return done

    def prepare_rows(self, name: str, rows: Sequence[Any], weight: int) -> list[RowChange] | None:
        """Changes of a few rows on the single-row path, not yet made; None if it is not for them."""
        with self.lock:
            path = self._path_of_table(name, weight) if self.catalog.journal is None else None
        checked = [] if path is None else list(map(path.check, rows))
        if path is None or None in checked:
            return None
        return [RowChange(name, row, weight, path) for row in checked if row is not None]

    def try_apply_rows(self, changes: Sequence[RowChange]) -> bool:
        """Makes changes of a few rows, all or none; False if they have to take the batch path."""
        gate = self.catalog.row_gate
        if gate is not None and gate.apply_rows([(each.table, each.row, each.weight) for each in changes]):
            return True
        with self.lock:
            current = all(self._path_of_table(each.table, each.weight) is each.path for each in changes)
            limit_growth(self.catalog, grows=any(each.weight > 0 for each in changes))
            try:
                done = current and self._apply_all(changes)
            except MemoryLimitError:
                leave_no_trace(self.catalog)
                raise
            self._count_rows(len(changes))
            return done

    def _count_rows(self, rows: int) -> None:
        """Short lists are quick, so that not each of them looks whether codes or plans are to change."""
        self._rows_written += rows
        gate = self.catalog.row_gate
        if self._rows_written >= ROWS_BETWEEN or (gate is not None and not gate.rows_left):
            self.reclaim_after_rows(ROWS_BETWEEN)

    def reclaim_after_rows(self, rows: int) -> None:
        with self.lock:
            self._rows_written = 0
            if self.catalog.row_gate is not None:
                self.catalog.row_gate.rows_left = ROWS_BETWEEN
            reclaim(self.catalog)
            self.catalog.note_uses(rows)

    def _apply_all(self, changes: Sequence[RowChange]) -> bool:
        given = [(change.path, change.path.encode(change.row), change.weight) for change in changes]
        encoded = [(path, codes, weight) for path, codes, weight in given if codes is not None]
        if len(encoded) < len(given):
            return False

        def run(triggers: Triggers, _: Apply) -> None:
            most = self.backend.operations + MOST_OPERATIONS
            for number, (path, codes, weight) in enumerate(encoded):
                if number and self.backend.operations > most:
                    raise _TooLongError
                path.run(codes, weight, triggers.emitted)

        def record(_: Mapping[str, Change]) -> None:
            for path, codes, weight in encoded:
                if path.log is not None:
                    path.log.append(codes, weight)

        try:
            self._transact({change.table for change in changes}, run, record, MOST_SINGLE_ROWS)
        except (self.backend.broken_check, self.backend.overflow, _TooLongError):
            return False
        return True

    def single_row_path(self, relation: str) -> SingleRowPath | None:
        """How to change single rows of a table, or of a view for those built on it; None if only batches can."""
        paths = self.catalog.single_rows
        if relation in paths:
            return paths[relation]
        self.catalog.warn_if_lost(relation)
        path = new_path(self.catalog, relation)
        if not self.catalog.builds:  # there may be a path when they are over
            paths[relation] = path
        if path is not None:
            open_gate(self.catalog, relation, path)
        if path is None or path.native is None:
            open_chained(self.catalog, relation)
        return path

    def _path_of_table(self, name: str, weight: int) -> SingleRowPath | None:
        """The single-row path of what users may change in this direction."""
        state = self.catalog.tables.get(name) if type(name) is str else None
        if state is None or (weight < 0 and state.table.append_only):
            return None
        return self.single_row_path(name)

    # Observers and durability

    def notify_observers(self, rows: Mapping[str, int], start: float) -> None:
        """Tells the observers of a batch that has been applied, and is as durable as was requested."""
        seconds = perf_counter() - start
        for observer in self.observers:
            observer(rows, seconds)

    def wait_durable(self) -> None:
        """Returns when what this thread committed is as durable as was requested. Its caller holds no lock."""
        if self.catalog.journal is not None:
            self.catalog.journal.wait()
