"""What would be done for a query over the tables and views that are there, and bounds as curves over ε."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from ivme.compile import CompiledView
from ivme.database import Database
from ivme.definitions.known_names import check_sources
from ivme.errors import IvmeError
from ivme.plan.assemble.tuning import CHOICES
from ivme.plan.explain.explanation import Explanation
from ivme.plan.explain.verdict import verdict
from ivme.plan.ir.exponent import Bound
from ivme.query.names import OWN_TABLES
from ivme.serve.grants import Grant
from ivme.serve.problem import Problem, problem_of
from ivme.serve.values import dumps, read_json
from ivme.view import View

MOST_CHARACTERS = 10_000
"""The longest query that is explained: planning takes time that grows with the query."""

_BOUNDS = ("preprocessing", "update", "delay", "space")


def explained(explanation: Explanation) -> dict[str, Any]:
    """An explanation as plain values, with its cost in a sentence and its bounds as curves."""
    return {**explanation.to_dict(), "cost": verdict(explanation), "tradeoff": tradeoff(explanation)}


_bodies: WeakKeyDictionary[View, bytes] = WeakKeyDictionary()


def explanation_body(view: View) -> bytes:
    """The explanation of a view that is there, as JSON: made once, since it never changes."""
    body = _bodies.get(view)
    if body is None:
        body = _bodies[view] = dumps(explained(view.explain())) + b"\n"
    return body


def tradeoff(explanation: Explanation) -> dict[str, Any] | None:
    """The exponents of N at each ε, for a view whose bounds depend on it; they are linear in between."""
    bounds: dict[str, Bound | None] = {name: getattr(explanation, name) for name in _BOUNDS}
    known = {name: bound for name, bound in bounds.items() if bound is not None}
    if not any(bound.depends_on_epsilon for bound in known.values()):
        return None
    curves = {name: [float(bound.exponent.at(epsilon)) for epsilon in CHOICES] for name, bound in known.items()}
    return {"epsilon": [float(epsilon) for epsilon in CHOICES], **curves}


def explain_request(database: Database, body: bytes, grant: Grant) -> dict[str, Any]:
    """The explanation that a request `{"query": ..., "options": {...}}` asks for."""
    given = read_json(body)
    if not isinstance(given, dict) or not {"query"} <= given.keys() <= {"query", "options"}:
        raise Problem(422, 'a query to explain is {"query": ..., "options": {...}}, the options being optional')
    query, options = given["query"], given.get("options", {})
    if not isinstance(query, str) or not isinstance(options, dict):
        raise Problem(422, "the query is a string, and its options an object")
    if len(query) > MOST_CHARACTERS:
        raise Problem(413, f"the query has more than {MOST_CHARACTERS} characters")
    try:
        compiled = compiled_for(database, query, options, grant)
        asked = compiled.typed.query
        types = {name: str(compiled.typed.types[v]) for name, v in zip(asked.parameters, asked.input, strict=True)}
        return {**explained(compiled.explanation), "parameters": types}
    except IvmeError as error:
        problem = problem_of(error)
        raise Problem(422 if problem.status == 404 else problem.status, problem.message) from None


def compiled_for(database: Database, query: str, options: Mapping[str, Any], grant: Grant) -> CompiledView:
    """The view of this database that a query would be; the same errors as if it were made."""
    compiled = database.definitions.compiled(query, options, OWN_TABLES)
    check_sources(database.definitions.catalog, compiled.sources)
    for each in (each for each in compiled.sources if each.name not in OWN_TABLES):
        grant.require("read", each.name if each.closure_of is None else each.closure_of.relation)
    return compiled
