"""The database over shards: a catalog, batches, and views, for any `Cluster`.

Every change, of rows or of the catalog, is a step: its rows are put to the shards, which prepare it, and if none of
them has a reason not to (a delete of what is not there, an overflow), its record is made and all commit. A batch whose
host is lost on the way is tried again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ivme.definitions.single_changes import SingleChanges
from ivme.errors import PlanError, SparkError, StorageError, still_needed
from ivme.query.names import OWN_TABLES
from ivme.shards import planning
from ivme.shards.batch import DRIVER, ShardedBatch
from ivme.shards.blocks import planned_views
from ivme.shards.catalog import MOST_SHARDS, ShardCatalog, ViewEntry, check_new_name, read_view_options
from ivme.shards.changes import ShardedChanges
from ivme.shards.checkpoint import Checkpoint
from ivme.shards.clock import ShardClock
from ivme.shards.cluster import Cluster
from ivme.shards.coordinator import Coordinator, OpenStep, PutPlace, StepInput, new_transaction
from ivme.shards.distribute import packed_by_shard
from ivme.shards.entries import view_loads
from ivme.shards.exchange import Told, is_merged, placed_in, readers
from ivme.shards.functions import mentioned
from ivme.shards.merge import WEIGHT, consolidated
from ivme.shards.merged_changes import merged_changes, merged_feeds, merged_rows
from ivme.shards.message import Message, Question, again_if_lost
from ivme.shards.parts import PackedPart
from ivme.shards.routing import Routing
from ivme.shards.sharding import sharding
from ivme.shards.view import ShardedView
from ivme.shards.view_query import with_expiry

_FIRST_LOOK = 20_000
"""How many entries a view has before it is looked at whether its rows are spread well; then at each doubling."""


class ShardedDatabase(ShardClock, SingleChanges):
    """Tables and views over shards. One writer at a time."""

    def __init__(self, cluster: Cluster, resized: Callable[[], Cluster] | None = None) -> None:
        """`resized` makes a cluster for the number of shards that the checkpoint then has."""
        self._resized = resized
        self._lock = threading.RLock()
        self._closed = False
        self._looked_at: dict[str, int] = {}
        self._kept_from: int | None = None
        self._views: dict[str, ShardedView] = {}
        self._feeds: list[ShardedChanges] = []
        self.observers: list[Callable[[], None]] = []
        """Called after each step, under the lock."""
        self._open(cluster)

    @property
    def lock(self) -> threading.RLock:
        """Who holds it sees one step."""
        return self._lock

    def _open(self, cluster: Cluster) -> None:
        self._cluster = cluster
        try:
            self._coordinator = Coordinator(cluster, merged_feeds)
            self._coordinator.start()
        except BaseException:
            cluster.close()
            raise

    @property
    def checkpoint(self) -> Checkpoint:
        """Where its steps and snapshots are."""
        return self._cluster.checkpoint

    @property
    def step(self) -> int:
        """The number of the last step that was taken."""
        return self._coordinator.step

    @property
    def _catalog(self) -> ShardCatalog:
        return self._coordinator.catalog

    @property
    def _shards(self) -> int:
        return self._cluster.checkpoint.shards

    # Catalog

    def create_view(self, name: str, query: str, *, whole_rows: bool = False, **options: object) -> ShardedView:
        """Creates a view and fills it from the tables; see `ivme.explain` for the options.

        With `whole_rows`, each row or group is in one shard, at the price of more copies: the changes of a view with
        aggregates or DISTINCT are then followed without merging parts. It is planned before the database is locked.
        """
        query, reads_clock, options = with_expiry(query, options)
        entry = ViewEntry(name, query, read_view_options(options), Routing(self._shards, (), ()))
        while True:
            with self._lock:
                self._check_new(name)
                self._drop_lost_parts()
                if reads_clock:
                    self._make_clock()
                catalog = self._catalog
            entry = replace(entry, functions=mentioned(catalog.functions, query))
            entry = replace(entry, beneath=planning.views_beneath(entry, catalog))
            planning.check_view(entry, catalog)
            with self._lock:
                if self._catalog == catalog:
                    for view in planning.to_make_whole(entry, catalog):
                        self._spread_anew(view, whole_rows=True)
                    self._make(entry, whole_rows=whole_rows)
                    return self.view(name)

    def _make(self, entry: ViewEntry, *, whole_rows: bool) -> None:
        try:
            for planned in planned_views(entry, lambda: self._catalog, self._degrees, whole_rows=whole_rows):
                self._build(planned)
        finally:
            self._drop_lost_parts()

    def _drop_lost_parts(self) -> None:
        if (catalog := self._catalog.without_lost_parts()) != self._catalog:
            self._change_catalog(catalog)

    def create_ring_view(self, name: str, *_: object, **__: object) -> None:
        raise PlanError(f"ring view {name} cannot be sharded: its payloads are Python objects; use ivme.Database")

    def rebalance(self, name: str) -> bool:
        """Spreads the rows of a view again, by the present sizes of its tables; returns whether it did."""
        with self._lock:
            entry = self._catalog.view(name)
            return self._spread_anew(entry, whole_rows=planning.keeps_whole(entry, self._catalog))

    def _spread_anew(self, entry: ViewEntry, *, whole_rows: bool) -> bool:
        planned = planning.plan_view(entry, self._catalog, self._degrees, whole_rows=whole_rows)
        if planned.entry.routing == entry.routing:
            return False
        self._build(replace(planned, entry=replace(planned.entry, generation=entry.generation + 1)))
        return True

    def reshard(self, shards: int) -> None:
        """Changes the number of shards between two batches: all rows move, and all hosts restart.

        If anything dies meanwhile, the checkpoint opens with the old number or with the new one, whole.
        """
        if not isinstance(shards, int) or isinstance(shards, bool) or not 1 <= shards <= MOST_SHARDS:
            raise SparkError(f"shards must be a number from 1 to {MOST_SHARDS}; it is {shards!r}")
        with self._lock:
            self._settled()
            if shards == self._shards:
                return
            if self._resized is None:
                raise PlanError("the shards of this database cannot be restarted; open it with SparkDatabase")
            try:
                planned = planning.planned_for(self._catalog, shards, self._degrees)
                self._coordinator.lay_out(planned, shards, self._merged_rows(readers(self._catalog)))
            except StorageError:
                self.close()
                raise
            self._cluster.close()
            self._closed = True  # unless it opens again
            self._open(self._resized())
            self._closed = False
            self._looked_at = {}
            self._coordinator.compact(self._oldest_wanted, now=True)

    def _build(self, planned: planning.Planned) -> None:
        """Installs a view, or a new generation of it, and fills it: shards put its rows to each other."""
        catalog, view = self._catalog.with_view(planned.entry), planned.entry.name
        merged = self._merged_rows(feed.name for feed in planned.entry.feeds)

        def made(transaction: str) -> StepInput:
            places: list[PutPlace] = []
            if planned.rows:
                head = {"op": "spread", "catalog": catalog.to_json(), "view": view, "transaction": transaction}
                for answer in self._ask_all(head):
                    places += [(shard, tuple(answer.head["key"])) for shard in answer.head["shards"]]
            packed = packed_by_shard(placed_in(catalog, planned.entry, merged))
            self._cluster.put(transaction, DRIVER, packed)
            return StepInput(transaction, [*places, *((shard, DRIVER) for shard in packed)], catalog)

        self._take(made)

    def _merged_rows(self, views: Iterable[str]) -> list[Told]:
        """The rows of those views that feed others and have parts in several shards."""
        wanted = [view for view in views if is_merged(view, self._catalog)]
        return [(view, merged_rows(self._catalog, view, self._ask)) for view in wanted]

    def _degrees(self, catalog: ShardCatalog, view: str) -> list[list[dict[str, Any]]]:
        """The statistics of a view's atoms, shard by shard."""
        asked = self._ask_all({"op": "degrees", "catalog": catalog.to_json(), "view": view})
        return [answer.head["degrees"] for answer in asked]

    def view(self, name: str) -> ShardedView:
        """The view of that name."""
        name = self._shown(name).name
        return self._views.setdefault(name, ShardedView(self, name))

    def _shown(self, name: str) -> ViewEntry:
        """A view that users know."""
        return replace(self._catalog, views=self._catalog.shown).view(name)

    @property
    def views(self) -> tuple[str, ...]:
        """The names of all views, in the order of their creation."""
        return tuple(view.name for view in self._catalog.shown)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables, in the order of their creation."""
        return tuple(table.name for table in self._catalog.tables if table.name not in OWN_TABLES)

    def drop_view(self, name: str) -> None:
        """Drops a view."""
        with self._lock:
            name = self._shown(name).name
            needed = [view.name for view in self._catalog.shown if name in {each.name for each in view.beneath}]
            if needed:
                raise still_needed("drop", "view", name, needed)
            self._change_catalog(self._catalog.without_view(name))
            self._views.pop(name, None)
            self._feeds = [feed for feed in self._feeds if feed.view != name]
            self.checkpoint.forget_consumers(name)

    def _follow(self, name: str) -> None:
        """From the next step on, the changes of a view are stored."""
        with self._lock:
            entry = self._catalog.view(name)
            query = sharding(entry, self._catalog.tables).query
            if query.input and query.aggregates:
                raise PlanError(
                    f"view {name} has parameters and aggregates, so its changes cannot be followed; follow a "
                    f"view that groups by {', '.join(query.parameters)} instead"
                )
            if not entry.followed:
                self._change_catalog(self._catalog.with_view(replace(entry, followed=True)))

    def _followed(self, name: str) -> ShardedChanges:
        """A feed of the changes of a view."""
        with self._lock:
            self._follow(name)
            self._feeds.append(ShardedChanges(self, name))
            return self._feeds[-1]

    # Changes

    def insert(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Inserts rows: whatever `Database.insert` takes, and Spark DataFrames, whose rows stay where they are."""
        with self.batch() as batch:
            batch.insert(table, rows, round_floats=round_floats)

    def delete(self, table: str, rows: Any, *, strict: bool = True) -> None:
        """Deletes rows; a row that is not in the table is an error, or ignored with strict=False."""
        with self.batch() as batch:
            batch.delete(table, rows, strict=strict)

    def batch(self, source: str | None = None, position: int | None = None) -> ShardedBatch:
        """Several changes, all or nothing.

        With a source and a position, a batch at or below what the source has reached changes nothing: a client that
        sends a batch again after a failure does nothing twice.
        """
        if self._closed:
            raise PlanError("the database is closed")
        return ShardedBatch(self, source, position)

    def position(self, source: str) -> int | None:
        """The position that the last batch of a source recorded; None if there was none."""
        with self._lock:
            self._settled()
            return self._coordinator.last.sources.get(source)

    def positions(self) -> dict[str, int]:
        """How far each source has been applied."""
        with self._lock:
            self._settled()
            return dict(self._coordinator.last.sources)

    def _settled(self) -> None:
        """Nothing is done while the fate of a step is not known."""
        if self._closed:
            raise PlanError("the database is closed")
        self._coordinator.settle()

    def _change_catalog(self, catalog: ShardCatalog) -> None:
        self._take(lambda transaction: StepInput(transaction, catalog=catalog))

    def _take(self, make: Callable[[str], StepInput]) -> None:
        """Takes all shards through a step, or none; `make` puts its rows, again for each attempt."""
        self._settled()
        again_if_lost(lambda: self._coordinator.take(make(new_transaction()), self._merged_changes))
        for observe in self.observers:
            observe()
        self._coordinator.compact(self._oldest_wanted)

    def _try(self, make: Callable[[str], StepInput]) -> None:
        """Takes all shards to where a step could happen, and back; raises why it could not."""
        again_if_lost(lambda: self._coordinator.attempt(make(new_transaction()), self._merged_changes))

    def _merged_changes(self, step: OpenStep) -> list[PackedPart]:
        return merged_changes(self._coordinator, step)

    def _oldest_wanted(self) -> int:
        """The last step whose changes all who follow a view have."""
        self._feeds = [feed for feed in self._feeds if feed.is_open]
        streams = [step for _, _, step in self.checkpoint.consumers()]
        kept = [] if self._kept_from is None else [self._kept_from - 1]
        return min((*(feed.seen for feed in self._feeds), *streams, *kept), default=self.step)

    def keep_changes_from(self, step: int | None) -> None:
        """Steps from this one on stay in the checkpoint, for a reader that is not there yet; None lets go of them."""
        self._kept_from = step

    def _rebalance_if_skewed(self) -> None:
        """Redistributes views whose rows are spread badly; checked when they have doubled."""
        for entry in self._catalog.views:
            loads = view_loads(self._coordinator.entries, entry)
            total = sum(loads.values())
            if total < max(_FIRST_LOOK, 2 * self._looked_at.get(entry.name, 0)):
                continue
            self._looked_at[entry.name] = total
            whole = planning.keeps_whole(entry, self._catalog)
            planned = planning.plan_view(entry, self._catalog, self._degrees, whole_rows=whole)
            if planned.load * 1.5 < planned.load_before:
                self._build(replace(planned, entry=replace(planned.entry, generation=entry.generation + 1)))

    # Asking

    def _ask(self, questions: Sequence[Question]) -> list[Message]:
        """The answers of shards at the present step."""
        self._settled()
        return self._coordinator.ask(questions)

    def ask(self, questions: Iterable[Question]) -> list[Message]:
        """The answers of shards, all of one step."""
        with self._lock:
            return self._ask(list(questions))

    def table_rows(self, name: str) -> pa.Table:
        """The distinct rows of a table, with their multiplicities as last column."""
        with self._lock:
            table = self._catalog.table(name).name
            return pa.concat_tables(answer.tables[0] for answer in self._ask_all({"op": "table", "table": table}))

    def contents(self, name: str) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The distinct rows of a table, or of a view without parameters, in Arrow, and their multiplicities."""
        is_view = isinstance(name, str) and name.lower() in {view.lower() for view in self.views}
        rows = consolidated(self.view(name).weighted()) if is_view else self.table_rows(name)
        return rows.drop_columns([WEIGHT]), rows.column(WEIGHT).to_numpy()

    def entry(self, name: str) -> ViewEntry:
        """A view as the catalog has it."""
        return self._catalog.view(name)

    def _ask_all(self, head: Mapping[str, Any]) -> list[Message]:
        return self._ask([Question(shard, head) for shard in range(self._shards)])

    def status(self) -> list[dict[str, Any]]:
        """For each shard its host, process and epoch, its step, memory and entries, and how often it was rebuilt."""
        with self._lock:
            answers = self._ask_all({"op": "status"})
            return [{**host, **answer.head} for host, answer in zip(self._cluster.hosts(), answers, strict=True)]

    def close(self) -> None:
        """Ends the processes of the shards. The checkpoint remains, and can be opened again."""
        with self._lock:
            if not self._closed:
                self._cluster.close()
            self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_new(self, name: str) -> None:
        if self._closed:
            raise PlanError("the database is closed")
        check_new_name(name, self._catalog)
