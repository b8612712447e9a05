"""Takes changes again that were set aside: those that can be taken by now leave the quarantine.

A file of such changes is taken as one batch, like any other: planned in the journal, applied in one transaction with
its number, and written to the sinks. What is still refused waits in a file of that batch; the old file goes once the
database has the batch, also after a crash.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from ivme.pipeline.journal import Planned
from ivme.pipeline.model import WEIGHT
from ivme.spark.pipeline.dead_letters import separated
from ivme.spark.pipeline.redefinition import Definitions
from ivme.spark.pipeline.source import AGAIN, TableChanges, table_of

if TYPE_CHECKING:
    from ivme.spark.pipeline.driver import Driver


@dataclass(frozen=True, slots=True)
class Redelivered:
    """What became of the changes of a table that were set aside: how many rows were taken, and how many still wait."""

    table: str
    taken: int
    waiting: int


def redeliver(driver: Driver, table: str) -> Redelivered:
    """Takes again all changes of a table that the database refused, in the order of their batches."""
    taken = waiting = 0
    with driver.lock:
        for path in driver.quarantine.letters(table, driver.reached):
            start, changes = time.perf_counter(), _changes(driver, table, path)
            good, letters = separated(driver.database, driver.pipeline.table(table).table, changes)
            taken += good.size
            waiting += letters.num_rows
            if not good.size:
                continue
            planned = Planned(driver.next_number(), AGAIN + table, {"letters": path.name})
            driver.journal.plan(planned)
            if letters.num_rows:
                driver.quarantine.keep_letters(table, planned.number, letters)
            driver.apply(planned, good, start, 0)
            path.unlink()
    return Redelivered(table, taken, waiting)


def finish_redelivery(driver: Driver, planned: Planned, old: Definitions) -> None:
    """Takes up such a batch after a crash: it is forgotten, or its sinks get it and the old file goes."""
    table = table_of(planned.source)
    path = driver.quarantine.folder / table / planned.plan["letters"]
    left = driver.quarantine.letters_of(table, planned.number)
    if planned.number > driver.reached:
        left.unlink(missing_ok=True)
        driver.journal.drop(planned)
        return
    if path.exists():
        driver.outlets.write_missing(planned.number, table, lambda: _taken(driver, planned, path), old)
        path.unlink()


def _taken(driver: Driver, planned: Planned, path: Path) -> TableChanges:
    table = table_of(planned.source)
    return driver.without_letters_of(Planned(planned.number, table, {}), _changes(driver, table, path))


def _changes(driver: Driver, table: str, path: Path) -> TableChanges:
    found = pq.read_table(path)
    rows = found.select(list(driver.pipeline.table(table).table.column_names))
    return TableChanges(rows, found.column(WEIGHT).to_numpy().astype(np.int64))
