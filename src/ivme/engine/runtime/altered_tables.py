"""Tables with rows that are given other columns, or another name: what is stored of them is stored again, in O(N)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ivme.engine.codes.arrow_types import declared_type
from ivme.engine.ingest.feed import Feed
from ivme.engine.runtime.installation import Installation
from ivme.engine.runtime.view_state import TableState
from ivme.query.model import Table
from ivme.query.table import with_renamed_table

_UNALTERED = "it cannot be altered after its first rows: drop it and its views, and create them again"


def change_columns(
    installation: Installation, table: Table, places: Sequence[int | None], default: object = None
) -> None:
    """Gives a table other columns: each of the old one at a place, or where there is none one of a constant."""
    with installation.catalog_change():
        catalog = installation.catalog
        catalog.check_kept(table.name, _UNALTERED)
        backend, state = catalog.backend, catalog.tables[table.name]
        domains = [catalog.domains.domain(declared_type(table, column)) for column in table.columns]
        old, weights = backend.scan(state.rows, distinct=False)
        columns = [
            np.full(len(weights), domain.encode_value(default)) if place is None else old[place]
            for place, domain in zip(places, domains, strict=True)
        ]
        backend.drop_table(state.rows)
        changed = TableState(table, domains, state.rows, Feed(()))
        installation.set_checks(changed, ring=state.ring)
        catalog.tables[table.name] = changed
        backend.run(state.rows, {table.name: (columns, weights)})


def rename_table(installation: Installation, name: str, to: str) -> None:
    """Gives a table another name, in the place that it has among the tables."""
    with installation.catalog_change():
        installation.catalog.check_kept(name, _UNALTERED)
        tables, backend = installation.catalog.tables, installation.catalog.backend
        for each in tuple(tables):
            state = tables.pop(each)
            state.table = with_renamed_table(state.table, name, to)
            tables[state.table.name] = state
        state = tables[to]
        columns, weights = backend.scan(state.rows, distinct=False)
        backend.drop_table(state.rows)
        moved = TableState(state.table, state.domains, f"table {to}", Feed(()))
        installation.set_checks(moved, ring=state.ring)
        tables[to] = moved
        backend.run(moved.rows, {to: (columns, weights)})
