"""A database over shards behind HTTP: rows of views, their changes, and what is known of both.

Definitions are answered by an embedded database that has the same tables and views and no rows; rows come from the
shards, by the same ways as those of one engine. Statements of SQL, rows of tables, and everything that writes are not
served: the pipeline whose shards they are is the only one to change them.
"""

from __future__ import annotations

import ivme.serve.packages  # noqa: F401  it says which packages are missing

# isort: split
import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException

from ivme.errors import DataError
from ivme.serve.access import Access
from ivme.serve.activity import Activity
from ivme.serve.answering import grant_of, json_answer
from ivme.serve.asking import JSON, find_view
from ivme.serve.description import describe_view, refusals, view_paths
from ivme.serve.every_app import new_app
from ivme.serve.explaining import explanation_body
from ivme.serve.following import Following
from ivme.serve.gate import Gate
from ivme.serve.hub import Hub
from ivme.serve.metrics import Metrics
from ivme.serve.problem import Problem
from ivme.serve.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa

    from ivme.shards.changes import ShardedChanges
    from ivme.shards.state import ShardedState
    from ivme.view import View

_THREADS = 32


class _InThreads:
    """The lock of a view that is never free on the event loop: its rows come over a network."""

    def acquire(self, *, blocking: bool) -> bool:  # noqa: ARG002
        return False


class ServedView:
    """A view over shards with what the server asks of one; what is not about rows, `known` says."""

    is_gone = False
    read_lock = _InThreads()

    def __init__(self, state: ShardedState, known: View) -> None:
        self._view, self.known = state.view(known.name), known
        self.lock = state.shards.lock
        self._feed: ShardedChanges | None = None
        self._queues: list[deque[Any]] = []

    def __getattr__(self, name: str) -> Any:
        if name not in ("name", "columns", "state", "asked", "schema", "own_order"):
            raise AttributeError(f"views over shards are not served with {name}")
        return getattr(self.known, name)

    def few_rows(self, _parameters: Mapping[str, Any]) -> None:
        """How many rows there are is not known before they are here."""

    def mapped_page(self, _wanted: Any) -> None:
        """Pages are cut from all rows."""

    def limited_table(self, parameters: Mapping[str, Any], most: int) -> pa.Table:
        found = self._view.to_arrow(**parameters)
        if found.num_rows > most:
            raise DataError(f"view {self.name} has more than {most} rows")
        return found

    def items(self, **parameters: Any) -> Iterator[tuple[tuple[Any, ...], int]]:
        """The distinct rows with their multiplicities; what changed up to them is in the queues before."""
        self.pump()
        return self._view.items(**parameters)

    def count(self, **parameters: Any) -> int:
        return self._view.count(**parameters)

    def explain(self) -> Any:
        return self._view.explain()

    # Changes

    def follow(self, queue: deque[Any]) -> None:
        with self.lock:
            if self._feed is None:
                self._feed = self._view.changes()
            self.pump()
            self._queues.append(queue)

    def unfollow(self, queue: deque[Any]) -> None:
        with self.lock:
            self._queues = [each for each in self._queues if each is not queue]
            if not self._queues and self._feed is not None:
                self._feed.close()
                self._feed = None

    def pump(self) -> None:
        """Gives followers the changes since the last time; under the lock of the database."""
        for change in self._feed or ():
            for queue in self._queues:
                queue.append(change)


class ServedShards:
    """The database of a pipeline over shards, as the server sees databases."""

    def __init__(self, state: ShardedState) -> None:
        self.state, self.known = state, state.known
        self.definitions = self  # what the quick ways ask for views
        self._views: dict[str, ServedView] = {}

    def map_view(self, name: str) -> ServedView:
        known = self.known.definitions.map_view(name)
        return self._views.setdefault(known.name, ServedView(self.state, known))

    def changed(self) -> None:
        """A step has happened."""
        for view in self._views.values():
            view.pump()


def create_sharded_app(state: ShardedState, settings: Settings) -> Gate:
    """The ASGI application that serves the views of a pipeline over shards."""
    served: Any = ServedShards(state)
    hub, metrics = Hub(settings), Metrics(Activity())
    inner = new_app(_lifespan(served, hub), partial(metrics.server_text, hub), _unknown(settings.owner))
    _add_about(inner, served, hub)
    _add_views(inner, served)
    return Gate(inner, Access(served, settings), Following(served, hub, settings), metrics, settings)


def _lifespan(served: ServedShards, hub: Hub) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        observers = served.state.shards.observers
        observers.append(served.changed)
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "ivme-serve"))
        running = asyncio.create_task(hub.run())
        try:
            yield
        finally:
            observers.remove(served.changed)
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    return lifespan


def _unknown(owner: str) -> Callable[[Request, Exception], Any]:
    """What is said of paths that there are not; of changes, who alone may make them."""

    async def answer(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if owner and request.method not in ("GET", "HEAD"):
            return Response(Problem(403, owner).body(), 403, media_type=JSON)
        said = f"there is nothing at {request.method} {request.url.path} of a database over shards"
        message = f"{said}; /openapi.json lists what there is"
        return Response(Problem(error.status_code, message).body(), error.status_code, error.headers, JSON)

    return answer


def _add_about(app: FastAPI, served: ServedShards, hub: Hub) -> None:
    answers: Any = refusals()

    @app.get("/stats", summary="The shards, and the followers of views", responses=answers)
    async def stats(request: Request) -> Response:
        grant = grant_of(request)
        grant.require("read", "*")
        shards = await asyncio.to_thread(served.state.status)
        sources = await asyncio.to_thread(served.state.positions)
        return json_answer(
            {"shards": shards, "sources": sources, "followed": hub.followed, "subscribers": hub.subscribers}
        )

    @app.get("/clock", summary="What the clock of the database says", responses=answers)
    async def clock() -> Response:
        return json_answer({"now": await asyncio.to_thread(lambda: served.state.now)})

    @app.get("/openapi.json", include_in_schema=False)
    async def document(request: Request) -> Response:
        found = get_openapi(title=app.title, version=app.version, routes=app.routes)
        found["paths"] |= view_paths(served.known, grant_of(request))
        return Response(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"), media_type=JSON)


def _add_views(app: FastAPI, served: Any) -> None:
    answers: Any = refusals()

    @app.get("/views", summary="The views: columns, parameters, guarantees", responses=answers)
    async def views(request: Request) -> Response:
        known, grant = served.known, grant_of(request)
        seen = [name for name in known.definitions.map_views if grant.sees(name)]
        return json_answer([describe_view(known, known.definitions.map_view(name)) for name in seen])

    @app.get("/views/{view}/explain", summary="How a view is maintained and spread", responses=answers)
    async def explain(view: str, request: Request) -> Response:
        grant_of(request).require("read", view)
        found = find_view(served, view)
        return Response(await asyncio.to_thread(explanation_body, found), media_type=JSON)
