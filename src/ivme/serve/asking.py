"""What a request asks of a view: values for its parameters, a page, a form of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from ivme.database import Database
from ivme.engine.codes.value_check import checked
from ivme.errors import IvmeError
from ivme.query.types import Type
from ivme.serve.problem import Problem, problem_of
from ivme.serve.values import json_reader, read_json, read_text
from ivme.view import View

JSON, NDJSON, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"
CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
"""The forms of an answer."""

_MOST_PAIRS = 200


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for rows, or for changes: `rows` says whether the rows come first, `after` what is known already.

    With `order_by`, `after` is the last row of the page before; an empty one is for the view's own order.
    """

    parameters: dict[str, Any]
    limit: int | None = None
    cursor: str | None = None
    rows: bool = True
    after: str | None = None
    order_by: tuple[str, ...] | None = None
    offset: int = 0


def parameters_of(view: View) -> dict[str, Type]:
    """The types of a view's parameters."""
    query, types = view.state.typed.query, view.state.typed.types
    return {name: types[variable] for name, variable in zip(query.parameters, query.input, strict=True)}


def find_view(database: Database, name: str) -> View:
    try:
        return database.definitions.map_view(name)
    except IvmeError as error:
        raise problem_of(error) from None


def pairs_of(query_string: bytes) -> list[tuple[str, str]]:
    """The names and values of a query string."""
    if not query_string:
        return []
    try:
        return parse_qsl(
            query_string.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_PAIRS, errors="strict"
        )
    except ValueError:
        raise Problem(400, "the query is not a list of name=value in UTF-8, with at most 200 of them") from None


PAGING = ("_limit", "_cursor", "_order_by", "_after", "_offset")
FOLLOWING = ("_rows", "_after", "_limit")
"""Names of queries that are not parameters of views: for rows, and for changes."""


def read_asked(view: View, pairs: list[tuple[str, str]], known: tuple[str, ...] = PAGING) -> Asked:
    """What the query of a request asks of a view; one for changes may leave all parameters out."""
    types, lists = parameters_of(view), dict(view.state.typed.query.lists)
    parameters: dict[str, Any] = {}
    special: dict[str, str] = {}
    for name, text in pairs:
        if name in lists:
            parameters.setdefault(name, []).append(read_text(text, types[name], f"parameter {name}"))
            continue
        if name in parameters or name in special:
            raise Problem(422, f"parameter {name} is given twice")
        if name in types:
            parameters[name] = read_text(text, types[name], f"parameter {name}")
        elif name in known:
            special[name] = text
        else:
            meant = f"; did you mean _{name}?" if f"_{name}" in known else ""
            raise Problem(422, f"view {view.name} has no parameter {name}; {view.asked.signature()}{meant}")
    if known != FOLLOWING or parameters:
        parameters = {**view.asked.defaults, **parameters}
    missing = [name for name in types if name not in parameters]
    if missing and "_cursor" not in special and (known != FOLLOWING or parameters):
        raise Problem(422, f"view {view.name} needs a value for {', '.join(missing)}; {view.asked.signature()}")
    rows = read_text(special.get("_rows", "true"), Type("bool"), "parameter _rows")
    order_by = _order_by(special.get("_order_by"))
    behind = [name for name in ("_after", "_offset") if name in special]
    if known == PAGING and behind and order_by is None:
        raise Problem(422, f"parameter {behind[0]} is for pages in an order; give _order_by, or take _cursor")
    if order_by is not None and "_cursor" in special:
        raise Problem(422, "pages in an order continue after a row: give _after in place of _cursor")
    limit, cursor = _number(special, "_limit", 1), special.get("_cursor")
    return Asked(parameters, limit, cursor, rows, special.get("_after"), order_by, _number(special, "_offset", 0) or 0)


def _order_by(text: str | None) -> tuple[str, ...] | None:
    """Names of columns: separated by commas, or as a JSON array where a name has one."""
    if text is None or not text.startswith("["):
        return None if text is None else tuple(name for name in text.split(",") if name)
    found = read_json(text.encode())
    if not all(isinstance(name, str) for name in found):
        raise Problem(422, "parameter _order_by has names of columns, each with a minus sign in front to descend")
    return tuple(found)


def row_of(view: View, text: str, name: str = "_after") -> tuple[Any, ...]:
    """The row of a view that a JSON array is."""
    found = read_json(text.encode())
    types = [type_ for column in view.state.table.columns if (type_ := column.type) is not None]
    if not isinstance(found, list) or len(found) != len(types):
        raise Problem(422, f"parameter {name} is a row of view {view.name}: a JSON array of {len(types)} values")
    read = (json_reader(type_)(value) for type_, value in zip(types, found, strict=True))
    try:
        return tuple(None if value is None else checked(value, t, name) for t, value in zip(types, read, strict=True))
    except IvmeError as error:
        raise problem_of(error) from None


def _number(special: dict[str, str], name: str, least: int) -> int | None:
    if name not in special:
        return None
    found: int = read_text(special[name], Type("int"), f"parameter {name}")
    if found < least:
        raise Problem(422, f"parameter {name} is a number of rows, at least {least}; it is {found}")
    return found


def chosen_form(accept: str) -> str:
    """The form of the answer that a header `Accept` asks for; JSON if it takes anything.

    >>> chosen_form("text/html, application/x-ndjson;q=0.9"), chosen_form("*/*")
    ('application/x-ndjson', 'application/json')
    """
    wanted = [part.split(";")[0].strip().lower() for part in accept.split(",")]
    for kind in wanted:
        if kind in (JSON, NDJSON, ARROW, CSV, PARQUET):
            return kind
        if kind == "application/ndjson":
            return NDJSON
        if kind in ("*/*", "application/*", ""):
            return JSON
    raise Problem(406, f"the answer can be {JSON}, {NDJSON}, {CSV}, {ARROW} or {PARQUET}; the request accepts {accept}")
