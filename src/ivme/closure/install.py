"""Installs closures in a runtime: as views of their own, and as relations that other views read."""

from __future__ import annotations

from dataclasses import replace

from ivme.closure.engine import native_engine, pure_engine
from ivme.closure.group import ClosureGroup
from ivme.compile import Request, compile_view
from ivme.engine.native_backend import NativeBackend
from ivme.engine.runtime.runtime import Runtime
from ivme.engine.runtime.view_state import ViewState
from ivme.plan.explain.explanation import Explanation
from ivme.query.closures import closure_query
from ivme.query.model import Query, Table
from ivme.query.typed import TypedQuery


def add_closure(runtime: Runtime, ready: TypedQuery, explanation: Explanation, table: Table, graph: str) -> ViewState:
    """A view that is a closure and nothing else, filled from its edges."""
    edges = runtime.catalog.relation(ready.query.atoms[0].relation)
    engine_of = native_engine if isinstance(runtime.backend, NativeBackend) else pure_engine
    group = ClosureGroup(ready, edges, graph, engine_of, runtime.catalog)
    return runtime.installation.add_external(ready, explanation, table, group, edges.name)


def add_closures(runtime: Runtime, query: Query) -> None:
    """Adds the closures that a query reads as relations, those that are not there yet."""
    for table in query.tables:
        if table.closure_of is None or table.name in runtime.catalog.views:
            continue
        edges = runtime.catalog.relation(table.closure_of.relation)
        graph = table.closure_of.graph
        view = compile_view(Request(closure_query(table, edges), (edges,), {"graph": graph}))
        add_closure(runtime, view.typed, view.explanation, replace(table, closure_of=None), graph)


def drop_closures(runtime: Runtime, names: list[str]) -> None:
    """Forgets closures that no view reads any more."""
    for name in names:
        read = {relation for state in runtime.catalog.views.values() for relation in state.relations}
        if name in runtime.catalog.views and name not in read:
            runtime.installation.drop_view(name)
