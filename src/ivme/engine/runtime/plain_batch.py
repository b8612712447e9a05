"""Batches of which only the kernel has to know: no journal, no followers, nothing beside the kernel's triggers.

All triggers of all tables run in one call of the kernel, which is all or nothing. Whatever is out of the ordinary is
left to `Runtime`, which also knows what to say about a row that is refused; then nothing has been changed yet.
"""

from __future__ import annotations

from collections.abc import Mapping

from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.native_backend import NativeBackend
from ivme.engine.runtime.catalog import Catalog


def try_apply_plain(catalog: Catalog, batch: Mapping[str, RowBatch]) -> bool:
    """Applies a batch; False, and nothing has changed, if the kernel is not alone with it or refuses a row.

    The caller holds the lock. ExpressionError where an expression has no value.
    """
    backend = catalog.backend
    if not isinstance(backend, NativeBackend) or catalog.journal is not None or catalog.memory_limit is not None:
        return False
    if catalog.open_reads or catalog.lock.pending is not None or catalog.builds:
        return False
    if not all(map(catalog.is_plain, batch)):
        return False
    runs = [
        (backend.number(trigger), columns, rows.weights)
        for name, rows in batch.items()
        for trigger, columns in catalog.inputs(name).of(rows)
    ]
    try:
        backend.run_all(runs)
    except (backend.broken_check, backend.overflow):
        return False
    return True
