"""The step at which all tasks of one query read a view.

Spark keeps what a data source planned for as long as a DataFrame or a temporary view lives, so that a step chosen then
would be stale after the next change. The tasks choose it themselves when they run: the first one of a stage creates an
object of the checkpoint with the present step, and the others find it.
"""

from __future__ import annotations

import time

from ivme.shards.present import Present

_FORGOTTEN_AFTER = 3600.0


def agreed(present: Present, reader: str) -> Present:
    """The database at the step of the query that this task belongs to; `reader` tells DataFrames apart."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return present
    name = f"reads/{reader}-{context.stageId()}"
    store = present.checkpoint.store
    found = store.read(name)
    if found is None:
        if store.create(name, f"{present.step} {time.time()}".encode()):
            _forget_old(present)
            return present
        found = store.read(name)
    assert found is not None, "it is forgotten after an hour"
    return present.at(int(found.to_pybytes().split()[0]))


def _forget_old(present: Present) -> None:
    """Removes the objects of queries that ended long ago."""
    store, before = present.checkpoint.store, time.time() - _FORGOTTEN_AFTER
    for name in store.list("reads"):
        found = store.read(f"reads/{name}")
        if found is not None and float(found.to_pybytes().split()[1]) < before:
            store.delete(f"reads/{name}")
