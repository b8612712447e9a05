"""The embedded database: tables, views over them, and atomic batches of changes (DESIGN section 2).

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
from typing import TYPE_CHECKING, Any, Self

from ivme.definitions.altering import Altering, read_defaults
from ivme.definitions.clock import Clocked
from ivme.definitions.definitions import Definitions, known
from ivme.definitions.function_definitions import create_function, drop_function
from ivme.definitions.shown_database import ShownDatabase
from ivme.definitions.single_changes import SingleChanges
from ivme.definitions.table_rows import TableRows
from ivme.definitions.user_functions import UserFunction
from ivme.engine.runtime.batch import Batch
from ivme.engine.runtime.memory import read_size
from ivme.engine.runtime.positions import read_progress
from ivme.errors import SchemaError, shown
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

    With a path they are kept in that directory, too: a batch is on the disk when it is committed, or with
    durability="async" soon after. What the directory holds is there again when it is opened. A damaged directory is
    refused; accept_loss=True opens what is left of it, and sets the rest aside.

    With a memory_limit (bytes, or a text such as "2GB"), a batch or a view that would take more is refused with
    `MemoryLimitError`, and changes nothing.

    The functions are those that views of a directory call: code is not stored. Others are made by `create_function`.

    Views are planned anew in the background where what they are used for makes another plan much better; with
    replan=False only by the method `replan`.

    Batches of thousands of rows run on as many threads as there are cores, or on `threads`. What they do is the same on
    one thread, to the order of rows.
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
        references: References | None = None,
        unique: Iterable[str | Iterable[str]] = (),
        not_null: Iterable[str] = (),
        defaults: Mapping[str, object] | None = None,
        if_not_exists: bool = False,
        replace: bool = False,
    ) -> None:
        """Declares an empty table; types are int, float, decimal(p, s), string, bool, date, timestamp and binary.

        The schema maps columns to types, or is that of an Arrow table, a DataFrame of pandas or polars, or a dataclass;
        rows that these hold are not inserted. Of a table or view that is there already, it is an error; it is left as
        it is with `if_not_exists`, and with `replace` a table makes way for the new one.

        A primary key is enforced. `references={"customer": "customers"}`, `unique` (columns, or lists of them) and
        `not_null` are promises that plans and bounds rely on; `check_promises` looks whether they hold. `defaults` are
        what columns have in rows that do not give them, as in {"n": 0, "at": "now()"}.
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
        """Makes a view whose rows carry elements of a ring (`ivme.rings`) in place of counts; no directory keeps it."""
        from ivme.definitions.participants import create_ring_view

        return create_ring_view(self.definitions, name, query, ring, options)

    def create_view(
        self, name: str, query: str, *, if_not_exists: object = False, replace: object = False, **options: object
    ) -> View:
        """Makes a view and fills it from the tables; see `ivme.explain` for the options.

        With `if_not_exists`, a view that has the name is left as it is. With `replace` it makes way for the new one,
        all or nothing; one that other views are built on is refused.
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
        """Makes a pure function of Python one of SQL and of rules: `name(...)` in views that are made from now on.

        `function` is a callable, or where to import it from, as in "module:function". Its value is NULL where an
        argument is, unless it is `called_with_null`. Views of a directory that wait for it are built.
        """
        create_function(self.definitions, UserFunction(name, function, tuple(arguments), returns, called_with_null))

    def drop_function(self, name: str) -> None:
        """Forgets a function; one that a view calls is refused."""
        drop_function(self.definitions, name)

    @property
    def functions(self) -> dict[str, str]:
        """The users' functions, and their signatures."""
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
        """Makes a view that your own SQL keeps: an incremental evaluation system over tables, run in DuckDB.

        `answer` is the schema of the table `name`; each input has a program for a row that comes and one for a row that
        goes, in which `:column` is the row's value; `on_start` runs over empty inputs. See docs/closure.md.
        """
        from ivme.definitions.participants import create_ies

        return create_ies(self.definitions, name, inputs, answer, auxiliary, on_insert, on_delete, on_start)

    def sql(self, text: str, /, *, engine: str = "ivme", **parameters: Any) -> Result:
        """Runs SQL statements, separated by semicolons; the result of the last. See docs/statements.md.

        `:name` in a statement stands for the value of the parameter of that name. Each statement is done as a whole or
        not at all; between BEGIN and COMMIT, all changes of rows are. With engine="duckdb", DuckDB answers a SELECT.
        """
        return self._session.run(text, parameters, engine)

    @cached_property
    def _session(self) -> Session:
        from ivme.statements.session import Session

        return Session(self)

    def view(self, name: str) -> BaseView:
        """The view of that name, of whatever kind; `BrokenViewError` if it is broken."""
        return self.definitions.view(name)

    def rebuild_view(self, name: str) -> View:
        """Builds a broken view again; `BrokenViewError` or another error says why that fails."""
        with self._runtime.lock:
            name = known(name, self.definitions.broken, "broken view")
            assert self.definitions.store is not None, "views in memory are never broken"
            return rebuild(self.definitions, self.definitions.store.views, name)

    def replan(self, view: str | None = None) -> list[Replanned]:
        """Plans a view, or all, anew where what they have been used for makes another plan much better; what changed.

        That happens on its own, in the background, as rows are written and requests answered. A view whose `strategy`,
        `favour`, ε or workload was given keeps its plan.
        """
        self.definitions.check_open()
        names = self.views if view is None else [self.view(view).name]
        return self.definitions.replanning.replan_due(names)

    @property
    def views(self) -> tuple[str, ...]:
        """The names of all views that can be read, in the order in which they were made."""
        return tuple(self.definitions.views)

    @property
    def broken_views(self) -> dict[str, str]:
        """The views that could not be built when the directory was opened, and why."""
        return dict(self.definitions.broken)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables, in the order in which they were made, without those that ivme makes for itself."""
        return tuple(name for name in self._runtime.catalog.tables if name not in OWN_TABLES)

    def table(self, name: str) -> TableRows:
        """A table to read: its rows in Python, Arrow and pandas."""
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
        """What is declared of a table, or known of a view as if it were one."""
        found = {table.name.lower(): table for table in self.definitions.relations()}
        return found[known(name, (table.name for table in found.values()), "table or view").lower()]

    def check_promises(self, table: str | None = None) -> None:
        """Raises DataError at the first row that breaks a UNIQUE, NOT NULL or REFERENCES of a table, or of any table.

        Nothing checks them as rows change: they say what updates cost, and no answer depends on them.
        """
        from ivme.engine.read.promise_check import check_promises

        check_promises(self, self.tables if table is None else [self.relation(table).name])

    def drop_view(self, name: str) -> None:
        """Forgets a view; one that others are built on is refused."""
        self.definitions.drop_view(name)

    def drop_table(self, name: str) -> None:
        """Forgets a table and its rows; one that views are built on is refused."""
        self.definitions.drop_table(name)

    def entries(self) -> int:
        """How many entries the maps of all tables and views have: the size of the state."""
        with self._runtime.lock:
            return self._runtime.backend.entries()

    # Changes

    def insert(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Adds rows: tuples, dicts, frames, Arrow, numpy, a generator, a path.

        With `round_floats`, here and below, floats are rounded into columns of decimals; else they are refused.
        """
        if not round_floats and type(rows) is list and (self._take_rows(table, rows, 1) or self._one(table, rows, 1)):
            return
        with self.batch() as batch:
            batch.insert(table, rows, round_floats=round_floats)

    def delete(self, table: str, rows: Any, *, strict: bool = True) -> None:
        """Takes rows away; one that is not there is an error, or with strict=False ignored."""
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
        """Several changes, all or nothing: they are made when the `with` block ends without an error.

        With a source and a position, the batch also says that the source has been applied up to there, in the same
        transaction; one at or below the position that the source has reached is refused, so that a client that sends a
        batch again after a failure changes nothing twice. An empty batch moves the position alone.
        """
        self.definitions.check_open()
        progress = read_progress(source, position)
        if progress is not None:
            with self._runtime.lock:
                self._runtime.catalog.positions.check(progress)
        return Batch(self._runtime, progress)

    def position(self, source: str) -> int | None:
        """How far a source has been applied, None if nothing of it has: what the last batch that names it said."""
        with self._runtime.lock:
            return self._runtime.catalog.positions.of(source)

    def checkpoint(self) -> None:
        """Writes the tables' rows anew, so that opening the directory has no log to go through.

        That happens on its own when the log has grown; a database in memory has nothing to do.
        """
        self.definitions.check_open()
        if self.definitions.store is not None:
            self.definitions.store.snapshot()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Writes the database as it is now into a new directory, while others go on writing; `Database(path)` opens it.

        It has the tables, the views (not those of rings and of users' SQL, which are code) and the positions of
        sources. It is there as a whole or not at all.
        """
        from ivme.store.backup import write_backup

        self.definitions.check_open()
        write_backup(self.definitions, Path(path))

    def close(self) -> None:
        """Ends the database; its views answer no more, and its rows are gone unless they are kept in a directory."""
        self.definitions.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
