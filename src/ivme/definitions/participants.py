"""Views that maintain themselves beside the kernel: over a ring, and by a user's own SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ivme.algebra.covariance import Covariance
from ivme.closure.duckdb_executor import DuckDbExecutor
from ivme.closure.ies import make_ies, relation
from ivme.compile import Request, compile_view
from ivme.definitions.installing import install_view
from ivme.engine.codes.arrow_types import declared_type
from ivme.errors import PlanError
from ivme.planning import plan_ring_view
from ivme.query.inference import variable_types
from ivme.query.model import Query, Table, check_head
from ivme.query.one_type import one_type_each
from ivme.query.parse import parse
from ivme.query.types import Type
from ivme.views.covariance_view import CovarianceView, in_sums
from ivme.views.ies_view import IesView
from ivme.views.ring_view import RingView, lifting

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions
    from ivme.rings import Ring


def create_ring_view(
    definitions: Definitions, name: str, query: str, ring: Ring, options: Mapping[str, object]
) -> RingView | CovarianceView:
    """Plans and fills a view over a ring: of covariances in the kernel, as other views, of others in plain Python."""
    definitions.check_new(name)
    while True:
        with definitions.runtime.lock:
            relations = definitions.relations()
        with definitions.naming_broken_views():
            parsed = lifting(replace(parse(query, relations), name=name), ring)
        check_head(parsed)
        if parsed.has_closures:
            raise PlanError(f"ring view {name} cannot read a closure itself; make the closure a view and read that")
        parsed = one_type_each(parsed)
        if isinstance(ring, Covariance) and type(ring) is Covariance and _is_numeric(parsed, ring):
            made = _covariance_view(definitions, parsed, ring, options, relations)
            if made is not None:
                return made
            continue
        explanation, plan = plan_ring_view(parsed, options)
        with definitions.runtime.lock:
            if definitions.are_current(parsed.tables, relations):
                definitions.check_new(name)
                view = RingView(parsed, plan, explanation, ring, definitions.runtime.reader)
                definitions.add_participant(view)
                return view


def _is_numeric(query: Query, ring: Ring) -> bool:
    types = variable_types(query)
    return all(types[variable].kind in ("int", "float", "decimal") for variable in ring.variables)


def _covariance_view(
    definitions: Definitions,
    query: Query,
    ring: Covariance,
    options: Mapping[str, object],
    relations: tuple[Table, ...],
) -> CovarianceView | None:
    """A view of the kernel's; None if tables changed while it was planned."""
    runtime, summed = definitions.runtime, in_sums(query, ring)
    with runtime.lock:
        installed = runtime.installation.installed()
    planned = compile_view(Request(summed, relations, options, query.name, installed))
    with runtime.lock:
        if not definitions.are_current(query.tables, relations):
            return None
        definitions.check_new(query.name)
        with definitions.change():
            state = install_view(runtime, planned).state
            view = CovarianceView(runtime, state, replace(summed, head=query.head), ring)
            definitions.views[query.name] = view
    return view


def create_ies(
    definitions: Definitions,
    name: str,
    inputs: str | Iterable[str],
    answer: Mapping[str, str | Type],
    auxiliary: Mapping[str, Mapping[str, str | Type]],
    on_insert: str | Mapping[str, str],
    on_delete: str | Mapping[str, str],
    on_start: str,
) -> IesView:
    """Fills a view that a user's own SQL maintains."""
    definitions.check_new(name)
    with definitions.runtime.lock:
        tables = [definitions.table(table) for table in ([inputs] if isinstance(inputs, str) else inputs)]
        schemas = {t.name: {c.name: declared_type(t, c) for c in t.columns} for t in tables}
        ies = make_ies(name, schemas, relation(name, answer), auxiliary, on_insert, on_delete, on_start=on_start)
        view = IesView(ies, DuckDbExecutor, definitions.runtime.reader)
        definitions.add_participant(view)
    return view
