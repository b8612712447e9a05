"""The embedded database: tables, views over them, and atomic batches of changes.

db = ivme.Database()
db.create_table("R", {"a": "int", "b": "int"})
v = db.create_view("counts", "SELECT a, COUNT(*) AS n FROM R GROUP BY a")
db.insert("R", [(1, 2), (1, 3)])
list(v)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace as with_defaults
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Never, Self

from ivme.definitions.altering import Altering, read_defaults
from ivme.definitions.batches_ahead import apply_ahead
from ivme.definitions.clock import Clocked
from ivme.definitions.definitions import Definitions, known
from ivme.definitions.function_definitions import create_function, drop_function
from ivme.definitions.shown_database import ShownDatabase
from ivme.definitions.single_changes import Changes, SingleChanges
from ivme.definitions.table_rows import TableRows
from ivme.definitions.user_functions import UserFunction
from ivme.engine.runtime.batch import Batch
from ivme.engine.runtime.memory import read_size
from ivme.engine.runtime.positions import read_progress
from ivme.errors import SchemaError, UnnamedValueError, shown
from ivme.query.model import Table
from ivme.query.model import table as declare
from ivme.query.names import OWN_TABLES
from ivme.query.table import References
from ivme.schemas import columns_of
from ivme.store.broken_views import rebuild, whole

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from ivme.algebra.ring import Ring
    from ivme.definitions.replanning import Replanned
    from ivme.query.types import Type
    from ivme.statements.result import Result
    from ivme.statements.session import Session
    from ivme.view import View
    from ivme.views.base_view import BaseView
    from ivme.views.covariance_view import CovarianceView
    from ivme.views.ies_view import IesView
    from ivme.views.ring_view import RingView


class Database(Altering, Clocked, ShownDatabase, SingleChanges):
    """Tables and views in memory. One writer at a time; any number of readers.

    With a path, the database is stored in that directory: a batch is on disk when it is committed, or soon after with
    durability="async". Opening the directory again restores tables and views. A damaged directory is refused;
    accept_loss=True opens what can be read, and moves the rest aside.

    With a memory_limit (bytes, or a text such as "2GB"), a batch or a view that would take more is refused with
    `MemoryLimitError`, and changes nothing.

    `functions` are the Python functions that stored views call, as code is not stored; `create_function` adds others.

    Views are replanned in the background if another plan suits their use much better; with replan=False, by `replan`.

    Batches of thousands of rows run on all cores, or on so many `threads`, with the same result in the same order.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        durability: str = "sync",
        accept_loss: bool = False,
        memory_limit: int | str | None = None,
        functions: Iterable[UserFunction] | None = None,
        replan: bool = True,
        threads: int | None = None,
    ) -> None:
        if threads is not None and (type(threads) is not int or threads < 1):
            raise SchemaError(f"threads is a number of threads from 1 on, not {shown(threads)}")
        self.definitions = Definitions(is_opening=path is not None, functions=functions)
        self.definitions.replans = replan
        self.definitions.warns_of_clock = True
        self._runtime = self.definitions.runtime
        self._take_rows = self._runtime.take_rows
        if threads is not None:
            self._runtime.backend.set_threads(threads)
        self._runtime.catalog.memory_limit = None if memory_limit is None else read_size(memory_limit)
        if path is not None:
            from ivme.store.opening import open_store

            store = open_store(Path(path), durability, self.definitions, accept_loss=accept_loss)
            self.definitions.store = store
            self._runtime.set_journal(store, waits=durability == "sync")
            self._take_rows = self._runtime.take_rows
            self.definitions.is_opening = False

    # Catalog

    def create_table(
        self,
        name: str,
        schema: Any,
        *,
        primary_key: str | Iterable[str] | None = None,
        append_only: bool = False,
        static: bool = False,
        keep_rows: bool = True,
        references: References | None = None,
        unique: Iterable[str | Iterable[str]] = (),
        not_null: Iterable[str] = (),
        defaults: Mapping[str, object] | None = None,
        if_not_exists: bool = False,
        replace: bool = False,
    ) -> None:
        """Creates an empty table; types are int, float, decimal(p, s), string, bool, date, timestamp and binary.

        The schema maps columns to types, or is that of an Arrow table, a DataFrame of pandas or polars, or a dataclass;
        their rows are not inserted. It is an error if a table or view has the name already, unless `if_not_exists`
        leaves it as it is or `replace` replaces a table.

        A primary key is enforced. `references={"customer": "customers"}`, `unique` (columns, or lists of them) and
        `not_null` are promises that plans and bounds rely on; `check_promises` checks them. `defaults` are the values
        of columns that a row leaves out, as in {"n": 0, "at": "now()"}. With `keep_rows=False` the table forgets its
        rows once its views have them: create these first; the table is append-only, and cannot be read.
        """
        if self._is_left(name, if_not_exists=if_not_exists, replace=replace):
            return
        self.definitions.check_new(name, self.tables if replace else (), "table")
        columns = columns_of(name, schema)
        if not columns:
            raise SchemaError(f"table {name} needs a mapping from its columns to their types")
        made = declare(
            name,
            columns,
            primary_key=primary_key,
            append_only=append_only,
            static=static,
            keep_rows=keep_rows,
            references=references,
            unique=unique,
            not_null=not_null,
        )
        made = with_defaults(made, defaults=read_defaults(name, made.columns, defaults or {}))
        self.definitions.create_table(made, replace=replace)

    def _is_left(self, name: str, *, if_not_exists: bool, replace: bool) -> bool:
        """Whether what has a name already is to be left as it is."""
        if if_not_exists and replace:
            raise SchemaError(f"{name} can either be replaced, or left as it is; give if_not_exists or replace")
        there = (*self.tables, *self.views, *self.broken_views) if if_not_exists and isinstance(name, str) else ()
        return any(name.lower() == each.lower() for each in there)

    def create_ring_view(self, name: str, query: str, ring: Ring, **options: object) -> RingView | CovarianceView:
        """Creates a view whose rows carry elements of a ring (`ivme.rings`) in place of counts; it is never stored."""
        from ivme.definitions.participants import create_ring_view

        return create_ring_view(self.definitions, name, query, ring, options)

    def create_view(
        self, name: str, query: str, *, if_not_exists: object = False, replace: object = False, **options: object
    ) -> View:
        """Creates a view and fills it from the tables; see `ivme.explain` for the options.

        If a view has the name already, `if_not_exists` leaves it as it is, and `replace` replaces it as a whole or not
        at all. A view that other views read cannot be replaced.
        """
        if self._is_left(name, if_not_exists=bool(if_not_exists), replace=bool(replace)):
            return self.definitions.map_view(name)
        given: Mapping[str, object] = options
        if "dialect" in options:
            from ivme.query.dialects import in_spark

            query, given = in_spark(query, options, self.definitions.relations())
        return self.definitions.create_view(name, query, given, replace=bool(replace))

    def create_function(
        self,
        name: str,
        function: Callable[..., Any] | str,
        *,
        arguments: Iterable[str | Type],
        returns: str | Type,
        called_with_null: bool = False,
    ) -> None:
        """Makes a pure Python function available in SQL and rules, as `name(...)`, to views created from now on.

        `function` is a callable, or where to import it from, as in "module:function". If an argument is NULL so is the
        value, unless it is `called_with_null`. Stored views that wait for the function are built.
        """
        create_function(self.definitions, UserFunction(name, function, tuple(arguments), returns, called_with_null))

    def drop_function(self, name: str) -> None:
        """Drops a function, unless a view calls it."""
        drop_function(self.definitions, name)

    @property
    def functions(self) -> dict[str, str]:
        """The functions that were added by `create_function`, and their signatures."""
        return {each.name: str(each) for each in self.definitions.functions.signatures.values()}

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
        """Creates a view that your own SQL maintains: an incremental evaluation system over tables, run in DuckDB.

        `answer` is the schema of the table `name`. Each input table has a program for an inserted row and one for a
        deleted row, in which `:column` is the row's value. `on_start` runs over empty inputs. See docs/closure.md.
        """
        from ivme.definitions.participants import create_ies

        return create_ies(self.definitions, name, inputs, answer, auxiliary, on_insert, on_delete, on_start)

    def sql(self, text: str, /, *unnamed: Never, engine: str = "ivme", **parameters: Any) -> Result:
        """Runs SQL statements, separated by semicolons; the result of the last. See docs/statements.md.

        `:name` in a statement stands for the value of the parameter of that name. Each statement takes effect as a
        whole or not at all, and so do all changes of rows between BEGIN and COMMIT. With engine="duckdb", DuckDB runs a
        SELECT.
        """
        if unnamed:
            raise UnnamedValueError.of_sql()
        return self._session.run(text, parameters, engine)

    @cached_property
    def _session(self) -> Session:
        from ivme.statements.session import Session

        return Session(self)

    def view(self, name: str) -> BaseView:
        """The view of that name; `BrokenViewError` if it could not be built."""
        return self.definitions.view(name)

    def rebuild_view(self, name: str) -> View:
        """Builds a broken view again; raises `BrokenViewError` or another error that says why that fails."""
        with self._runtime.lock:
            name = known(name, self.definitions.broken, "broken view")
            assert self.definitions.store is not None, "views in memory are never broken"
            return rebuild(self.definitions, self.definitions.store.views, name)

    def replan(self, view: str | None = None) -> list[Replanned]:
        """Replans a view, or all views, where another plan suits their use much better; returns what changed.

        This also happens in the background, as rows are written and requests are answered. A view that was created
        with a `strategy`, `favour`, ε or workload keeps its plan.
        """
        self.definitions.check_open()
        names = self.views if view is None else [self.view(view).name]
        return self.definitions.replanning.replan_due(names)

    @property
    def views(self) -> tuple[str, ...]:
        """The names of all views that can be read, in the order of their creation."""
        return tuple(self.definitions.views)

    @property
    def broken_views(self) -> dict[str, str]:
        """The views that could not be built when the directory was opened, and why."""
        return dict(self.definitions.broken)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables, in the order of their creation, without ivme's own."""
        return tuple(name for name in self._runtime.catalog.tables if name not in OWN_TABLES)

    def table(self, name: str) -> TableRows:
        """The table of that name, to be read as Python rows, Arrow or pandas."""
        self.definitions.check_open()
        return TableRows(self.definitions, name)

    def contents(self, name: str) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The distinct rows of a table, or of a view without parameters, in Arrow, and their multiplicities."""
        self.definitions.check_open()
        with self._runtime.lock:
            broken = self.definitions.broken
            found = known(name, (*self._runtime.catalog.tables, *self.definitions.views, *broken), "table or view")
            return self._runtime.reader.contents(whole(found, broken))

    def relation(self, name: str) -> Table:
        """The declaration of a table, or of a view as if it were a table."""
        found = {table.name.lower(): table for table in self.definitions.relations()}
        return found[known(name, (table.name for table in found.values()), "table or view").lower()]

    def check_promises(self, table: str | None = None) -> None:
        """Raises DataError for the first row that breaks a UNIQUE, NOT NULL or REFERENCES of a table, or of all tables.

        They are not checked as rows change: the stated costs rely on them, the answers do not.
        """
        from ivme.engine.read.promise_check import check_promises

        check_promises(self, self.tables if table is None else [self.relation(table).name])

    def drop_view(self, name: str) -> None:
        """Drops a view, unless other views read it."""
        self.definitions.drop_view(name)

    def drop_table(self, name: str) -> None:
        """Drops a table and its rows, unless views read it."""
        self.definitions.drop_table(name)

    def entries(self) -> int:
        """The number of entries in the maps of all tables and views: the size of the state."""
        with self._runtime.lock:
            return self._runtime.backend.entries()

    # Changes

    def insert(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Inserts rows: tuples, dicts, DataFrames, Arrow, NumPy arrays, a generator, or the path of a file.

        With `round_floats`, here and below, floats are rounded to the scale of a decimal column; else they are refused.
        """
        if not round_floats and type(rows) is list and (self._take_rows(table, rows, 1) or self._one(table, rows, 1)):
            return
        with self.batch() as batch:
            batch.insert(table, rows, round_floats=round_floats)

    def delete(self, table: str, rows: Any, *, strict: bool = True) -> None:
        """Deletes rows; a row that is not in the table is an error, or ignored with strict=False."""
        if strict and type(rows) is list and (self._take_rows(table, rows, -1) or self._one(table, rows, -1)):
            return
        with self.batch() as batch:
            batch.delete(table, rows, strict=strict)

    def _one(self, table: str, rows: list[Any], weight: int) -> bool:
        """Whether the list is one row, and that was taken without a batch."""
        if len(rows) != 1 or not self._runtime.try_apply_row(table, rows[0], weight):
            return False
        self._runtime.wait_durable()
        return True

    def batch(self, source: str | None = None, position: int | None = None) -> Batch:
        """Several changes, all or nothing: they are applied when the `with` block ends without an error.

        With a source and a position, the same transaction records that the source has been applied up to that
        position. A batch at or below the recorded position is refused, so that a client that repeats a batch after a
        failure changes nothing twice. An empty batch only moves the position.
        """
        self.definitions.check_open()
        progress = read_progress(source, position)
        if progress is not None:
            with self._runtime.lock:
                self._runtime.catalog.positions.check(progress)
        return Batch(self._runtime, progress)

    def _apply_each(self, batches: Iterable[Changes]) -> int:
        if self._runtime.backend.threads > 1 and self._runtime.catalog.memory_limit is None:
            return apply_ahead(batches, self._runtime, self.definitions.check_open)
        return super()._apply_each(batches)

    def position(self, source: str) -> int | None:
        """The position that the last batch of a source recorded; None if there was none."""
        with self._runtime.lock:
            return self._runtime.catalog.positions.of(source)

    def checkpoint(self) -> None:
        """Writes a snapshot of all tables, for a faster opening, as ivme does when a log has grown; not in memory."""
        self.definitions.check_open()
        if self.definitions.store is not None:
            self.definitions.store.snapshot()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Writes a copy of the database to a new directory, while others go on writing; `Database(path)` opens it.

        The copy has the tables, the views (except ring views and views maintained by your own SQL, which are code)
        and the positions of sources. It is written as a whole or not at all.
        """
        from ivme.store.backup import write_backup

        self.definitions.check_open()
        write_backup(self.definitions, Path(path))

    def close(self) -> None:
        """Closes the database. Its views cannot be read any more; without a directory, its rows are lost."""
        self.definitions.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
