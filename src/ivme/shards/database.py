"""The database over shards: a catalog, batches, and views, for any `Cluster`.

Every change, of rows or of the catalog, is a step: its rows are written where the shards find them, the step is put at
the end of the log, and all shards take it. If one of them cannot (a delete of what is not there, an overflow), the next
step takes it back in all the others, and the error is raised: a batch is all or nothing.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ivme.database import Database
from ivme.errors import PlanError, SchemaError, SparkError, still_needed
from ivme.query.model import Table
from ivme.query.names import check_name
from ivme.query.table import References
from ivme.query.types import Type
from ivme.shards.batch import ShardedBatch
from ivme.shards.catalog import ShardCatalog, ViewEntry, read_view_options
from ivme.shards.change_files import PARTIAL
from ivme.shards.cluster import Cluster, Question
from ivme.shards.functions import mentioned, name_function
from ivme.shards.journal import Step
from ivme.shards.merged_changes import merge_changes
from ivme.shards.outcome import bases, committed_state, failure
from ivme.shards.parts import PartFile
from ivme.shards.planning import Planned, check_view, plan_view, views_beneath
from ivme.shards.protocol import Message
from ivme.shards.routing import Routing
from ivme.shards.sharding import is_whole, sharding
from ivme.shards.view import ShardedView
from ivme.user_functions import UserFunction

_FIRST_LOOK = 20_000
"""How many entries a view has before it is looked at whether its rows are spread well; then at each doubling."""


class ShardedDatabase:
    """Tables and views over shards. One writer at a time."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._journal = cluster.journal
        self._lock = threading.RLock()
        self._closed = False
        self._looked_at: dict[str, int] = {}
        self._views: dict[str, ShardedView] = {}
        self._outcome: dict[str, Any] | None = None
        self._recover()

    def _recover(self) -> None:
        """Finishes what the log says was begun, and takes back what failed."""
        last = self._journal.last_step()
        if last:
            self._outcome = self._cluster.take_step(last)
            if failure(self._outcome) is not None:
                self._take_back()
            merge_changes(self)

    @property
    def root(self) -> Path:
        """The folder of its log and state."""
        return self._journal.root

    @property
    def step(self) -> int:
        """The number of the last step that was taken."""
        return 0 if self._outcome is None else int(self._outcome["step"])

    @property
    def _catalog(self) -> ShardCatalog:
        return ShardCatalog.from_json(committed_state(self._outcome)["catalog"])

    # ShardCatalog

    def create_table(
        self,
        name: str,
        schema: Mapping[str, str | Type],
        *,
        primary_key: str | Iterable[str] | None = None,
        append_only: bool = False,
        static: bool = False,
        references: References | None = None,
        unique: Iterable[str | Iterable[str]] = (),
        not_null: Iterable[str] = (),
    ) -> None:
        """Declares an empty table, as `Database.create_table` does."""
        with self._lock:
            self._check_new(name)
            with Database() as checked:
                checked.create_table(
                    name,
                    schema,
                    primary_key=primary_key,
                    append_only=append_only,
                    static=static,
                    references=references,
                    unique=unique,
                    not_null=not_null,
                )
                (made,) = checked.definitions.relations()
            self._commit(catalog=self._catalog.with_table(made))

    def create_view(self, name: str, query: str, *, whole_rows: bool = False, **options: object) -> ShardedView:
        """Makes a view and fills it from the tables; see `ivme.explain` for the options.

        With `whole_rows`, each row or group is in one shard, at the price of more copies: the changes of a view with
        aggregates or DISTINCT are then followed without merging parts. It is planned before the database is locked.
        """
        entry = ViewEntry(name, query, read_view_options(options), Routing(self._journal.shards, (), ()))
        while True:
            with self._lock:
                self._check_new(name)
                catalog = self._catalog
            entry = replace(entry, functions=mentioned(catalog.functions, query))
            entry = replace(entry, beneath=views_beneath(entry, catalog))
            check_view(entry, catalog)
            with self._lock:
                if self._catalog == catalog:
                    self._build(plan_view(entry, catalog, self._degrees, whole_rows=whole_rows))
                    return self.view(name)

    def create_ring_view(self, name: str, *_: object, **__: object) -> None:
        raise PlanError(f"ring view {name} cannot be sharded: its payloads are Python objects; use ivme.Database")

    def create_function(
        self,
        name: str,
        function: Callable[..., Any] | str,
        *,
        arguments: Iterable[str | Type],
        returns: str | Type,
        called_with_null: bool = False,
    ) -> None:
        """Makes a function of Python one of SQL, as `Database.create_function` does.

        All processes import it by its module and name: it must be at the top of a module that they have, and that
        the environment variable IVME_FUNCTIONS lists where shards run.
        """
        made = name_function(UserFunction(name, function, tuple(arguments), returns, called_with_null))
        with self._lock:
            catalog = self._catalog
            if name.lower() in {each.name.lower() for each in catalog.functions}:
                raise SchemaError(f"there is a function {name} already; drop it first")
            self._ask_all({"op": "import", "function": made.to_json()})
            self._commit(catalog=replace(catalog, functions=(*catalog.functions, made)))

    def drop_function(self, name: str) -> None:
        """Forgets a function; one that a view calls is refused."""
        with self._lock:
            catalog = self._catalog
            found = catalog.function(name)
            users = [view.name for view in catalog.views if found in view.functions]
            if users:
                raise PlanError(f"view {users[0]} calls the function {found.name}; drop the view first")
            self._commit(catalog=replace(catalog, functions=tuple(f for f in catalog.functions if f != found)))

    @property
    def functions(self) -> dict[str, str]:
        """The users' functions, and their signatures."""
        return {each.name: str(each.user_function().signature()) for each in self._catalog.functions}

    def rebalance(self, name: str) -> bool:
        """Spreads the rows of a view anew, by what its tables have now; whether that changed anything."""
        with self._lock:
            entry = self._catalog.view(name)
            whole = is_whole(sharding(entry, self._catalog.tables)) and bool(entry.routing.variables)
            planned = plan_view(entry, self._catalog, self._degrees, whole_rows=whole)
            if planned.entry.routing == entry.routing:
                return False
            self._build(replace(planned, entry=replace(planned.entry, generation=entry.generation + 1)))
            return True

    def _build(self, planned: Planned) -> None:
        """Installs a view, or a new generation of it, and fills it."""
        catalog = self._catalog.with_view(planned.entry)
        files: list[PartFile] = []
        if planned.rows:
            folder = self._new_folder()
            head = {"op": "spread", "catalog": catalog.to_json(), "view": planned.entry.name, "folder": folder}
            for answer in self._ask_all(head):
                files += [PartFile(*file) for file in answer.head["files"]]
        self._commit(catalog=catalog, files=files)

    def _degrees(self, catalog: ShardCatalog, view: str) -> list[list[dict[str, Any]]]:
        """The statistics of a view's atoms, shard by shard."""
        head = {"op": "degrees", "catalog": catalog.to_json(), "view": view}
        return [answer.head["degrees"] for answer in self._ask_all(head)]

    def view(self, name: str) -> ShardedView:
        """The view of that name."""
        name = self._catalog.view(name).name
        if name not in self._views:
            self._views[name] = ShardedView(self, name)
        return self._views[name]

    @property
    def views(self) -> tuple[str, ...]:
        """The names of all views, in the order in which they were made."""
        return tuple(view.name for view in self._catalog.views)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables, in the order in which they were made."""
        return tuple(table.name for table in self._catalog.tables)

    def drop_view(self, name: str) -> None:
        """Forgets a view."""
        with self._lock:
            name = self._catalog.view(name).name
            needed = [view.name for view in self._catalog.views if name in {each.name for each in view.beneath}]
            if needed:
                raise still_needed("drop", "view", name, needed)
            self._commit(catalog=self._catalog.without_view(name))
            self._views.pop(name, None)
            for folder in ("changes", PARTIAL):
                shutil.rmtree(self._journal.root / folder / name, ignore_errors=True)

    def drop_table(self, name: str) -> None:
        """Forgets a table and its rows; one that views are built on is refused."""
        with self._lock:
            name = self._catalog.table(name).name
            needed = [view.name for view in self._catalog.views if name in self._relations_of(view)]
            if needed:
                raise still_needed("drop", "table", name, needed)
            self._commit(catalog=self._catalog.without_table(name))

    def _relations_of(self, entry: ViewEntry) -> tuple[str, ...]:
        return sharding(entry, self._catalog.tables).relations

    def _follow(self, name: str) -> None:
        """From the next step on, the changes of a view are kept."""
        with self._lock:
            entry = self._catalog.view(name)
            query = sharding(entry, self._catalog.tables).query
            if query.input and query.aggregates:
                raise PlanError(
                    f"view {name} has parameters and aggregates, so that its changes cannot be followed; follow a "
                    f"view that groups by {', '.join(query.parameters)} instead"
                )
            if not entry.followed:
                self._commit(catalog=self._catalog.with_view(replace(entry, followed=True)))

    # Changes

    def insert(self, table: str, rows: Any) -> None:
        """Adds rows: whatever `Database.insert` takes, and Spark DataFrames, whose rows stay where they are."""
        with self.batch() as batch:
            batch.insert(table, rows)

    def delete(self, table: str, rows: Any, *, strict: bool = True) -> None:
        """Takes rows away; one that is not there is an error, or with strict=False ignored."""
        with self.batch() as batch:
            batch.delete(table, rows, strict=strict)

    def apply(self, table: str, rows: Any, weights: Any) -> None:
        """Adds each row with its weight as multiplicity; for a DataFrame, `weights` is the name of a column."""
        with self.batch() as batch:
            batch.apply(table, rows, weights)

    def batch(self, source: str | None = None, position: int | None = None) -> ShardedBatch:
        """Several changes, all or nothing.

        With a source and a position, a batch at or below what the source has reached changes nothing: a client that
        sends a batch again after a failure does nothing twice.
        """
        if self._closed:
            raise PlanError("the database is closed")
        return ShardedBatch(self, source, position)

    def position(self, source: str) -> int | None:
        """How far a source has been applied; None if nothing of it has."""
        found = committed_state(self._outcome)["sources"].get(source)
        return None if found is None else int(found)

    def _next_step(self) -> int:
        """The number of the next step; refused while the fate of another is not known."""
        if self._closed:
            raise PlanError("the database is closed")
        number = self.step + 1
        if self._journal.last_step() >= number:
            raise SparkError(f"step {number} was begun and not finished; close the database and open it again")
        return number

    def _new_folder(self) -> str:
        """The folder for the files of the next step, without what a step that never was has left there."""
        folder = f"log/{self._next_step()}"
        shutil.rmtree(self._journal.root / folder, ignore_errors=True)
        return folder

    def _commit(
        self,
        *,
        catalog: ShardCatalog | None = None,
        files: Sequence[PartFile] = (),
        clipped: Sequence[str] = (),
        source: tuple[str, int] | None = None,
    ) -> None:
        """Takes all shards through a new step, or none."""
        number = self._next_step()
        written = None if catalog is None else catalog.to_json()
        self._journal.write_step(Step(number, written, tuple(files), tuple(clipped), None, source))
        self._outcome = self._cluster.take_step(number)
        error = failure(self._outcome)
        if error is not None:
            self._take_back()
            raise error
        merge_changes(self)
        if catalog is None:
            self._rebalance_if_skewed()

    def _take_back(self) -> None:
        assert self._outcome is not None
        failed = self.step
        self._journal.write_step(Step(failed + 1, undo=failed))
        self._outcome = self._cluster.take_step(failed + 1)

    def _rebalance_if_skewed(self) -> None:
        """Spreads views anew whose rows are spread badly; looked at when they have doubled."""
        assert self._outcome is not None
        for entry in self._catalog.views:
            loads = view_loads(self._outcome, entry)
            total = sum(loads.values())
            if total < max(_FIRST_LOOK, 2 * self._looked_at.get(entry.name, 0)):
                continue
            self._looked_at[entry.name] = total
            whole = is_whole(sharding(entry, self._catalog.tables)) and bool(entry.routing.variables)
            planned = plan_view(entry, self._catalog, self._degrees, whole_rows=whole)
            if planned.load * 1.5 < planned.load_before:
                self._build(replace(planned, entry=replace(planned.entry, generation=entry.generation + 1)))

    # Asking

    def _ask(self, questions: Sequence[Question]) -> list[Message]:
        """The answers of shards at the present step."""
        known = bases(self._outcome, self._journal.shards)
        asked = [replace(q, head={**q.head, "base": known[q.shard].to_json()}) for q in questions]
        return self._cluster.ask(asked)

    def _ask_all(self, head: Mapping[str, Any]) -> list[Message]:
        return self._ask([Question(shard, head) for shard in range(self._journal.shards)])

    def status(self) -> list[dict[str, Any]]:
        """For each shard its process, its step, how often it was rebuilt, and the entries of its engines."""
        with self._lock:
            return [dict(answer.head) for answer in self._ask_all({"op": "status"})]

    def close(self) -> None:
        """Ends the shards' processes. What the checkpoint holds stays, and can be opened again."""
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
        check_name(name, "a table or view")
        if "/" in name or name.startswith("."):
            raise SchemaError(f"a table or view needs a name that can be that of a file; {name!r} is none")
        for kind, known in (("table", self.tables), ("view", self.views)):
            if name.lower() in {other.lower() for other in known}:
                raise SchemaError(f"there is already a {kind} named {name}; drop it first or choose another name")


def view_loads(outcome: Mapping[str, Any], entry: ViewEntry) -> dict[int, int]:
    """How many entries each shard has for a view."""
    start = f"view {entry.name}/{entry.generation}/"
    return {
        int(shard): sum(size for label, size in entries.items() if label.startswith(start))
        for shard, entries in outcome["entries"].items()
    }


def table_size(outcome: Mapping[str, Any] | None, table: Table) -> int:
    """How many entries a table has in all shards."""
    found = {} if outcome is None else outcome["entries"]
    return sum(entries.get(f"table {table.name}", 0) for entries in found.values())
