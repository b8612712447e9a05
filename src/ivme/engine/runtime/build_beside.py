"""Building a view while others write (decision 0140).

The view is built in a kernel of its own, from the rows that its tables hold at one moment; batches that are committed
meanwhile are noted, and applied to it as changes. What is left at the end is done under the lock: the last of these
batches, and loading the entries of the maps, as from an image. The lock is held for one piece of the rows at a time.

A build that finds something out of the ordinary (an expression without a value, a sum that does not fit, a table that
is declared again) gives up: the view is then built under the lock, which knows what to say. It leaves nothing behind,
as nothing but a weak reference in `Catalog.builds` knows of it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ivme.engine.backend import Codes
from ivme.engine.ingest.feed import Feed
from ivme.engine.ingest.row_batch import Layout, RowBatch
from ivme.engine.native_backend import NativeBackend
from ivme.engine.runtime.filling import fill_group
from ivme.engine.runtime.image import Image
from ivme.engine.runtime.shared_views import SharedViews
from ivme.engine.runtime.stored_sums import limit_sums
from ivme.engine.runtime.transaction import Act, delivery, taken
from ivme.errors import IvmeError
from ivme.plan.assemble.installed import group_key

if TYPE_CHECKING:
    from ivme.engine.runtime.catalog import Catalog
    from ivme.engine.runtime.view_state import TableState
    from ivme.plan.assemble.plan import Plan
    from ivme.plan.ir import program as ir
    from ivme.query.typed import TypedQuery

LEAST_ROWS = 200_000
"""Fewer rows are built under the lock, in less time than a writer notices."""

PIECE = 100_000
"""So many rows are read under the lock at a time."""

FEW_BATCHES = 4
"""So many batches are left for the lock."""

_BREATH = 0.0005
"""The seconds for which a build releases the lock; without a pause, a waiting writer might not get it."""

Changes = Mapping[str, RowBatch]


class _MovedError(Exception):
    """Rows of a table got other numbers while they were read, or it is not the table any more that it was."""


class _Rows(RowBatch):
    """Some of a table's places as they were when a build began, of which some had no row."""

    __slots__ = ("_first", "_heap", "_kernel", "_there")

    def __init__(self, layout: Layout, backend: NativeBackend, heap: int, weights: Codes, first: int) -> None:
        self._there = weights != 0
        super().__init__(layout, weights[self._there])
        self._kernel, self._heap, self._first = backend.kernel, heap, first

    def code(self, position: int) -> Codes:
        if self._codes[position] is None:
            end = self._first + len(self._there)
            self._codes[position] = self._kernel.heap_column(self._heap, position, self._first, end)[self._there]
        return super().code(position)


class _TableThen:
    """A table as it was at one moment."""

    def __init__(self, backend: NativeBackend, state: TableState) -> None:
        self.state = state
        self.heap = backend.heap(state.rows)
        self.places, self.moves = backend.kernel.heap_places(self.heap)
        self._small, self._large_places, self._large = backend.kernel.heap_small_weights(self.heap)

    def weights(self, first: int) -> Codes:
        """The weights of a piece of the places; zero where there was no row."""
        found = self._small[first : first + PIECE].astype(np.int64)
        start, end = np.searchsorted(self._large_places, (first, first + PIECE))
        found[self._large_places[start:end] - first] = self._large[start:end]
        return found


class BuildBeside:
    """One view, built in a kernel of its own."""

    def __init__(self, live: Catalog, name: str, typed: TypedQuery, plan: Plan) -> None:
        """Takes down what the tables hold; under the lock."""
        assert isinstance(live.backend, NativeBackend)
        self._live, self._name, self._typed, self._plan = live, name, typed, plan
        self._kernel = live.backend
        self._backend = NativeBackend(threads=live.backend.kernel.threads)
        self._noted: deque[Changes] = deque()
        relations = dict.fromkeys(atom.relation for atom in typed.query.atoms)
        self._tables = {relation: _TableThen(live.backend, live.tables[relation]) for relation in relations}
        key = group_key(name, typed.slots, is_split=bool(plan.blueprint.splits))
        self._group = SharedViews("built", key, self._backend, live.domains, typed.slots)
        self._group.tuning = plan.tuning
        live.builds.add(self)
        live.forget_inputs()

    def reads(self, relation: str) -> bool:
        return relation in self._tables

    def note(self, batch: Changes) -> list[Act]:
        """What is to be done when a batch is committed; the rows are copied, as their memory may be someone else's."""
        mine = {
            name: changed.kept(np.arange(len(changed.weights)), changed.weights)
            for name, changed in batch.items()
            if name in self._tables
        }
        return [delivery(self._noted, mine)] if mine else []

    def run(self) -> bool:
        """Builds the view, without the lock; False if it gave up."""
        try:
            blueprints = {self._name: self._plan.blueprint}
            filled = self._group.install(blueprints, {self._name: self._typed.types})
            fill_group(self._group, [self._name], filled, self._run_once, is_new=True)
            while len(self._noted) > FEW_BATCHES:
                self._catch_up()
        except (IvmeError, self._backend.overflow, _MovedError):
            return False
        return True

    def image(self) -> Image | None:
        """The view's maps as they have to be now, under the lock; None if it gave up."""
        try:
            self._check_tables()
            self._catch_up()
        except (IvmeError, self._backend.overflow, _MovedError):
            return None
        finally:
            self._live.builds.discard(self)
        if limit_sums(self._backend, self._group, {self._name: self._typed}):
            return None
        maps = {key: self._backend.dump(name) for name, key in self._group.identities().items()}
        rebalancer = self._group.rebalancer
        return Image(maps, {} if rebalancer is None else {repr(self._group.key): rebalancer.kept()}, {})

    def _check_tables(self) -> None:
        for relation, then in self._tables.items():
            if self._live.tables.get(relation) is not then.state:
                raise _MovedError

    def _run_once(self, steps: list[ir.Step]) -> None:
        feeds = self._backend.set_trigger("once", steps, self._group.slots)
        inputs = {relation: self._input(relation, feed) for relation, feed in feeds.items()}
        self._backend.run("once", inputs)
        self._backend.drop_trigger("once")

    def _input(self, relation: str, feed: Feed) -> tuple[Sequence[Codes], Codes]:
        """What a trigger wants of a table's rows, read piece by piece."""
        then, parts, weights = self._tables[relation], list[list[Codes]](), list[Codes]()
        with self._live.lock:
            wanted = self._live.wanted(relation, [("once", feed)])
        for first in range(0, then.places, PIECE):
            with self._live.lock:
                self._check_tables()
                if self._kernel.kernel.heap_places(then.heap)[1] != then.moves:
                    raise _MovedError
                layout = self._live.layout(relation)
                rows = _Rows(layout, self._kernel, then.heap, then.weights(first), first)
                parts.append(wanted.of(rows)[0][1])
                weights.append(rows.weights)
            let_writers_in()
        nothing = np.empty(0, np.int64)
        columns = [np.concatenate([nothing, *(part[i] for part in parts)]) for i in range(len(feed.columns))]
        return columns, np.concatenate([nothing, *weights])

    def _catch_up(self) -> None:
        """Applies the batches that have been noted."""
        for batch in list(taken(self._noted)):
            with self._live.lock:
                self._check_tables()
                inputs = {relation: self._change(relation, changed) for relation, changed in batch.items()}
            self._group.begin()
            self._backend.begin()
            for relation, columns in inputs.items():
                self._group.run(relation, columns, batch[relation].weights)
            self._backend.commit()

    def _change(self, relation: str, changed: RowBatch) -> list[Codes]:
        feed = self._group.feed(relation) if self._group.reads(relation) else Feed(())
        return self._live.wanted(relation, [("once", feed)]).of(changed)[0][1]


def let_writers_in() -> None:
    """Leaves the lock for others for a moment."""
    time.sleep(_BREATH)


def build_beside(live: Catalog, name: str, typed: TypedQuery, plan: Plan | None) -> BuildBeside | None:
    """Builds a view while others write, if it is one that can be, and large; without the lock."""
    with live.lock:
        build = BuildBeside(live, name, typed, plan) if plan is not None and _is_for(live, typed, plan) else None
    return build if build is not None and build.run() else None


def _is_for(live: Catalog, typed: TypedQuery, plan: Plan) -> bool:
    backend = live.backend
    if not isinstance(backend, NativeBackend) or live.image is not None or live.lock.pending is not None:
        return False
    if plan.blueprint.lazy or plan.checks:
        return False
    states = [live.tables.get(relation) for relation in {atom.relation for atom in typed.query.atoms}]
    rows = [0 if state is None else backend.size(state.rows) for state in states]
    return (
        all(state is not None and not state.ring and state.table.keep_rows for state in states)
        and sum(rows) >= LEAST_ROWS
    )
