"""Statements of SQL over HTTP, and the rows of tables: `POST /sql`, `GET /tables`, `DELETE /views/{view}`.

A text is run as `Database.sql` runs it, with the limits of every request: its length, its time, and the rows of its
answer. What only reads is interrupted when the time is over; a change is done as a whole, and then told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
from fastapi import FastAPI, Request, Response

from ivme.database import Database
from ivme.errors import IvmeError
from ivme.query.names import MOST_CHARACTERS
from ivme.query.types import Type
from ivme.serve.answering import described_body, grant_of, json_answer, read_body, rows_answer
from ivme.serve.asking import chosen_form
from ivme.serve.description import describe_table, listed_tables, refusals
from ivme.serve.grants import Grant
from ivme.serve.interrupting import run_interruptible
from ivme.serve.problem import Problem, problem_of
from ivme.serve.remote import READS, check_length, check_remote, remote_session
from ivme.serve.settings import Settings
from ivme.serve.tagged_values import untagged
from ivme.serve.values import read_json, read_text
from ivme.statements.parse import parse_statements
from ivme.statements.result import Result

_SQL = {
    "type": "object",
    "additionalProperties": False,
    "required": ["sql"],
    "properties": {"sql": {"type": "string"}, "parameters": {"type": "object"}},
}
_NAMES = {"type": "array", "items": {"type": "string"}}
_TABLE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "columns"],
    "properties": {
        "name": {"type": "string", "maxLength": MOST_CHARACTERS},
        "columns": {"type": "object", "additionalProperties": {"type": "string"}},
        "primary_key": _NAMES,
        "append_only": {"type": "boolean"},
        "static": {"type": "boolean"},
        "keep_rows": {"type": "boolean"},
        "references": {"type": "object", "additionalProperties": {"type": "string"}},
        "unique": {"type": "array", "items": _NAMES},
        "not_null": _NAMES,
        "defaults": {"type": "object"},
        "if_not_exists": {"type": "boolean"},
        "replace": {"type": "boolean"},
    },
}
_CLOCK = {
    "type": "object",
    "additionalProperties": False,
    "required": ["now"],
    "properties": {"now": {"type": "string", "format": "date-time"}},
}
_LIMIT = {"name": "_limit", "in": "query", "required": False, "schema": {"type": "integer", "minimum": 1}}


def add_statements(app: FastAPI, database: Database, settings: Settings) -> None:
    """The endpoints for SQL and tables."""
    answers: Any = {**refusals(), "403": {"description": "not allowed"}, "415": {"description": "not JSON"}}

    @app.post("/sql", summary="Run SQL statements", openapi_extra=described_body(_SQL, _LIMIT), responses=answers)
    async def sql(request: Request) -> Response:
        form = chosen_form(request.headers.get("accept", "*/*"))
        limit = _limit(request)
        text, parameters = _read(await read_body(request), settings)
        work, only_reads = _prepared(database, settings, text, parameters, grant_of(request))
        try:
            result = await (run_interruptible(work) if only_reads else asyncio.to_thread(work))
        except IvmeError as error:
            raise _refused(error) from None
        if not result.is_query:
            return json_answer({"message": result.message, "count": result.count})
        return await rows_answer(_first(result.to_arrow(), limit), form, settings.rows)

    @app.get("/tables", summary="The tables: columns, keys, rows", responses=answers)
    async def tables(request: Request) -> Response:
        return json_answer([describe_table(database, name) for name in listed_tables(database, grant_of(request))])

    @app.post(
        "/tables", status_code=201, summary="Make a table", openapi_extra=described_body(_TABLE), responses=answers
    )
    async def create_table(request: Request) -> Response:
        grant_of(request).require_define()
        if settings.owner:
            raise Problem(403, settings.owner)
        given = _declared(read_json(await read_body(request)))
        name = given.pop("name")
        try:
            await asyncio.to_thread(lambda: database.create_table(name, given.pop("columns"), **given))
            return json_answer(describe_table(database, database.table(name).name), 201)
        except IvmeError as error:
            raise _refused(error) from None

    @app.get("/tables/{table}", summary="Rows of a table", openapi_extra={"parameters": [_LIMIT]}, responses=answers)
    async def rows(table: str, request: Request) -> Response:
        grant_of(request).require("read", table)
        form = chosen_form(request.headers.get("accept", "*/*"))
        limit = _limit(request) or settings.page
        try:
            data = await run_interruptible(lambda: _first(database.table(table).to_arrow(), limit))
        except IvmeError as error:
            raise problem_of(error) from None
        return await rows_answer(data, form, settings.rows)

    @app.get("/clock", summary="What the clock of the database says", responses=answers)
    async def clock() -> Response:
        return json_answer({"now": await asyncio.to_thread(lambda: database.now)})

    @app.post("/clock", summary="Move the clock on", openapi_extra=described_body(_CLOCK), responses=answers)
    async def advance(request: Request) -> Response:
        grant_of(request).require_define()
        if settings.owner:
            raise Problem(403, settings.owner)
        moment = _moment(read_json(await read_body(request)))
        try:
            await asyncio.to_thread(database.advance, moment)
        except IvmeError as error:
            raise problem_of(error) from None
        return json_answer({"now": database.now})

    @app.delete("/views/{view}", summary="Drop a view", responses=answers)
    async def drop_view(view: str, request: Request) -> Response:
        grant_of(request).require_define()
        return await _drop(database.drop_view, view, settings)

    @app.delete("/tables/{table}", summary="Drop a table", responses=answers)
    async def drop_table(table: str, request: Request) -> Response:
        grant_of(request).require_define()
        return await _drop(database.drop_table, table, settings)


def _declared(given: Any) -> dict[str, Any]:
    """What a request says of a new table, as `Database.create_table` takes it."""
    known = _TABLE["properties"]
    if not isinstance(given, dict) or not {"name", "columns"} <= given.keys() <= known.keys():
        raise Problem(
            422, 'a table is {"name": ..., "columns": {"id": "int"}, "primary_key": ["id"]}; /docs has the rest'
        )
    for name, value in given.items():
        if not _has_type(value, known[name]):
            told = "be true or false" if known[name]["type"] == "boolean" else "be as /docs says"
            raise Problem(422, f"{name} of a table must {told}")
    defaults = {name: untagged(f"the default of {name}", value) for name, value in given.get("defaults", {}).items()}
    return {**given, "defaults": defaults}


def _has_type(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value is as a part of `_TABLE` says."""
    kinds = {"string": str, "boolean": bool, "array": list, "object": dict}
    if not isinstance(value, kinds[schema["type"]]):
        return False
    inner = schema.get("items") or schema.get("additionalProperties")
    parts = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    return inner is None or all(_has_type(each, inner) for each in parts)


def _moment(given: Any) -> datetime:
    if not isinstance(given, dict) or given.keys() != {"now"} or not isinstance(given["now"], str):
        raise Problem(422, 'a moment is {"now": "2024-05-01T12:00:00"}, in UTC')
    found: datetime = read_text(given["now"], Type("timestamp"), "now")
    return found


def _limit(request: Request) -> int | None:
    """The most rows that a request asks for; None if it does not say."""
    text = request.query_params.get("_limit")
    if text is None:
        return None
    limit: int = read_text(text, Type("int"), "parameter _limit")
    if limit < 1:
        raise Problem(422, f"parameter _limit is a number of rows, at least 1; it is {limit}")
    return limit


def _first(data: pa.Table, limit: int | None) -> pa.Table:
    return data if limit is None else data.slice(0, limit)


async def _drop(drop: Callable[[str], None], name: str, settings: Settings) -> Response:
    if settings.owner:
        raise Problem(403, settings.owner)
    try:
        await asyncio.to_thread(drop, name)
    except IvmeError as error:
        raise problem_of(error) from None
    return json_answer({"dropped": name})


def _read(body: bytes, settings: Settings) -> tuple[str, dict[str, Any]]:
    """The text and the values of its parameters."""
    given = read_json(body)
    if not isinstance(given, dict) or not {"sql"} <= given.keys() <= {"sql", "parameters"}:
        raise Problem(
            422, 'statements are {"sql": "...", "parameters": {"name": value}}, the parameters being optional'
        )
    text, parameters = given["sql"], given.get("parameters", {})
    if not isinstance(text, str) or not isinstance(parameters, dict):
        raise Problem(422, "sql is a string, and parameters an object")
    try:
        check_length(text, settings)
    except IvmeError as error:
        raise Problem(413, str(error)) from None
    return text, {name: untagged(f"parameter {name}", value) for name, value in parameters.items()}


def _prepared(
    database: Database, settings: Settings, text: str, parameters: Mapping[str, Any], grant: Grant
) -> tuple[Callable[[], Result], bool]:
    """What runs the statements, and whether they only read."""
    check = check_remote(database, settings, grant)
    try:
        statements = parse_statements(text, database.definitions.functions.defined)
        for statement in statements:
            check(statement)
    except IvmeError as error:
        raise _refused(error) from None

    def work() -> Result:
        session = remote_session(database, settings, grant)
        result = session.run(text, parameters)
        if session.in_transaction:
            session.close()
            raise Problem(422, "the transaction has no COMMIT in the same text: its changes were not made")
        return result

    return work, all(isinstance(statement, READS) for statement in statements)


def _refused(error: IvmeError) -> Problem:
    problem = problem_of(error)
    return Problem(422 if problem.status == 404 else problem.status, problem.message)
