"""Bodies of requests and answers, for the endpoints that FastAPI has."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
from fastapi import Request, Response

from ivme.serve.asking import JSON
from ivme.serve.grants import GRANT, Grant
from ivme.serve.pages import Page, encoded
from ivme.serve.problem import Problem
from ivme.serve.values import dumps


def json_answer(content: Any, status: int = 200) -> Response:
    return Response(dumps(content) + b"\n", status, media_type=JSON)


def grant_of(request: Request) -> Grant:
    """What the token of a request allows; the gate has set it."""
    found: Grant = request.scope[GRANT]
    return found


async def read_body(request: Request) -> bytes:
    """A body that says that it is JSON; a page of another site cannot send such a one."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != JSON:
        raise Problem(415, f"the body must be {JSON}, and say so in Content-Type; it says {kind or 'nothing'}")
    return await request.body()


def described_body(schema: dict[str, Any], *parameters: dict[str, Any]) -> dict[str, Any]:
    """What the OpenAPI document says of a body of JSON, and of parameters beside it."""
    return {"requestBody": {"required": True, "content": {JSON: {"schema": schema}}}, "parameters": list(parameters)}


async def rows_answer(data: pa.Table, form: str, most: int | None = None) -> Response:
    """The rows in a form, made in a thread; refused if there are more than so many."""
    if most is not None and data.num_rows > most:
        raise Problem(413, f"the answer has more than {most} rows; ask for fewer")
    body = await asyncio.to_thread(lambda: b"".join(encoded(Page(data, None), form)))
    return Response(body, media_type=form)
