"""The embedded database: tables, views over them, and atomic batches of changes (DESIGN section 2).

db = ivme.Database()
db.create_table("R", {"a": "int", "b": "int"})
v = db.create_view("counts", "SELECT a, COUNT(*) AS n FROM R GROUP BY a")
db.insert("R", [(1, 2), (1, 3)])
list(v)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ivme.compile import compile_plan, parse
from ivme.engine.batch import Batch
from ivme.engine.domains import Domains
from ivme.engine.ring_view import RingView, lifting
from ivme.engine.runtime import Runtime
from ivme.engine.typed import typed
from ivme.errors import PlanError, SchemaError, UnknownNameError
from ivme.query.model import Column, Table
from ivme.query.model import table as declare
from ivme.view import View

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from ivme.algebra.ring import Ring
    from ivme.query.types import Type


_MOST_COLUMNS = 64


class Database:
    """Tables and views in memory. One writer at a time; any number of readers."""

    def __init__(self) -> None:
        self._runtime = _new_runtime()
        self._views: dict[str, View] = {}
        self._closed = False

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
        if len(schema) > _MOST_COLUMNS:
            raise SchemaError(f"table {name} has {len(schema)} columns; at most {_MOST_COLUMNS} are possible")
        made = declare(name, schema, primary_key=primary_key, append_only=append_only, static=static)
        with self._runtime.lock:
            self._runtime.add_table(made)

    def create_ring_view(self, name: str, query: str, ring: Ring, **options: object) -> RingView:
        """Makes a view whose rows carry elements of a ring, such as `ivme.rings.Covariance`, in place of counts."""
        self._check_new(name)
        with self._runtime.lock:
            parsed = lifting(replace(parse(query, self._relations()), name=name), ring)
            self._check_sources(parsed.tables)
            explanation, plan = compile_plan(parsed, **options)
            if plan is None:
                raise PlanError(f"view {name} cannot be maintained: {explanation.reason}")
            view = RingView(parsed, plan, explanation, ring)
            self._runtime.add_ring_view(view)
        return view

    def create_view(self, name: str, query: str, **options: object) -> View:
        """Makes a view and fills it from the tables; see `ivme.explain` for the options."""
        self._check_new(name)
        with self._runtime.lock:
            parsed = replace(parse(query, self._relations()), name=name)
            self._check_sources(parsed.tables)
            ready = typed(parsed)
            ring = options.get("semantics") == "ring"
            if ring and parsed.distinct:
                raise PlanError(f"view {name} is in ring mode, where multiplicities may be negative: drop the DISTINCT")
            explanation, plan = compile_plan(ready.query, **options)
            if plan is None:
                raise PlanError(f"view {name} cannot be maintained: {explanation.reason}")
            columns = tuple(Column(c.name, t) for c, t in zip(parsed.head, ready.head, strict=True))
            state = self._runtime.add_view(name, ready, explanation, plan, Table(name, columns), ring=ring)
            self._views[name] = View(self._runtime, state)
        return self._views[name]

    def view(self, name: str) -> View:
        """The view of that name."""
        return self._views[self._known(name, self._views, "view")]

    @property
    def views(self) -> tuple[str, ...]:
        """The names of all views, in the order in which they were made."""
        return tuple(self._views)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables, in the order in which they were made."""
        return tuple(self._runtime.tables)

    def drop_view(self, name: str) -> None:
        """Forgets a view; one that others are built on is refused."""
        with self._runtime.lock:
            name = self._known(name, (*self._views, *self._runtime.ring_views), "view")
            if name in self._runtime.ring_views:
                self._runtime.drop_ring_view(name)
                return
            self._refuse_while_needed("view", name)
            self._runtime.drop_view(name)
            self._views.pop(name)._drop()

    def drop_table(self, name: str) -> None:
        """Forgets a table and its rows; one that views are built on is refused."""
        with self._runtime.lock:
            name = self._known(name, self._runtime.tables, "table")
            self._refuse_while_needed("table", name)
            self._runtime.drop_table(name)

    def contents(self, table: str) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The distinct rows of a table as they are now, in Arrow, and their multiplicities."""
        with self._runtime.lock:
            return self._runtime.contents(self._known(table, self._runtime.tables, "table"))

    def entries(self) -> int:
        """How many entries the maps of all tables and views have: the size of the state."""
        with self._runtime.lock:
            return self._runtime.backend.entries()

    # Changes

    def insert(self, table: str, rows: Any) -> None:
        """Adds rows: tuples or dicts, pandas, polars, pyarrow or numpy."""
        if type(rows) is list and len(rows) == 1 and self._runtime.put(table, rows[0], 1):
            return
        with self.batch() as batch:
            batch.insert(table, rows)

    def delete(self, table: str, rows: Any, *, strict: bool = True) -> None:
        """Takes rows away; one that is not there is an error, or with strict=False ignored."""
        if strict and type(rows) is list and len(rows) == 1 and self._runtime.put(table, rows[0], -1):
            return
        with self.batch() as batch:
            batch.delete(table, rows, strict=strict)

    def apply(self, table: str, rows: Any, weights: Any) -> None:
        """Adds each row as often as its weight says; a negative weight takes it away."""
        with self.batch() as batch:
            batch.apply(table, rows, weights)

    def batch(self) -> Batch:
        """Several changes, all or nothing: they are made when the `with` block ends without an error."""
        if self._closed:
            raise PlanError("the database is closed")
        return Batch(self._runtime)

    def close(self) -> None:
        """Ends the database; its rows are gone, and its views answer no more."""
        with self._runtime.lock:
            for view in self._views.values():
                view._drop("is gone: its database was closed")
            if not self._closed:
                self._runtime.close()
            self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Names

    def _relations(self) -> tuple[Table, ...]:
        """Everything that a view may read: tables, and views as if they were tables."""
        views = (state.table for state in self._runtime.views.values())
        return (*(state.table for state in self._runtime.tables.values()), *views)

    def _check_new(self, name: str) -> None:
        if self._closed:
            raise PlanError("the database is closed")
        if not isinstance(name, str) or not name or "\0" in name:
            raise SchemaError(f"a table or view needs a name; {name!r} is none")
        known_names = (("table", self._runtime.tables), ("view", self._views), ("view", self._runtime.ring_views))
        for kind, known in known_names:
            if name.lower() in {other.lower() for other in known}:
                raise SchemaError(f"there is already a {kind} named {name}; drop it first or choose another name")

    def _known(self, name: str, known: Iterable[str], kind: str) -> str:
        found = {other.lower(): other for other in known}
        if not isinstance(name, str) or name.lower() not in found:
            listed = ", ".join(found.values()) or "none"
            raise UnknownNameError(f"there is no {kind} {name}; there are: {listed}")
        return found[name.lower()]

    def _check_sources(self, tables: Iterable[Table]) -> None:
        for table in tables:
            state = self._runtime.views.get(table.name)
            if state is not None and state.typed.query.input:
                raise PlanError(f"view {table.name} has parameters, so that other views cannot be built on it")
            if state is not None and not state.table.columns:
                raise PlanError(f"view {table.name} has no columns, so that other views cannot be built on it")

    def _refuse_while_needed(self, kind: str, name: str) -> None:
        needed = [view for view, state in self._runtime.views.items() if name in state.relations]
        needed += [view for view, ring_view in self._runtime.ring_views.items() if name in ring_view.relations]
        if needed:
            raise PlanError(f"cannot drop {kind} {name}: {', '.join(needed)} needs it; drop that first")


def _new_runtime() -> Runtime:
    try:
        from ivme.engine.backend import NativeBackend
        from ivme.engine.native_dictionary import native_dictionary
    except ImportError as error:
        warnings.warn(f"ivme's compiled kernel is missing ({error}); views run in plain Python", stacklevel=3)
        from ivme.engine.pure_backend import PureBackend

        return Runtime(PureBackend(), Domains())
    return Runtime(NativeBackend(), Domains(native_dictionary))
