"""The page at `/`, and what it asks for beyond what every client does: sizes, explanations, what happens now."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import FastAPI, Request, Response

from ivme.database import Database
from ivme.serve.activity import SPANS, Activity
from ivme.serve.answering import described_body, grant_of, json_answer, read_body
from ivme.serve.asking import JSON, find_view
from ivme.serve.cancelling import run_cancellable
from ivme.serve.description import refusals
from ivme.serve.explaining import MOST_CHARACTERS, explain_request, explanation_body
from ivme.serve.files import HEADERS, File, page_files
from ivme.serve.problem import Problem
from ivme.serve.sizes import view_stats

SVG = "image/svg+xml"

_QUERY = {
    "type": "object",
    "additionalProperties": False,
    "required": ["query"],
    "properties": {"query": {"type": "string", "maxLength": MOST_CHARACTERS}, "options": {"type": "object"}},
}

_SPAN = {
    "parameters": [
        {"name": "_span", "in": "query", "required": False, "schema": {"type": "string", "enum": list(SPANS)}}
    ]
}


def is_open(path: str) -> bool:
    """Whether a path is a file of the page, which anybody may have."""
    return path in ("/", "/docs") or path.startswith("/page/")


def add_page(app: FastAPI) -> None:
    """The page's files."""

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return _sent(page_files()["index.html"])

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(status_code=307, headers={**HEADERS, "Location": "./#/docs"})

    @app.get("/page/{name}", include_in_schema=False)
    async def part(name: str) -> Response:
        if name not in page_files():
            raise Problem(404, "the console has no such file")
        return _sent(page_files()[name])


def _sent(file: File) -> Response:
    return Response(file.content, media_type=file.kind, headers=HEADERS)


def add_watching(app: FastAPI, database: Database, activity: Activity) -> None:
    """What the page asks for. Queries are explained in `app.state.explaining`, an executor."""
    answers: Any = {**refusals(), "415": {"description": "not JSON"}}

    @app.get("/activity", summary="The last minutes or the last hour, in steps", openapi_extra=_SPAN, responses=answers)
    async def happened(request: Request) -> Response:
        span = request.query_params.get("_span", "minutes")
        if span not in SPANS:
            raise Problem(422, f"parameter _span is {' or '.join(SPANS)}")
        return json_answer(activity.to_dict(span))

    @app.get("/views/{view}/stats", summary="A view's sizes, its heavy and light parts", responses=answers)
    async def sizes(view: str, request: Request) -> Response:
        grant_of(request).require("read", view)
        return json_answer(await asyncio.to_thread(view_stats, find_view(database, view)))

    @app.get("/views/{view}/explain", summary="How a view is maintained, and what that costs", responses=answers)
    async def explain(view: str, request: Request) -> Response:
        grant_of(request).require("read", view)
        found = find_view(database, view)
        if request.headers.get("accept", "").strip() == SVG:
            return Response(await asyncio.to_thread(lambda: found.explain().svg()), media_type=SVG)
        return Response(await asyncio.to_thread(explanation_body, found), media_type=JSON)

    @app.post("/explain", summary="Explain a query", openapi_extra=described_body(_QUERY), responses=answers)
    async def explain_query(request: Request) -> Response:
        body, grant = await read_body(request), grant_of(request)
        return json_answer(await run_cancellable(lambda: explain_request(database, body, grant), app.state.explaining))
