"""Changes of a table's rows by their net weights: what append-only tables, strict=False and counts are judged on."""

from __future__ import annotations

import numpy as np

from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.runtime.catalog import Catalog
from ivme.engine.runtime.view_state import Key
from ivme.errors import DataError


def net_changes(catalog: Catalog, name: str, changed: RowBatch) -> RowBatch:
    """Each changed row once, with the sum of its weights."""
    try:
        columns, weights = catalog.backend.net(changed.codes(), changed.weights)
    except catalog.backend.overflow as error:
        raise DataError(f"a multiplicity in table {name} does not fit 64 bits; nothing was changed") from error
    return RowBatch(catalog.layout(name), weights, None, list(columns))


def grown(catalog: Catalog, name: str, changed: RowBatch) -> RowBatch:
    """The changes as the table takes them: for one that is append-only net weights per row, none below zero."""
    state = catalog.tables[name]
    if not state.table.append_only or not (changed.weights < 0).any():
        return changed
    columns, weights = catalog.backend.net(changed.codes(), changed.weights)
    for number in np.flatnonzero(weights < 0)[:1].tolist():
        row = tuple(d.decode_value(column[number]) for d, column in zip(state.domains, columns, strict=True))
        raise DataError(f"table {name} is append-only: {row!r} cannot be deleted from it; nothing was changed")
    return RowBatch(catalog.layout(name), weights, None, list(columns))


def clipped(catalog: Catalog, name: str, changed: RowBatch) -> RowBatch:
    """The changes with no row taken away more often than it is there: net weights per row, cut at what is."""
    backend, stored = catalog.backend, catalog.tables[name].rows
    net: dict[Key, tuple[int, int]] = {}
    keys = zip(*(column.tolist() for column in changed.codes()), strict=True)
    for i, (key, weight) in enumerate(zip(keys, changed.weights.tolist(), strict=True)):
        first, total = net.get(key, (i, 0))
        net[key] = (first, total + weight)
    cut = [(i, max(total, -backend.get(stored, key))) for key, (i, total) in net.items()]
    cut = [(i, weight) for i, weight in cut if weight]
    if any(weight >= 2**63 for _, weight in cut):
        raise DataError(f"a multiplicity in table {name} does not fit 64 bits; nothing was changed")
    return changed.kept([i for i, _ in cut], np.array([weight for _, weight in cut], dtype=np.int64))
