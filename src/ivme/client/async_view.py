"""Views and tables behind a server, for programs with an event loop: their methods are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Never, TypeVar

import pyarrow as pa

from ivme.client.remote_table import RemoteTable
from ivme.client.remote_view import RemoteView, Row
from ivme.engine.read.reasons import Reasons
from ivme.extras import pandas_frame

if TYPE_CHECKING:
    import pandas
    import polars

    from ivme.changes import Subscription
    from ivme.client.async_client import AsyncDatabase

Answer = TypeVar("Answer")


class AsyncView:
    """A view behind a server, to be awaited and iterated over with `async for`."""

    def __init__(self, database: AsyncDatabase, view: RemoteView) -> None:
        self._database = database
        self._view = view
        self.name = view.name
        self.described = view.described
        self.columns = view.columns
        self.parameters = view.parameters
        self.relations = view.relations

    @property
    def schema(self) -> pa.Schema:
        """The Arrow types of the columns of a row."""
        return self._view.schema

    @property
    def change_schema(self) -> pa.Schema:
        """The Arrow types of the columns of a change's row: the parameters in front, then those of a row."""
        return self._view.change_schema

    async def _ask(self, read: Callable[[RemoteView], Answer]) -> Answer:
        return await self._database.run(lambda remote: read(self._view.read_by(remote)))

    # Reading

    async def to_arrow(self, **parameters: Any) -> pa.Table:
        """The rows as an Arrow table."""
        return await self._ask(lambda view: view.to_arrow(**parameters))

    async def snapshot(self, **parameters: Any) -> pa.Table:
        """The rows as they are now; the result does not change when the database does."""
        return await self.to_arrow(**parameters)

    async def to_pandas(self, **parameters: Any) -> pandas.DataFrame:
        """The rows as a pandas DataFrame."""
        return await self._ask(lambda view: view.to_pandas(**parameters))

    async def to_polars(self, **parameters: Any) -> polars.DataFrame:
        """The rows as a polars DataFrame."""
        return await self._ask(lambda view: view.to_polars(**parameters))

    async def __call__(self, *unnamed: Never, **parameters: Any) -> list[Row]:
        """The rows of an access request; a row of multiplicity m is there m times."""
        return await self._ask(lambda view: list(view(*unnamed, **parameters)))

    async def items(self, **parameters: Any) -> list[tuple[Row, int]]:
        """The distinct rows, with their multiplicities; all from one state of the database."""
        return await self._ask(lambda view: list(view.items(**parameters)))

    async def rows(
        self,
        *,
        order_by: str | Sequence[str] | None = None,
        limit: int | None = None,
        offset: int = 0,
        after: Row | None = None,
        **parameters: Any,
    ) -> list[Row]:
        """A page of rows in an order; see `View.rows`."""
        return await self._ask(
            lambda view: view.rows(order_by=order_by, limit=limit, offset=offset, after=after, **parameters)
        )

    async def count(self, **parameters: Any) -> int:
        """The number of rows, with multiplicities."""
        return await self._ask(lambda view: view.count(**parameters))

    async def scalar(self, **parameters: Any) -> Any:
        """The only value of the only row."""
        return await self._ask(lambda view: view.scalar(**parameters))

    async def sample(self, count: int, *, seed: int | None = None) -> list[Row]:
        """A random sample of so many rows, or all rows if there are fewer; every set of rows is equally likely."""
        return await self._ask(lambda view: view.sample(count, seed=seed))

    async def multiplicity(self, row: Row, **parameters: Any) -> int:
        """The number of copies of a row in the view; 0 if there are none."""
        return await self._ask(lambda view: view.multiplicity(row, **parameters))

    async def request_many(self, **columns: Any) -> pa.Table:
        """The rows for many values of the parameters: each parameter is a list, or an array of NumPy or Arrow."""
        return await self._ask(lambda view: view.request_many(**columns))

    async def __aiter__(self) -> AsyncIterator[Row]:
        for row in await self():
            yield row

    # Changes

    async def changes(self) -> AsyncIterator[dict[Row, int]]:
        """The changes of the view's rows from now on, as `RemoteView.changes` has them, over their own connection."""
        feed = await asyncio.to_thread(self._view.changes)
        try:
            while (change := await asyncio.to_thread(next, feed, None)) is not None:
                yield change
        finally:
            feed.close()

    async def subscribe(self, function: Callable[[dict[Row, int]], object]) -> Subscription:
        """Calls a function, in its own thread, with each change of the view's rows from now on, until it is closed."""
        return await asyncio.to_thread(self._view.subscribe, function)

    # About the view

    async def explain(self) -> dict[str, Any]:
        """How the view is maintained and what that costs, as plain values."""
        return await self._ask(lambda view: view.explain())

    async def stats(self) -> dict[str, Any]:
        """The view's sizes, and its heavy and light parts."""
        return await self._ask(lambda view: view.stats())

    async def why(self, row: Row, **parameters: Any) -> Reasons:
        """The rows of the tables that produce a row of the view."""
        return await self._ask(lambda view: view.why(row, **parameters))

    async def why_not(self, row: Row, **parameters: Any) -> Reasons:
        """Why a row is not in the view: the table without a matching row and its key, or the row of the same group."""
        return await self._ask(lambda view: view.why_not(row, **parameters))

    async def verify(self) -> None:
        """Lets the server compute the view in another way; raises VerificationError at the first difference."""
        await self._ask(lambda view: view.verify())

    def __repr__(self) -> str:
        return f"<AsyncView {self.name} of {self._database.url}>"


class AsyncTable:
    """A table behind a server, to be awaited and iterated over with `async for`."""

    def __init__(self, database: AsyncDatabase, table: RemoteTable) -> None:
        self._database = database
        self._table = table
        self.name = table.name
        self.columns = table.columns
        self.described = table.described

    async def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table; a row of multiplicity m occurs m times."""
        return await self._database.run(lambda remote: RemoteTable(remote, self.described).to_arrow())

    async def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas DataFrame."""
        return pandas_frame(await self.to_arrow())

    async def to_polars(self) -> polars.DataFrame:
        """The rows as a polars DataFrame."""
        return await self._database.run(lambda remote: RemoteTable(remote, self.described).to_polars())

    async def __aiter__(self) -> AsyncIterator[Row]:
        for row in await self._database.run(lambda remote: list(RemoteTable(remote, self.described))):
            yield row

    def __repr__(self) -> str:
        return f"<AsyncTable {self.name} of {self._database.url}>"
