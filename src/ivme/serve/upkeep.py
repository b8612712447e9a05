"""What a database needs from time to time: positions of sources, checkpoints, backups, checks, broken views.

A backup is sent as a tar archive of a directory that `Database` opens. One is made at a time, on the server's disk; it
has no time limit, since it is as long as the database is large, but a client that does not read it is cut.
"""

from __future__ import annotations

import asyncio
import tarfile
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from ivme.database import Database
from ivme.errors import IvmeError
from ivme.serve.answering import grant_of, json_answer
from ivme.serve.cancelling import run_cancellable
from ivme.serve.description import describe_view, refusals
from ivme.serve.problem import Problem, problem_of
from ivme.serve.settings import Settings
from ivme.serve.view_reading import described, reading

TAR = "application/x-tar"
_PIECE = 2**20


def add_upkeep(app: FastAPI, database: Database, settings: Settings) -> None:
    """The endpoints for the upkeep of a database."""
    answers: Any = {**refusals(), "403": {"description": "not allowed"}}
    backing_up = asyncio.Lock()

    @app.get(
        "/position",
        summary="How far a source has been applied",
        openapi_extra=described(source={"type": "string"}),
        responses=answers,
    )
    async def position(request: Request) -> Response:
        grant, source = grant_of(request), request.query_params.get("source")
        if grant.only_reads:
            grant.require("read", "*")
        if source is None:
            raise Problem(422, "parameter source is missing")
        return json_answer({"source": source, "position": await asyncio.to_thread(database.position, source)})

    @app.get(
        "/promises",
        summary="Whether UNIQUE, NOT NULL and REFERENCES hold",
        openapi_extra=described(table={"type": "string"}),
        responses=answers,
    )
    async def promises(request: Request) -> Response:
        table = request.query_params.get("table")
        grant_of(request).require("read", "*" if table is None else table)
        await reading(lambda: database.check_promises(table))
        return json_answer({"holds": True})

    @app.post("/checkpoint", summary="Write the tables to disk, and shorten the log", responses=answers)
    async def checkpoint(request: Request) -> Response:
        grant_of(request).require_define()
        try:
            await asyncio.to_thread(database.checkpoint)
        except IvmeError as error:
            raise problem_of(error) from None
        return json_answer({"log_bytes": database.definitions.log_bytes})

    @app.get(
        "/backup",
        summary="The whole database, as a tar archive of a directory",
        responses={**answers, "200": {"content": {TAR: {}}}, "409": {"description": "another one is being made"}},
    )
    async def backup(request: Request) -> Response:
        grant_of(request).require("read", "*")
        if backing_up.locked():
            raise Problem(409, "another backup is being made; ask again later")
        async with backing_up:
            archive = await asyncio.to_thread(_archive, database)
        return StreamingResponse(_pieces(archive), media_type=TAR)

    @app.post("/views/{view}/rebuild", summary="Build a broken view again", responses=answers)
    async def rebuild(view: str, request: Request) -> Response:
        grant_of(request).require_define()
        if settings.owner:
            raise Problem(403, settings.owner)
        try:
            made = await run_cancellable(lambda: database.rebuild_view(view))
        except IvmeError as error:
            raise problem_of(error) from None
        return json_answer(describe_view(database, made))


def _archive(database: Database) -> IO[bytes]:
    """A file without a name that has a backup; it is gone when it is closed."""
    archive = tempfile.TemporaryFile()  # noqa: SIM115  it is sent later
    try:
        with tempfile.TemporaryDirectory(prefix="ivme-backup-") as folder:
            directory = Path(folder) / "backup"
            database.backup(directory)
            with tarfile.open(fileobj=archive, mode="w") as tar:
                for path in sorted(directory.iterdir()):
                    tar.add(path, path.name)
        archive.seek(0)
    except BaseException as error:
        archive.close()
        if isinstance(error, IvmeError):
            raise problem_of(error) from None
        raise
    return archive


async def _pieces(archive: IO[bytes]) -> AsyncIterator[bytes]:
    with archive:
        while piece := await asyncio.to_thread(archive.read, _PIECE):
            yield piece
