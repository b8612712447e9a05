"""Views that maintain themselves beside the kernel: over a ring, and by a user's own SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ivme.closure.duckdb_executor import DuckDbExecutor
from ivme.closure.ies import make_ies, relation
from ivme.engine.codes.arrow_types import declared_type
from ivme.errors import PlanError
from ivme.ies_view import IesView
from ivme.planning import plan_ring_view
from ivme.query.model import check_head
from ivme.query.one_type import one_type_each
from ivme.query.parse import parse
from ivme.query.types import Type
from ivme.ring_view import RingView, lifting

if TYPE_CHECKING:
    from ivme.definitions import Definitions
    from ivme.rings import Ring


def create_ring_view(
    definitions: Definitions, name: str, query: str, ring: Ring, options: Mapping[str, object]
) -> RingView:
    """Plans and fills a view over a ring."""
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
        explanation, plan = plan_ring_view(parsed, options)
        with definitions.runtime.lock:
            if definitions.are_current(parsed.tables, relations):
                definitions.check_new(name)
                view = RingView(parsed, plan, explanation, ring, definitions.runtime.reader)
                definitions.add_participant(view)
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
