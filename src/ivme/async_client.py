"""A database behind a server, for programs with an event loop: `await ivme.connect_async("http://localhost:8321")`.

Each request runs in a thread, over one of a few connections of `RemoteDatabase`, so that several may be under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pyarrow as pa

from ivme.client import RemoteDatabase, RemoteView, Row
from ivme.statements.result import Result

if TYPE_CHECKING:
    import pandas
    import polars

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
        """What a function does with a connection, in a thread; one that nobody waits for any more keeps it."""
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

    async def sql(self, text: str, /, **parameters: Any) -> Result:
        """Runs SQL statements on the server; the result of the last."""
        return await self.run(lambda remote: remote.sql(text, **parameters))

    async def create_view(self, name: str, query: str, **options: object) -> AsyncView:
        """Makes a view of a query."""
        return AsyncView(self, await self.run(lambda remote: remote.create_view(name, query, **options)))

    async def drop_view(self, name: str) -> None:
        """Forgets a view."""
        await self.run(lambda remote: remote.drop_view(name))

    async def drop_table(self, name: str) -> None:
        """Forgets a table and its rows."""
        await self.run(lambda remote: remote.drop_table(name))

    async def tables(self) -> tuple[str, ...]:
        """The names of all tables."""
        return await self.run(lambda remote: remote.tables)

    async def views(self) -> tuple[str, ...]:
        """The names of all views that can be read."""
        return await self.run(lambda remote: remote.views)

    async def broken_views(self) -> dict[str, str]:
        """The views that could not be built when the server opened its directory, and why."""
        return await self.run(lambda remote: remote.broken_views)

    async def view(self, name: str) -> AsyncView:
        """The view of that name."""
        return AsyncView(self, await self.run(lambda remote: remote.view(name)))

    async def insert(self, table: str, rows: Any) -> None:
        """Adds rows: tuples, dicts, or what has an Arrow stream, such as a DataFrame."""
        await self.run(lambda remote: remote.insert(table, rows))

    async def delete(self, table: str, rows: Any) -> None:
        """Takes rows away; one that is not there is an error, and nothing is changed."""
        await self.run(lambda remote: remote.delete(table, rows))

    async def upsert(self, table: str, rows: Any) -> None:
        """Adds rows, each in place of the one that has its primary key."""
        await self.run(lambda remote: remote.upsert(table, rows))

    async def replace(self, table: str, rows: Any) -> None:
        """Makes these rows all that the table holds."""
        await self.run(lambda remote: remote.replace(table, rows))

    async def create_table(
        self, name: str, schema: Any, *, primary_key: str | Iterable[str] = (), **options: bool
    ) -> None:
        """Declares an empty table."""
        await self.run(lambda remote: remote.create_table(name, schema, primary_key=primary_key, **options))

    async def add_column(self, table: str, name: str, type: str, default: object = None) -> None:
        """Gives a table a further column, behind the others."""
        await self.run(lambda remote: remote.add_column(table, name, type, default))

    async def drop_column(self, table: str, name: str) -> None:
        """Takes a column and its values away."""
        await self.run(lambda remote: remote.drop_column(table, name))

    async def rename_column(self, table: str, name: str, to: str) -> None:
        """Gives a column another name."""
        await self.run(lambda remote: remote.rename_column(table, name, to))

    async def rename_table(self, name: str, to: str) -> None:
        """Gives a table another name."""
        await self.run(lambda remote: remote.rename_table(name, to))

    async def contents(self, table: str) -> pa.Table:
        """The rows of a table, in Arrow."""
        return await self.run(lambda remote: remote.contents(table))

    async def truncate(self, table: str) -> None:
        """Takes all rows of a table away."""
        await self.run(lambda remote: remote.truncate(table))

    async def advance(self, now: datetime) -> None:
        """Moves the clock of the database on."""
        await self.run(lambda remote: remote.advance(now))

    async def now(self) -> datetime | None:
        """What the clock of the database says."""
        return await self.run(lambda remote: remote.now)

    async def scopes(self) -> tuple[str, ...]:
        """What the token allows."""
        return await self.run(lambda remote: remote.scopes)

    async def batch(
        self, changes: Mapping[str, Mapping[str, Any]], source: str | None = None, position: int | None = None
    ) -> None:
        """Changes of several tables, all or nothing: `{"sales": {"insert": rows, "delete": rows}}`."""
        await self.run(lambda remote: remote.batch(changes, source, position))

    async def update(
        self, table: str, /, *, set: Mapping[str, str], where: str = "TRUE", **parameters: Any
    ) -> int | None:
        """Gives columns the values of expressions in the rows for which a condition holds; how many rows that were."""
        return await self.run(lambda remote: remote.update(table, set=set, where=where, **parameters))

    async def delete_where(self, table: str, where: str, /, **parameters: Any) -> int | None:
        """Takes away the rows for which a condition holds; how many they were."""
        return await self.run(lambda remote: remote.delete_where(table, where, **parameters))

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


class AsyncView:
    """A view behind a server, to be awaited and iterated over with `async for`."""

    def __init__(self, database: AsyncDatabase, view: RemoteView) -> None:
        self._database = database
        self._view = view
        self.name = view.name
        self.columns = view.columns
        self.parameters = view.parameters

    async def to_arrow(self, **parameters: Any) -> pa.Table:
        """The rows of an access request, in Arrow."""
        return await self._database.run(lambda remote: self._view.read_by(remote).to_arrow(**parameters))

    async def to_pandas(self, **parameters: Any) -> pandas.DataFrame:
        """The rows of an access request as a pandas DataFrame."""
        return (await self.to_arrow(**parameters)).to_pandas()

    async def to_polars(self, **parameters: Any) -> polars.DataFrame:
        """The rows of an access request as a polars DataFrame."""
        return await self._database.run(lambda remote: self._view.read_by(remote).to_polars(**parameters))

    async def rows(self, **parameters: Any) -> list[Row]:
        """The rows of an access request; a row of multiplicity m is there m times."""
        return await self._database.run(lambda remote: list(self._view.read_by(remote)(**parameters)))

    async def __aiter__(self) -> AsyncIterator[Row]:
        for row in await self.rows():
            yield row

    async def explain(self) -> dict[str, Any]:
        """How the view is maintained and what that costs, as plain values."""
        return await self._database.run(lambda remote: self._view.read_by(remote).explain())

    async def stats(self) -> dict[str, Any]:
        """The view's sizes, and its heavy and light parts."""
        return await self._database.run(lambda remote: self._view.read_by(remote).stats())

    async def changes(self) -> AsyncIterator[dict[Row, int]]:
        """The changes of the view's rows from now on, as `RemoteView.changes` has them, over their own connection."""
        feed = await asyncio.to_thread(self._view.changes)
        try:
            while (change := await asyncio.to_thread(next, feed, None)) is not None:
                yield change
        finally:
            feed.close()

    def __repr__(self) -> str:
        return f"<AsyncView {self.name} of {self._database.url}>"


async def connect_async(url: str, *, token: str | None = None, context: SSLContext | None = None) -> AsyncDatabase:
    """The database that a server (`ivme serve`) has, for a program with an event loop."""
    made = AsyncDatabase(url, token=token, context=context)
    await made.tables()
    return made
