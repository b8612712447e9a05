"""A database behind a server, for programs with an event loop: `await ivme.connect_async("http://localhost:8321")`.

Each request runs in a thread, over one of a few connections of `RemoteDatabase`, so that several may be under way.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Never, Self, TypeVar

import pyarrow as pa

from ivme.client.async_view import AsyncTable, AsyncView
from ivme.client.connection import RemoteDatabase
from ivme.client.remote_batch import RemoteBatch
from ivme.definitions.single_changes import Changes
from ivme.engine.runtime.positions import read_progress
from ivme.query.types import Type
from ivme.statements.result import Result

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Answer = TypeVar("Answer")

_CONNECTIONS = 4
"""So many requests go at the same time; others wait for one of them."""


class AsyncDatabase:
    """The methods of `RemoteDatabase`, each to be awaited."""

    def __init__(self, url: str, *, token: str | None = None, context: SSLContext | None = None) -> None:
        self.url = url
        self._open: Callable[[], RemoteDatabase] = lambda: RemoteDatabase(url, token=token, context=context)
        self._idle: list[RemoteDatabase] = []
        self._turns = asyncio.Semaphore(_CONNECTIONS)

    async def run(self, work: Callable[[RemoteDatabase], Answer]) -> Answer:
        """What a function does with a connection, in a thread; one that no caller waits for any more keeps it."""
        async with self._connection() as connection:
            return await asyncio.to_thread(work, connection)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[RemoteDatabase]:
        async with self._turns:
            connection = self._idle.pop() if self._idle else await asyncio.to_thread(self._open)
            try:
                yield connection
            except asyncio.CancelledError:  # its thread may still use it
                raise
            except BaseException:
                self._idle.append(connection)
                raise
            self._idle.append(connection)

    async def sql(self, text: str, /, *unnamed: Never, engine: str = "ivme", **parameters: Any) -> Result:
        """Runs SQL statements on the server; the result of the last."""
        return await self.run(lambda remote: remote.sql(text, *unnamed, engine=engine, **parameters))

    # Reading

    async def tables(self) -> tuple[str, ...]:
        """The names of all tables."""
        return await self.run(lambda remote: remote.tables)

    async def views(self) -> tuple[str, ...]:
        """The names of all views that can be read."""
        return await self.run(lambda remote: remote.views)

    async def broken_views(self) -> dict[str, str]:
        """The views that could not be built when the server opened its directory, and why."""
        return await self.run(lambda remote: remote.broken_views)

    async def scopes(self) -> tuple[str, ...]:
        """What the token allows."""
        return await self.run(lambda remote: remote.scopes)

    async def view(self, name: str) -> AsyncView:
        """The view of that name."""
        return AsyncView(self, await self.run(lambda remote: remote.view(name)))

    async def table(self, name: str) -> AsyncTable:
        """The table of that name, to be read as Python rows, Arrow or pandas."""
        return AsyncTable(self, await self.run(lambda remote: remote.table(name)))

    async def contents(self, name: str) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The distinct rows of a table, or of a view without parameters, in Arrow, and their multiplicities."""
        return await self.run(lambda remote: remote.contents(name))

    async def entries(self) -> int:
        """The number of entries in the maps of all tables and views: the size of the state."""
        return await self.run(lambda remote: remote.entries())

    async def position(self, source: str) -> int | None:
        """The position that the last batch of a source recorded; None if there was none."""
        return await self.run(lambda remote: remote.position(source))

    async def check_promises(self, table: str | None = None) -> None:
        """Raises DataError for the first row that breaks a UNIQUE, NOT NULL or REFERENCES of a table, or of all."""
        await self.run(lambda remote: remote.check_promises(table))

    # Definitions

    async def create_table(self, name: str, schema: Any, **options: Any) -> None:
        """Creates an empty table, with the options of `Database.create_table`."""
        await self.run(lambda remote: remote.create_table(name, schema, **options))

    async def create_view(
        self, name: str, query: str, *, if_not_exists: bool = False, replace: bool = False, **options: object
    ) -> AsyncView:
        """Creates a view."""
        made = await self.run(
            lambda remote: remote.create_view(name, query, if_not_exists=if_not_exists, replace=replace, **options)
        )
        return AsyncView(self, made)

    async def rebuild_view(self, name: str) -> AsyncView:
        """Builds a broken view again; an error says why that fails."""
        return AsyncView(self, await self.run(lambda remote: remote.rebuild_view(name)))

    async def drop_view(self, name: str) -> None:
        """Drops a view."""
        await self.run(lambda remote: remote.drop_view(name))

    async def drop_table(self, name: str) -> None:
        """Drops a table and its rows."""
        await self.run(lambda remote: remote.drop_table(name))

    async def add_column(self, table: str, name: str, type: str | Type, default: object = None) -> None:
        """Adds a column to a table, after the others."""
        await self.run(lambda remote: remote.add_column(table, name, type, default))

    async def drop_column(self, table: str, name: str) -> None:
        """Drops a column and its values."""
        await self.run(lambda remote: remote.drop_column(table, name))

    async def rename_column(self, table: str, name: str, to: str) -> None:
        """Renames a column."""
        await self.run(lambda remote: remote.rename_column(table, name, to))

    async def set_default(self, table: str, name: str, default: object) -> None:
        """Sets the default of a column, for rows inserted from now on; None drops it."""
        await self.run(lambda remote: remote.set_default(table, name, default))

    async def rename_table(self, name: str, to: str) -> None:
        """Renames a table."""
        await self.run(lambda remote: remote.rename_table(name, to))

    async def advance(self, now: datetime) -> None:
        """Advances the clock of the database."""
        await self.run(lambda remote: remote.advance(now))

    async def now(self) -> datetime | None:
        """The time of the database's clock."""
        return await self.run(lambda remote: remote.now)

    # Changes

    @asynccontextmanager
    async def batch(self, source: str | None = None, position: int | None = None) -> AsyncIterator[RemoteBatch]:
        """Several changes, all or nothing: they are sent when the `async with` block ends without an error."""
        read_progress(source, position)
        batch = RemoteBatch(None, source, position)
        with batch:
            yield batch
            await self.run(batch.send)

    async def insert(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Inserts rows: tuples, dicts, a generator, or an object with an Arrow stream, such as a DataFrame."""
        await self.run(lambda remote: remote.insert(table, rows, round_floats=round_floats))

    async def delete(self, table: str, rows: Any, *, strict: bool = True) -> None:
        """Deletes rows; a row that is not in the table is an error, or ignored with strict=False."""
        await self.run(lambda remote: remote.delete(table, rows, strict=strict))

    async def delete_keys(self, table: str, keys: Any, *, strict: bool = True) -> None:
        """Deletes the rows with the given primary keys; a missing key is an error, unless strict=False."""
        await self.run(lambda remote: remote.delete_keys(table, keys, strict=strict))

    async def apply(self, table: str, rows: Any, weights: Any, *, round_floats: bool = False) -> None:
        """Inserts as many copies of each row as its weight; a negative weight deletes copies."""
        await self.run(lambda remote: remote.apply(table, rows, weights, round_floats=round_floats))

    async def apply_batches(self, batches: Iterable[Changes]) -> int:
        """Applies batches one after the other, each all or nothing, and returns how many there were."""
        return await self.run(lambda remote: remote.apply_batches(batches))

    async def upsert(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Inserts rows, each in place of the row with the same primary key."""
        await self.run(lambda remote: remote.upsert(table, rows, round_floats=round_floats))

    async def replace(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Makes these rows all that the table holds."""
        await self.run(lambda remote: remote.replace(table, rows, round_floats=round_floats))

    async def update(
        self,
        table: str,
        /,
        *,
        set: Mapping[str, Any],
        where: str | None = None,
        round_floats: bool = False,
        **parameters: Any,
    ) -> None:
        """Sets columns to new values in the rows that meet a condition, or in all rows; see `Batch.update`."""
        await self.run(
            lambda remote: remote.update(table, set=set, where=where, round_floats=round_floats, **parameters)
        )

    async def delete_where(self, table: str, where: str, /, **parameters: Any) -> None:
        """Deletes the rows that meet a condition."""
        await self.run(lambda remote: remote.delete_where(table, where, **parameters))

    async def truncate(self, table: str) -> None:
        """Deletes all rows of a table."""
        await self.run(lambda remote: remote.truncate(table))

    # Upkeep

    async def checkpoint(self) -> None:
        """Lets the server write a snapshot of all tables, so that opening its directory need not read the log."""
        await self.run(lambda remote: remote.checkpoint())

    async def backup(self, path: str | os.PathLike[str]) -> None:
        """Writes a copy of the database to a new directory of this machine; `Database(path)` opens it."""
        await self.run(lambda remote: remote.backup(path))

    async def close(self) -> None:
        """Ends the connections; the server goes on."""
        while self._idle:
            await asyncio.to_thread(self._idle.pop().close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncDatabase {self.url}>"


async def connect_async(url: str, *, token: str | None = None, context: SSLContext | None = None) -> AsyncDatabase:
    """The database that a server (`ivme serve`) has, for a program with an event loop."""
    made = AsyncDatabase(url, token=token, context=context)
    await made.tables()
    return made
