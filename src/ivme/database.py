"""The embedded database: tables, views over them, and atomic batches of changes (DESIGN section 2).

db = ivme.Database()
db.create_table("R", {"a": "int", "b": "int"})
v = db.create_view("counts", "SELECT a, COUNT(*) AS n FROM R GROUP BY a")
db.insert("R", [(1, 2), (1, 3)])
list(v)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ivme.budget import claim
from ivme.closure.duckdb_executor import DuckDbExecutor
from ivme.closure.ies import make_ies, relation
from ivme.closure.install import drop_closures
from ivme.compile import parse
from ivme.engine.codes.arrow_types import declared_type
from ivme.engine.runtime.batch import Batch
from ivme.engine.runtime.catalog_change import saved
from ivme.engine.runtime.memory import read_size
from ivme.engine.runtime.positions import read_progress
from ivme.engine.runtime.reclaim import reclaim
from ivme.engine.runtime.ring_view import RingView, lifting
from ivme.engine.runtime.transaction import Act
from ivme.errors import PlanError, SchemaError, UnknownNameError, shown
from ivme.ies_view import IesView
from ivme.installing import install_view, new_runtime, prepare_view
from ivme.planning import parse_view, plan_ring_view, plan_view
from ivme.query.model import Table, check_head, check_table
from ivme.query.model import table as declare
from ivme.query.names import check_name
from ivme.query.one_type import one_type_each
from ivme.store.broken_views import broken_source, rebuild, whole
from ivme.view import View

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from ivme.algebra.ring import Ring
    from ivme.query.types import Type
    from ivme.store.store import Store


class Database:
    """Tables and views in memory. One writer at a time; any number of readers.

    With a path they are kept in that directory, too: a batch is on the disk when it is committed, or with
    durability="async" soon after. What the directory holds is there again when it is opened. A damaged directory is
    refused; accept_loss=True opens what is left of it, and sets the rest aside.

    With a memory_limit (bytes, or a text such as "2GB"), a batch or a view that would take more is refused with
    `MemoryLimitError`, and changes nothing.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        durability: str = "sync",
        accept_loss: bool = False,
        memory_limit: int | str | None = None,
    ) -> None:
        self._runtime = new_runtime()
        self._runtime.memory_limit = None if memory_limit is None else read_size(memory_limit)
        self._views: dict[str, View] = {}
        self._broken: dict[str, str] = {}
        self._closed = False
        self._store: Store | None = None
        self._is_opening = path is not None
        if path is not None:
            from ivme.store.opening import open_store

            store = open_store(Path(path), durability, self, accept_loss=accept_loss)
            self._store = self._runtime.journal = store
            self._is_opening = False

    # Catalog

    def create_table(
        self,
        name: str,
        schema: Mapping[str, str | Type],
        *,
        primary_key: str | Iterable[str] | None = None,
        append_only: bool = False,
        static: bool = False,
    ) -> None:
        """Declares an empty table; types are int, float, decimal(p, s), string, bool, date, timestamp and binary."""
        self._check_new(name)
        if not isinstance(schema, Mapping) or not schema:
            raise SchemaError(f"table {name} needs a mapping from its columns to their types")
        made = declare(name, schema, primary_key=primary_key, append_only=append_only, static=static)
        check_table(made)
        with self._runtime.lock, self._catalog_change():
            self._runtime.add_table(made)
            if self._store is not None:
                self._store.create_table(made)
        self._runtime.settle()

    def create_ring_view(self, name: str, query: str, ring: Ring, **options: object) -> RingView:
        """Makes a view whose rows carry elements of a ring, such as `ivme.rings.Covariance`, in place of counts.

        A ring is code, which a directory does not keep: make the view again after opening.
        """
        self._check_new(name)
        while True:
            with self._runtime.lock:
                relations = self._relations()
            with self._naming_broken_views():
                parsed = lifting(replace(parse(query, relations), name=name), ring)
            check_head(parsed)
            if parsed.has_closures:
                raise PlanError(f"ring view {name} cannot read a closure itself; make the closure a view and read that")
            parsed = one_type_each(parsed)
            explanation, plan = plan_ring_view(parsed, options)
            with self._runtime.lock:
                if self._are_current(parsed.tables, relations):
                    self._check_new(name)
                    view = RingView(parsed, plan, explanation, ring)
                    self._runtime.add_ring_view(view)
                    return view

    def create_view(self, name: str, query: str, **options: object) -> View:
        """Makes a view and fills it from the tables; see `ivme.explain` for the options."""
        return self._create_view(name, query, options)

    def _create_view(
        self,
        name: str,
        query: str,
        options: Mapping[str, object],
        stored: str | None = None,
        replanned: Callable[[str], None] | None = None,
    ) -> View:
        """Plans a view, unless its stored plan can be used, and installs it; `replanned` is told a new plan."""
        self._check_new(name)
        if self._store is not None and not isinstance(query, str):
            raise PlanError(f"view {name} is to be kept in a directory: give its query as a text")
        made: View | None = None
        while made is None:
            with self._runtime.lock:
                relations = self._relations()
            with self._naming_broken_views():
                parsed = parse_view(name, query, relations, options, is_stored=self._is_opening)
            self._check_sources(parsed.tables)
            planned = plan_view(parsed, options, stored)
            prepared = prepare_view(self._runtime, planned)
            text = None if self._store is None else planned.text()
            with self._runtime.lock:
                if self._are_current(parsed.tables, relations):
                    self._check_new(name)
                    with self._catalog_change():
                        made = install_view(self._runtime, planned, prepared)
                        claim()
                        if self._store is not None:
                            self._store.create_view(name, query, options, text)
                        self._views[name] = made
        if planned.is_new and replanned is not None:
            replanned(planned.text())
        self._runtime.settle()
        return made

    def _forget_view(self, name: str) -> None:
        """Drops a view, and the closures that only it reads."""
        relations = self._runtime.views[name].relations
        self._runtime.drop_view(name)
        drop_closures(self._runtime, [relation for relation in relations if relation not in self._views])

    def _forget_definition(self, name: str) -> None:
        """A view that is dropped is not stored any more, whether it was broken or not."""
        self._broken.pop(name, None)
        if self._store is not None:
            self._store.forget_view(name)

    def create_ies(
        self,
        name: str,
        inputs: str | Iterable[str],
        answer: Mapping[str, str | Type],
        auxiliary: Mapping[str, Mapping[str, str | Type]],
        on_insert: str | Mapping[str, str],
        on_delete: str | Mapping[str, str],
        on_start: str = "",
    ) -> IesView:
        """Makes a view that your own SQL keeps: an incremental evaluation system over tables, run in DuckDB.

        `answer` is the schema of the table `name`; each input has a program for a row that comes and one for a row that
        goes, in which `:column` is the row's value; `on_start` runs over empty inputs. See docs/closure.md.
        """
        self._check_new(name)
        with self._runtime.lock:
            named = [inputs] if isinstance(inputs, str) else list(inputs)
            tables = [self._runtime.tables[self._known(table, self._runtime.tables, "table")].table for table in named]
            schemas = {t.name: {c.name: declared_type(t, c) for c in t.columns} for t in tables}
            ies = make_ies(name, schemas, relation(name, answer), auxiliary, on_insert, on_delete, on_start=on_start)
            view = IesView(ies, {table.name: table.name for table in tables}, DuckDbExecutor(ies))
            self._runtime.add_ring_view(view)
        return view

    def view(self, name: str) -> View:
        """The view of that name; `BrokenViewError` if it is broken."""
        return self._views[whole(self._known(name, (*self._views, *self._broken), "view"), self._broken)]

    def rebuild_view(self, name: str) -> View:
        """Builds a broken view again; `BrokenViewError` or another error says why that fails."""
        with self._runtime.lock:
            name = self._known(name, self._broken, "broken view")
            assert self._store is not None, "views in memory are never broken"
            return rebuild(self, self._store.views, name)

    @property
    def views(self) -> tuple[str, ...]:
        """The names of all views that can be read, in the order in which they were made."""
        return tuple(self._views)

    @property
    def broken_views(self) -> dict[str, str]:
        """The views that could not be built when the directory was opened, and why."""
        return dict(self._broken)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables, in the order in which they were made."""
        return tuple(self._runtime.tables)

    def contents(self, name: str) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The distinct rows of a table, or of a view without parameters, in Arrow, and their multiplicities."""
        if self._closed:
            raise PlanError("the database is closed")
        with self._runtime.lock:
            found = self._known(name, (*self._runtime.tables, *self._views, *self._broken), "table or view")
            return self._runtime.contents(whole(found, self._broken))

    def relation(self, name: str) -> Table:
        """What is declared of a table, or known of a view as if it were one."""
        found = {table.name.lower(): table for table in self._relations()}
        return found[self._known(name, (table.name for table in found.values()), "table or view").lower()]

    def drop_view(self, name: str) -> None:
        """Forgets a view; one that others are built on is refused."""
        with self._runtime.lock:
            name = self._known(name, (*self._views, *self._runtime.ring_views, *self._broken), "view")
            if name in self._runtime.ring_views:
                self._runtime.drop_ring_view(name)
                return
            self._refuse_while_needed("view", name)
            view = self._views.get(name)
            with self._catalog_change(partial(self._forget_definition, name), *([] if view is None else [view._drop])):
                if self._store is not None:
                    self._store.drop("view", name)
                if view is not None:
                    self._forget_view(name)
                    del self._views[name]
            reclaim(self._runtime)
        self._runtime.settle()

    def drop_table(self, name: str) -> None:
        """Forgets a table and its rows; one that views are built on is refused."""
        with self._runtime.lock:
            name = self._known(name, self._runtime.tables, "table")
            self._refuse_while_needed("table", name)
            with self._catalog_change():
                if self._store is not None:
                    self._store.drop("table", name)
                self._runtime.drop_table(name)
            reclaim(self._runtime)
        self._runtime.settle()

    def entries(self) -> int:
        """How many entries the maps of all tables and views have: the size of the state."""
        with self._runtime.lock:
            return self._runtime.backend.entries()

    # Changes

    def insert(self, table: str, rows: Any) -> None:
        """Adds rows: tuples or dicts, pandas, polars, pyarrow or numpy."""
        if type(rows) is list and len(rows) == 1 and self._runtime.put(table, rows[0], 1):
            self._runtime.settle()
            return
        with self.batch() as batch:
            batch.insert(table, rows)

    def delete(self, table: str, rows: Any, *, strict: bool = True) -> None:
        """Takes rows away; one that is not there is an error, or with strict=False ignored."""
        if strict and type(rows) is list and len(rows) == 1 and self._runtime.put(table, rows[0], -1):
            self._runtime.settle()
            return
        with self.batch() as batch:
            batch.delete(table, rows, strict=strict)

    def apply(self, table: str, rows: Any, weights: Any) -> None:
        """Adds each row with its weight as multiplicity; a negative weight takes it away."""
        with self.batch() as batch:
            batch.apply(table, rows, weights)

    def batch(self, source: str | None = None, position: int | None = None) -> Batch:
        """Several changes, all or nothing: they are made when the `with` block ends without an error.

        With a source and a position, the batch also says that the source has been applied up to there, in the same
        transaction; one at or below the position that the source has reached is refused, so that whoever sends a
        batch again after a failure changes nothing twice. An empty batch moves the position alone.
        """
        if self._closed:
            raise PlanError("the database is closed")
        progress = read_progress(source, position)
        with self._runtime.lock:
            self._runtime.positions.check(progress)
        return Batch(self._runtime, progress)

    def position(self, source: str) -> int | None:
        """How far a source has been applied, None if nothing of it has: what the last batch that names it said."""
        with self._runtime.lock:
            return self._runtime.positions.of(source)

    def checkpoint(self) -> None:
        """Writes the tables' rows anew, so that opening the directory has no log to go through.

        That happens on its own when the log has grown; a database in memory has nothing to do.
        """
        if self._closed:
            raise PlanError("the database is closed")
        if self._store is not None:
            self._store.snapshot()

    def close(self) -> None:
        """Ends the database; its views answer no more, and its rows are gone unless they are kept in a directory."""
        with self._runtime.lock:
            for view in self._views.values():
                view._drop("is gone: its database was closed")
            self._closed = True
        try:
            if self._store is not None:
                self._store.close()
        finally:
            with self._runtime.lock:
                self._runtime.close()

    def _catalog_change(self, *finish: Act) -> AbstractContextManager[object]:
        """What is done to tables and views in this block is done and kept as a whole, or not at all."""
        return self._runtime.catalog_change([saved(self, ["_views"])], finish)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Names

    def _are_current(self, tables: Iterable[Table], known: Iterable[Table]) -> bool:
        """Whether tables and views are declared as they were known to be, and can be read; under the lock."""
        names = {table.name for table in tables}
        self._check_sources(tables)
        return {each for each in known if each.name in names} == {e for e in self._relations() if e.name in names}

    def _relations(self) -> tuple[Table, ...]:
        """Everything that a view may read: tables, and views as if they were tables."""
        views = (state.table for state in self._runtime.views.values())
        return (*(state.table for state in self._runtime.tables.values()), *views)

    @contextmanager
    def _naming_broken_views(self) -> Iterator[None]:
        """Says why a name is unknown, if it is that of a broken view."""
        try:
            yield
        except UnknownNameError as error:
            raise broken_source(error, self._broken) or error from None

    def _check_new(self, name: str) -> None:
        if self._closed:
            raise PlanError("the database is closed")
        if not self._is_opening:
            check_name(name, "a table or view")
        runtime = self._runtime
        names = (("table", runtime.tables), ("view", runtime.views), ("view", runtime.ring_views))
        for kind, known in (*names, ("broken view", self._broken)):
            if name.lower() in {other.lower() for other in known}:
                raise SchemaError(f"there is already a {kind} named {name}; drop it first or choose another name")

    def _known(self, name: str, known: Iterable[str], kind: str) -> str:
        found = {other.lower(): other for other in known}
        if not isinstance(name, str) or name.lower() not in found:
            listed = ", ".join(found.values()) or "none"
            raise UnknownNameError(
                f"there is no {kind} {name if isinstance(name, str) else shown(name)}; there are: {listed}"
            )
        return found[name.lower()]

    def _check_sources(self, tables: Iterable[Table]) -> None:
        for table in tables:
            state = self._runtime.views.get(table.name)
            if state is not None and state.typed.query.input:
                raise PlanError(f"view {table.name} has parameters, so that other views cannot be built on it")
            if state is not None and not state.table.columns:
                raise PlanError(f"view {table.name} has no columns, so that other views cannot be built on it")

    def _readers(self, name: str) -> list[str]:
        """The views that are built on a table or view."""
        found = [view for view, state in self._runtime.views.items() if name in state.relations]
        return found + [view for view, each in self._runtime.ring_views.items() if name in each.relations]

    def _refuse_while_needed(self, kind: str, name: str) -> None:
        needed: list[str] = []
        for found in self._readers(name):
            hidden = found in self._runtime.views and found not in self._views
            needed += self._readers(found) if hidden else [found]
        if needed:
            raise PlanError(f"cannot drop {kind} {name}: {', '.join(needed)} needs it; drop that first")
