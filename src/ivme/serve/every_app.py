"""What every server has, whatever its database is: health, metrics, tokens, and how it refuses."""

from __future__ import annotations

import ivme.serve.packages

# isort: split
import asyncio
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

import ivme
from ivme.serve.answering import grant_of, json_answer
from ivme.serve.asking import JSON
from ivme.serve.description import refusals
from ivme.serve.grants import RefusedError
from ivme.serve.metrics import KIND
from ivme.serve.problem import Problem, problem_of


def new_app(
    lifespan: Callable[[FastAPI], Any], metrics: Callable[[], str], unknown: Callable[[Request, Any], Any]
) -> FastAPI:
    """An application that says whether it answers and what it has done.

    `metrics` makes the text that Prometheus reads, in a thread; `unknown` answers requests to paths that do not exist.
    """
    app = FastAPI(
        title="ivme",
        version=ivme.__version__,
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    _add_server(app, metrics)
    app.add_exception_handler(Problem, _refused)
    app.add_exception_handler(RefusedError, _refused)
    app.add_exception_handler(HTTPException, unknown)
    return app


def _add_server(app: FastAPI, metrics: Callable[[], str]) -> None:
    answers: Any = refusals()

    @app.get("/healthz", summary="Whether the server answers")
    async def healthz() -> Response:
        return json_answer({"status": "ok"})

    @app.get("/metrics", summary="Figures for Prometheus", responses=answers)
    async def figures(request: Request) -> Response:
        grant_of(request).require("read", "*")
        return Response(await asyncio.to_thread(metrics), media_type=KIND)

    @app.get("/token", summary="What the token of this request allows", responses=answers)
    async def token(request: Request) -> Response:
        grant = grant_of(request)
        return json_answer({"name": grant.name, "scopes": sorted(grant.scopes)})


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem | RefusedError)
    problem = error if isinstance(error, Problem) else problem_of(error)
    return Response(problem.body(), problem.status, media_type=JSON)
