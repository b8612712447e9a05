"""The application: a database behind HTTP.

Rows and changes of views go by the gate's own ways; everything else is here.
"""

from __future__ import annotations

import ivme.serve.packages  # noqa: F401  it says which packages are missing

# isort: split
import asyncio
import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException

from ivme.database import Database
from ivme.errors import IvmeError
from ivme.plan.strategy.options import read_options
from ivme.query import names
from ivme.query.types import Type
from ivme.serve.access import Access
from ivme.serve.activity import Activity
from ivme.serve.answering import described_body, grant_of, json_answer, read_body
from ivme.serve.asking import JSON
from ivme.serve.cancelling import run_cancellable
from ivme.serve.description import describe_broken, describe_view, refusals, stats, view_paths
from ivme.serve.every_app import new_app
from ivme.serve.following import Following
from ivme.serve.front import add_page, add_watching
from ivme.serve.gate import Gate
from ivme.serve.grants import Grant
from ivme.serve.hub import Hub
from ivme.serve.metrics import Metrics
from ivme.serve.problem import Problem, problem_of
from ivme.serve.settings import Settings
from ivme.serve.statements import add_statements
from ivme.serve.steps import CHANGES
from ivme.serve.upkeep import add_upkeep
from ivme.serve.values import read_json, read_text
from ivme.serve.view_reading import add_view_reading
from ivme.serve.writing import Writing

_THREADS = 32
"""Most of them wait for the disk or for the database's lock; threads that commit at the same time share a sync."""

_EXPLAINERS = 1
"""A query that takes long to plan holds up the next one, and nothing else."""

_BETWEEN_MEASURES = 5.0
"""The seconds between two looks at the memory."""

_MOST_CHARACTERS = 50_000
"""The longest query of a view that a request may make; reading it takes time that grows with it."""

_ROWS = {"type": "array", "items": {"anyOf": [{"type": "array"}, {"type": "object"}]}}
_CHANGES = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"insert": _ROWS, "delete": _ROWS, "upsert": _ROWS, "replace": _ROWS},
}
_STEP = {
    "type": "object",
    "additionalProperties": False,
    "required": ["table", "change"],
    "properties": {
        "table": {"type": "string"},
        "change": {"enum": list(CHANGES)},
        "rows": _ROWS,
        "keys": {"type": "array"},
        "weights": {"type": "array", "items": {"type": "integer"}},
        "set": {"type": "object"},
        "where": {"type": "string"},
        "parameters": {"type": "object"},
        "strict": {"type": "boolean"},
        "round_floats": {"type": "boolean"},
    },
}
_BATCH = {
    "type": "object",
    "additionalProperties": False,
    "required": ["changes"],
    "properties": {
        "changes": {"anyOf": [{"type": "object", "additionalProperties": _CHANGES}, {"type": "array", "items": _STEP}]},
        "source": {"type": "string"},
        "position": {"type": "integer", "minimum": 0},
    },
}
_VIEW: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "query"],
    "properties": {
        "name": {"type": "string", "maxLength": names.MOST_CHARACTERS},
        "query": {"type": "string", "maxLength": _MOST_CHARACTERS},
        "options": {"type": "object"},
        "if_not_exists": {"type": "boolean"},
        "replace": {"type": "boolean"},
    },
}
_MAPS = {"name": "_maps", "in": "query", "required": False, "schema": {"type": "boolean"}}
_KEY = {"name": "Idempotency-Key", "in": "header", "required": False, "schema": {"type": "string", "maxLength": 200}}


def create_app(database: Database, settings: Settings | None = None) -> Gate:
    """The ASGI application that serves a database."""
    chosen = settings or Settings()
    activity = Activity()
    hub, metrics, writing = Hub(chosen), Metrics(activity), Writing(database)
    inner = new_app(_lifespan(database, hub, activity), partial(metrics.text, database, hub), _unknown)
    _add_reading(inner, database, hub, metrics)
    _add_writing(inner, database, writing, chosen.owner)
    add_statements(inner, database, chosen)
    add_watching(inner, database, activity)
    add_view_reading(inner, database, chosen)
    add_upkeep(inner, database, chosen)
    add_page(inner)
    return Gate(inner, Access(database, chosen), Following(database, hub, chosen), metrics, chosen)


def _lifespan(database: Database, hub: Hub, activity: Activity) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        runtime, changed = database.definitions.runtime, activity.changed
        runtime.observers += (changed,)
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "ivme-serve"))
        app.state.explaining = ThreadPoolExecutor(_EXPLAINERS, "ivme-explain")
        running = [asyncio.create_task(hub.run()), asyncio.create_task(_measure(database, activity))]
        try:
            yield
        finally:
            runtime.observers = tuple(observer for observer in runtime.observers if observer is not changed)
            app.state.explaining.shutdown(wait=False, cancel_futures=True)
            for task in running:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    return lifespan


async def _measure(database: Database, activity: Activity) -> None:
    """Notes the memory now and then, until it is cancelled."""
    runtime = database.definitions.runtime

    def memory() -> int:
        with runtime.lock:
            return int(runtime.catalog.memory()["memory_bytes"])

    while True:
        activity.measured(await asyncio.to_thread(memory))
        await asyncio.sleep(_BETWEEN_MEASURES)


async def _unknown(request: Request, error: Exception) -> Response:
    """No endpoint has this path, or this method; said as all refusals are."""
    assert isinstance(error, HTTPException)
    allowed = (error.headers or {}).get("Allow")
    told = f"it takes {allowed}" if allowed else "/openapi.json lists what there is"
    message = f"there is nothing at {request.method} {request.url.path}; {told}"
    return Response(Problem(error.status_code, message).body(), error.status_code, error.headers, JSON)


def _add_reading(app: FastAPI, database: Database, hub: Hub, metrics: Metrics) -> None:
    answers: Any = refusals()

    @app.get("/stats", summary="Tables, views and sizes", openapi_extra={"parameters": [_MAPS]}, responses=answers)
    async def all_stats(request: Request) -> Response:
        maps = read_text(request.query_params.get("_maps", "true"), Type("bool"), "parameter _maps")
        grant = grant_of(request)
        followed = {name: each for name, each in hub.followed.items() if grant.sees(name)}
        found = await asyncio.to_thread(stats, database, hub.subscribers, grant, metrics.activity.tables, maps=maps)
        return json_answer({**found, "followed": followed})

    @app.get("/openapi.json", include_in_schema=False)
    async def document(request: Request) -> Response:
        return Response(_document(app, database, grant_of(request)), media_type=JSON)

    @app.get("/views", summary="The views: columns, parameters, guarantees", responses=answers)
    async def views(request: Request) -> Response:
        definitions, grant = database.definitions, grant_of(request)
        seen = [name for name in definitions.map_views if grant.sees(name)]
        working = [describe_view(database, definitions.map_view(name)) for name in seen]
        return json_answer(working + describe_broken(database, grant))


def _add_writing(app: FastAPI, database: Database, writing: Writing, owner: str) -> None:
    answers: Any = {**refusals(), "415": {"description": "not JSON"}, "409": {"description": "under way"}}

    async def read(request: Request) -> bytes:
        if owner:
            raise Problem(403, owner)
        return await read_body(request)

    @app.post(
        "/tables/{table}/changes", summary="A batch", openapi_extra=described_body(_CHANGES, _KEY), responses=answers
    )
    async def table_changes(table: str, request: Request) -> Response:
        grant_of(request).require("write", table)
        body, key = await read(request), request.headers.get("idempotency-key")
        return json_answer(await asyncio.to_thread(writing.table_changes, table, body, key))

    @app.post(
        "/batch", summary="A batch over several tables", openapi_extra=described_body(_BATCH, _KEY), responses=answers
    )
    async def batch(request: Request) -> Response:
        body, key = await read(request), request.headers.get("idempotency-key")
        return json_answer(await asyncio.to_thread(writing.batch, body, key, grant_of(request)))

    @app.post("/views", status_code=201, summary="Make a view", openapi_extra=described_body(_VIEW), responses=answers)
    async def create_view(request: Request) -> Response:
        grant_of(request).require_define()
        given = read_json(await read(request))
        return json_answer(await run_cancellable(lambda: _create_view(database, given)), 201)


def _create_view(database: Database, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict) or not {"name", "query"} <= given.keys() <= _VIEW["properties"].keys():
        raise Problem(422, 'a view is {"name": ..., "query": ..., "options": {...}}, the options being optional')
    name, query, options = given["name"], given["query"], given.get("options", {})
    if not isinstance(name, str) or not isinstance(query, str) or not isinstance(options, dict):
        raise Problem(422, "the name and the query of a view are strings, and its options an object")
    how = {each: given.get(each, False) for each in ("if_not_exists", "replace")}
    if not all(isinstance(each, bool) for each in how.values()):
        raise Problem(422, "if_not_exists and replace are true or false")
    if "/" in name:
        raise Problem(422, "a view that is served has no / in its name")
    if len(query) > _MOST_CHARACTERS:
        raise Problem(413, f"the query has more than {_MOST_CHARACTERS} characters")
    try:
        read_options(options)  # an option that is called like a parameter of create_view is unknown like any other
        return describe_view(database, database.create_view(name, query, **how, **options))
    except IvmeError as error:
        problem = problem_of(error)
        raise Problem(422 if problem.status == 404 else problem.status, problem.message) from None


def _document(app: FastAPI, database: Database, grant: Grant) -> bytes:
    """The OpenAPI document, with the views as they are now; a name that UTF-8 does not have is shown with `?`."""
    document = get_openapi(title=app.title, version=app.version, routes=app.routes)
    document["paths"] |= view_paths(database, grant)
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
