"""What can be requested of views beyond their rows: how many, by position, at random, why, whether they are right.

`GET /views/{view}/count` and the like, each a method of `View`, for one state of the database.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa
from fastapi import FastAPI, Request, Response

from ivme.database import Database
from ivme.engine.codes.nested_values import arrow_array
from ivme.engine.read.reasons import Finding, Reasons
from ivme.errors import IvmeError, VerificationError
from ivme.query.types import Type
from ivme.serve.answering import described_body, grant_of, json_answer, read_body, rows_answer
from ivme.serve.asking import chosen_form, find_view, pairs_of, parameters_of, read_asked, row_of
from ivme.serve.description import refusals
from ivme.serve.interrupting import run_interruptible
from ivme.serve.problem import Problem, problem_of
from ivme.serve.settings import Settings
from ivme.serve.tagged_values import tagged
from ivme.serve.values import json_reader, read_json, read_text
from ivme.view import View
from ivme.views.ordered_reading import span_of

Answer = TypeVar("Answer")

_INTEGER, _TEXT = {"type": "integer"}, {"type": "string"}
_MANY = {
    "type": "object",
    "additionalProperties": False,
    "required": ["parameters"],
    "properties": {"parameters": {"type": "object", "additionalProperties": {"type": "array"}}},
}


def described(**special: dict[str, str]) -> dict[str, Any]:
    """What the OpenAPI document says of names in a query."""
    listed = [{"name": name, "in": "query", "required": False, "schema": each} for name, each in special.items()]
    return {"parameters": listed}


async def reading(work: Callable[[], Answer]) -> Answer:
    """What a read answers, in a thread that ends with the request."""
    try:
        return await run_interruptible(work)
    except IvmeError as error:
        raise problem_of(error) from None


def add_view_reading(app: FastAPI, database: Database, settings: Settings) -> None:
    """The endpoints for questions about views."""
    answers: Any = refusals()

    def asked(request: Request, name: str, *special: str) -> tuple[View, dict[str, Any], dict[str, str]]:
        """The view, the values of its parameters, and what the query says besides."""
        grant_of(request).require("read", name)
        view, pairs = find_view(database, name), pairs_of(request.scope["query_string"])
        own = parameters_of(view)
        found = {key: text for key, text in pairs if key in special and key not in own}
        rest = [(key, text) for key, text in pairs if key not in found]
        return view, read_asked(view, rest, ()).parameters, found

    def asked_row(request: Request, name: str) -> tuple[View, dict[str, Any], tuple[Any, ...]]:
        """The same with the row that the query names."""
        view, parameters, special = asked(request, name, "_row")
        return view, parameters, row_of(view, _needed(special, "_row"), "_row")

    @app.get("/views/{view}/count", summary="How many rows a view has", responses=answers)
    async def count(view: str, request: Request) -> Response:
        found, parameters, _ = asked(request, view)
        return json_answer({"count": await reading(lambda: found.count(**parameters))})

    @app.get(
        "/views/{view}/multiplicity",
        summary="How often a row is in a view",
        openapi_extra=described(_row=_TEXT),
        responses=answers,
    )
    async def multiplicity(view: str, request: Request) -> Response:
        found, parameters, row = asked_row(request, view)
        return json_answer({"multiplicity": await reading(lambda: found.multiplicity(row, **parameters))})

    @app.get(
        "/views/{view}/slice",
        summary="Rows of a view by their positions",
        openapi_extra=described(_start=_INTEGER, _stop=_INTEGER),
        responses=answers,
    )
    async def positions(view: str, request: Request) -> Response:
        found, parameters, special = asked(request, view, "_start", "_stop")
        _refuse_parameters(found, parameters)
        key = slice(_integer(special, "_start"), _integer(special, "_stop"))
        rows = await reading(lambda: _between(found, key, settings.rows))
        return await rows_answer(_table(found, rows), chosen_form(request.headers.get("accept", "*/*")))

    @app.get(
        "/views/{view}/sample",
        summary="Rows of a view at random",
        openapi_extra=described(_count=_INTEGER, _seed=_INTEGER),
        responses=answers,
    )
    async def sample(view: str, request: Request) -> Response:
        found, parameters, special = asked(request, view, "_count", "_seed")
        _refuse_parameters(found, parameters)
        number, seed = (
            read_text(_needed(special, "_count"), Type("int"), "parameter _count"),
            _integer(special, "_seed"),
        )
        if number > settings.rows:
            raise Problem(413, f"an answer has at most {settings.rows} rows; ask for fewer")

        def work() -> list[Any]:
            with found.lock:
                _check_size(found, number, settings.rows)
                return found.sample(number, seed=seed)

        rows = await reading(work)
        return await rows_answer(_table(found, rows), chosen_form(request.headers.get("accept", "*/*")))

    @app.get(
        "/views/{view}/why", summary="Why a row is in a view", openapi_extra=described(_row=_TEXT), responses=answers
    )
    async def why(view: str, request: Request) -> Response:
        found, parameters, row = asked_row(request, view)
        return json_answer(await reading(lambda: _reasons(found.why(row, **parameters))))

    @app.get(
        "/views/{view}/why_not",
        summary="Why a row is not in a view",
        openapi_extra=described(_row=_TEXT),
        responses=answers,
    )
    async def why_not(view: str, request: Request) -> Response:
        found, parameters, row = asked_row(request, view)
        return json_answer(await reading(lambda: _reasons(found.why_not(row, **parameters))))

    @app.get("/views/{view}/verify", summary="Compute a view by another way, and compare", responses=answers)
    async def verify(view: str, request: Request) -> Response:
        grant_of(request).require("read", view)
        found = find_view(database, view)
        return json_answer(await reading(lambda: _verified(found)))

    @app.post(
        "/views/{view}/requests",
        summary="The rows of many access requests",
        openapi_extra=described_body(_MANY),
        responses={**answers, "415": {"description": "not JSON"}},
    )
    async def many(view: str, request: Request) -> Response:
        grant_of(request).require("read", view)
        found = find_view(database, view)
        columns = _columns(found, read_json(await read_body(request)))
        data = await reading(lambda: found.request_many(**columns))
        return await rows_answer(data, chosen_form(request.headers.get("accept", "*/*")), settings.rows)


def _needed(special: dict[str, str], name: str) -> str:
    if name not in special:
        raise Problem(422, f"parameter {name} is missing")
    return special[name]


def _integer(special: dict[str, str], name: str) -> int | None:
    return read_text(special[name], Type("int"), f"parameter {name}") if name in special else None


def _refuse_parameters(view: View, parameters: dict[str, Any]) -> None:
    if parameters:
        raise Problem(422, f"view {view.name} has parameters; rows are found by position in a view without any")


def _check_size(view: View, wanted: int, most: int) -> None:
    """Refuses what would have more rows than an answer may, or would read more of them."""
    if wanted > most or (len(view) > most and not view.is_mapped):
        raise Problem(413, f"view {view.name} has more than {most} rows here; ask for fewer, or give it an ORDER BY")


def _between(view: View, key: slice, most: int) -> list[Any]:
    with view.lock:
        start, stop = span_of(key, len(view))
        _check_size(view, stop - start, most)
        return view[start:stop]


def _table(view: View, rows: list[Any]) -> pa.Table:
    """Rows in Arrow, in the types of the view's columns."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(view.columns)
    types = [column.type for column in view.state.table.columns if column.type is not None]
    arrays = [arrow_array(values, type_) for values, type_ in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=view.schema)


def _reasons(found: Reasons) -> dict[str, Any]:
    """The answer of why and why_not: for people as a text, and for programs, values with their types."""
    return {
        "view": found.view,
        "row": tagged(found.row),
        "present": found.present,
        "findings": [_finding(each) for each in found.findings],
        "text": str(found),
    }


def _finding(found: Finding) -> dict[str, Any]:
    return {
        "relation": found.relation,
        "at": [[name, tagged(value)] for name, value in found.at],
        "tuples": tagged(found.tuples),
        "more": found.more,
        "below": [_finding(each) for each in found.below],
    }


def _verified(view: View) -> dict[str, Any]:
    try:
        view.verify()
    except VerificationError as error:
        return {"verified": False, "difference": str(error)}
    return {"verified": True}


def _columns(view: View, given: Any) -> dict[str, list[Any]]:
    """The values of many requests, by parameter."""
    columns = given.get("parameters") if isinstance(given, dict) and given.keys() == {"parameters"} else None
    if not isinstance(columns, dict) or not all(isinstance(each, list) for each in columns.values()):
        raise Problem(422, 'many requests are {"parameters": {"city": ["Bern", "Oslo"]}}, a list for each parameter')
    types = parameters_of(view)
    strange = sorted(columns.keys() - types.keys())
    if strange:
        raise Problem(422, f"view {view.name} has no parameter {strange[0]}; {view.asked.signature()}")
    if len({len(each) for each in columns.values()}) > 1:
        raise Problem(422, "the lists of many requests have as many values each as there are requests")
    lists = dict(view.state.typed.query.lists)
    return {
        name: [_value(types[name], each, is_list=name in lists) for each in values] for name, values in columns.items()
    }


def _value(type_: Type, value: Any, *, is_list: bool) -> Any:
    read = json_reader(type_)
    return [read(each) for each in value] if is_list and isinstance(value, list) else read(value)
