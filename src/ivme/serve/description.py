"""What a server says about itself: its tables and views, and an OpenAPI document with an endpoint for each view."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ivme.database import Database
from ivme.definitions.lineage import reads
from ivme.engine.codes.arrow_types import declared_type
from ivme.plan.explain.verdict import verdict
from ivme.serve.asking import ARROW, CSV, JSON, NDJSON, PARQUET, parameters_of
from ivme.serve.grants import Grant
from ivme.serve.values import dumps, nullable, schema_of
from ivme.statements.definition import view_text
from ivme.view import View


def describe_view(database: Database, view: View) -> dict[str, Any]:
    """A view's columns and parameters with their types, its guarantee, its text, and the relations that it reads."""
    found = view.explain()
    return {
        "name": view.name,
        "columns": {column.name: str(column.type) for column in view.state.table.columns},
        "parameters": {name: str(type_) for name, type_ in parameters_of(view).items()},
        **({"lists": list(lists)} if (lists := dict(view.state.typed.query.lists)) else {}),
        **({"defaults": view.asked.defaults} if view.asked.defaults else {}),
        "class": found.query_class,
        "strategy": found.strategy,
        "update": str(found.update),
        "delay": str(found.delay),
        "cost": verdict(found),
        "query": view_text(database, view.name),
        "reads": reads(database.definitions, view.name),
    }


def describe_broken(database: Database, grant: Grant) -> list[dict[str, Any]]:
    """The views that could not be built when the directory was opened, with the reasons."""
    broken = database.broken_views.items()
    return [{"name": name, "broken": reason} for name, reason in broken if grant.sees(name)]


def describe_table(database: Database, name: str) -> dict[str, Any]:
    state = database.definitions.runtime.catalog.tables[name]
    return {
        "name": name,
        "columns": {column.name: str(declared_type(state.table, column)) for column in state.table.columns},
        "primary_key": state.table.primary_key,
        "append_only": state.table.append_only,
        "static": state.table.static,
        "keep_rows": state.table.keep_rows,
        "references": {", ".join(each.columns): each.table for each in state.table.references},
        "unique": state.table.unique,
        "not_null": state.table.not_null,
        "defaults": {name: str(default) for name, default in state.table.defaults},
        "rows": database.definitions.runtime.backend.size(state.rows),
    }


def listed_tables(database: Database, grant: Grant) -> list[str]:
    """The tables that a token sees, without those of ivme itself."""
    return [name for name in database.tables if grant.sees(name)]


def stats(
    database: Database, subscribers: int, grant: Grant, changed: Mapping[str, int], *, maps: bool = True
) -> dict[str, Any]:
    """Sizes of everything that a token sees, and how many rows of tables have `changed`.

    Without `maps`, views have no sizes, which takes no time to speak of.
    """
    with database.definitions.runtime.lock:
        seen = [name for name in database.definitions.map_views if grant.sees(name)]
        return {
            "tables": [
                {**describe_table(database, name), "changed_rows": changed.get(name, 0)}
                for name in listed_tables(database, grant)
            ],
            "views": [
                _with_maps(database, view) if maps else describe_view(database, view)
                for view in map(database.definitions.map_view, seen)
            ],
            "broken_views": describe_broken(database, grant),
            "sources": database.definitions.runtime.catalog.positions.all() if grant.allows("read", "*") else {},
            "entries": database.entries(),
            "operations": database.definitions.runtime.backend.operations,
            **database.definitions.runtime.catalog.memory(),
            "subscribers": subscribers,
            "log_bytes": database.definitions.log_bytes,
        }


def _with_maps(database: Database, view: View) -> dict[str, Any]:
    """A closure is maintained by another engine, and has no maps."""
    return {**describe_view(database, view), "maps": dict(view.stats().get("maps", {}))}


_REFUSED = {
    "400": "not readable",
    "401": "the token is missing or wrong",
    "404": "no such view or table",
    "406": "no such form of an answer",
    "410": "the cursor has expired",
    "413": "too large",
    "422": "not applicable; the message says why, and nothing was changed",
    "503": "the disk is full, or broken, or the view is",
    "504": "it took too long",
}


def refusals() -> dict[str, Any]:
    """The responses that any endpoint may give in place of its own."""
    content = {JSON: {"schema": {"type": "object", "properties": {"error": {"type": "string"}}}}}
    return {status: {"description": text, "content": content} for status, text in _REFUSED.items()}


def view_paths(database: Database, grant: Grant) -> dict[str, Any]:
    """The endpoints of all views that a token may read: their parameters with types, and their rows."""
    paths: dict[str, Any] = {}
    for name in (each for each in database.definitions.map_views if grant.allows("read", each)):
        view, path = database.definitions.map_view(name), quote(name, safe="", errors="backslashreplace")
        paths[f"/views/{path}"] = {"get": _rows_operation(view)}
        query = view.state.typed.query
        if not (query.input and query.aggregates):
            paths[f"/views/{path}/changes"] = {"get": _changes_operation(view)}
    return paths


def _rows_operation(view: View) -> dict[str, Any]:
    found, query = view.explain(), view.state.typed.written.text or view.state.typed.query
    columns = [schema_of(column.type) for column in view.state.table.columns if column.type is not None]
    row = {"type": "array", "prefixItems": nullable(columns), "minItems": len(columns), "maxItems": len(columns)}
    page = {
        "type": "object",
        "required": ["columns", "rows", "next"],
        "properties": {
            "columns": {"type": "array", "items": {"type": "string"}},
            "rows": {"type": "array", "items": row},
            "next": {"type": ["string", "null"]},
        },
    }
    forms = {JSON: {"schema": page}, NDJSON: {}, CSV: {}, ARROW: {}, PARQUET: {}}
    texts = [_parameter(name, {"type": "string"}) for name in ("_cursor", "_order_by", "_after")]
    paging = [_parameter("_limit", {"type": "integer", "minimum": 1}), *texts]
    return {
        "summary": f"Rows of {view.name}",
        "description": f"{query}. {found.query_class}: update {found.update}, delay {found.delay}.",
        "operationId": f"rows of {view.name}",
        "tags": ["views"],
        "parameters": [*_parameters(view, required=True), *paging],
        "responses": {"200": {"description": "the rows", "content": forms}, **refusals()},
    }


def _changes_operation(view: View) -> dict[str, Any]:
    limit = _parameter("_limit", {"type": "integer", "minimum": 1})
    following = [_parameter("_rows", {"type": "boolean"}), _parameter("_after", {"type": "string"}), limit]
    return {
        "summary": f"Changes of {view.name}, as server-sent events",
        "operationId": f"changes of {view.name}",
        "tags": ["views"],
        "parameters": [*_parameters(view, required=False), *following],
        "responses": {"200": {"description": "events", "content": {"text/event-stream": {}}}, **refusals()},
    }


def _parameters(view: View, *, required: bool) -> list[dict[str, Any]]:
    lists, defaults = dict(view.state.typed.query.lists), view.asked.defaults
    made = []
    for name, type_ in parameters_of(view).items():
        schema = {"type": "array", "items": schema_of(type_)} if name in lists else schema_of(type_)
        if name in defaults:
            schema = {**schema, "default": json.loads(dumps(defaults[name]))}
        made.append(_parameter(name, schema, required=required and name not in defaults))
    return made


def _parameter(name: str, schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": required, "schema": schema}
