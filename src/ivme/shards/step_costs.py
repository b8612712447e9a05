"""`ivme bench shards`: what a step over shards costs here, and by a model on many hosts.

The constants are measured on two shards in processes of this machine. The model knows what is done once at the driver,
what is done by all shards at the same time, and what the driver does for each shard, one after the other:

    route    the driver hashes the rows that it was given: serial. Rows of DataFrames are routed by Spark's tasks.
    put      the parts go to their shards at once; the driver spends some CPU on each call
    prepare  each shard applies its part and writes the file of the step; the driver spends some CPU on each call
    record   one object is created: serial
    commit   all shards publish; the driver spends some CPU on each call

It has no network: what it says of a hundred hosts is a lower bound by the work that is there, not a measurement.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.shards.checkpoint import Checkpoint
from ivme.shards.coordinator import Coordinator
from ivme.shards.database import ShardedDatabase
from ivme.shards.distribute import packed_by_shard, place_rows, with_weights
from ivme.shards.flight_cluster import FlightCluster
from ivme.shards.processes import ChildProcesses, by_host
from ivme.store.checkpoint_store import FolderStore

_SHARDS = 2
_FEW, _MANY = 1, 50_000
_QUERY = "SELECT r.a, COUNT(*) AS n, SUM(s.c) AS total FROM r JOIN s ON r.a = s.a GROUP BY r.a"


@dataclass(frozen=True, slots=True)
class Linear:
    """Seconds of a phase: what it takes for any number of rows, and for each row."""

    fixed: float
    row: float

    def of(self, rows: float) -> float:
        return self.fixed + self.row * rows


@dataclass(frozen=True, slots=True)
class Constants:
    """What was measured: phases by the rows of one shard, the record, and the driver's CPU for one call of a shard."""

    route: float
    put: Linear
    prepare: Linear
    commit: float
    record: float
    call: float


@dataclass(frozen=True, slots=True)
class StepCost:
    """The seconds of a step by the model."""

    route: float
    put: float
    prepare: float
    record: float
    commit: float
    serial: float
    """What of it is done at the driver, one after the other."""

    @property
    def total(self) -> float:
        return self.route + self.put + self.prepare + self.record + self.commit


def step_cost(known: Constants, shards: int, rows: int, *, copies: float = 1.0, from_tasks: bool = False) -> StepCost:
    """A step of so many rows over so many shards, each on a host of its own.

    `copies` is how many shards get a row of a table for a view (1 where all atoms have a variable). With `from_tasks`
    as many tasks as shards route and put the rows.
    """
    asked = min(shards, max(1, round(rows * copies)))
    each = rows * copies / asked
    calls = asked * known.call
    put = known.put.of(each)
    route = known.route * rows / (shards if from_tasks else 1)
    put = put if from_tasks else max(put, calls)
    prepare, commit = max(known.prepare.of(each), calls), max(known.commit, shards * known.call)
    serial = known.record + calls + shards * known.call + (0.0 if from_tasks else route + calls)
    return StepCost(route, put, prepare, known.record, commit, serial)


# Measuring


@contextmanager
def _database(folder: Path) -> Iterator[ShardedDatabase]:
    checkpoint = Checkpoint.open(FolderStore(folder), _SHARDS)
    with ShardedDatabase(FlightCluster(checkpoint, ChildProcesses(), by_host(_SHARDS, _SHARDS))) as database:
        database.create_table("r", {"a": "int", "b": "int"})
        database.create_table("s", {"a": "int", "c": "int"})
        database.create_view("v", _QUERY)
        yield database


def _rows(count: int, seed: int) -> pa.Table:
    chosen = np.random.default_rng(seed)
    return pa.table({"a": chosen.integers(0, 10_000, count), "b": chosen.integers(0, 10**6, count)})


def _median(work: Callable[[Any], object], given: Iterable[object]) -> float:
    found = []
    for each in given:
        start = time.perf_counter()
        work(each)
        found.append(time.perf_counter() - start)
    return statistics.median(found)


class _Phases:
    """The seconds that the phases of steps took."""

    def __init__(self, database: ShardedDatabase) -> None:
        self.found: dict[str, list[float]] = {"put": [], "prepare": [], "commit": [], "record": []}
        coordinator: Any = database._coordinator
        cluster: Any = database._cluster
        self._watch(cluster, "put", "put")
        self._watch(coordinator, "_prepare", "prepare")
        self._watch(coordinator, "_committed", "commit")
        self._watch(coordinator, "_made", "record")

    def _watch(self, owner: Any, name: str, phase: str) -> None:
        done = getattr(owner, name)

        def timed(*given: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return done(*given, **options)
            finally:
                self.found[phase].append(time.perf_counter() - start)

        setattr(owner, name, timed)

    def medians(self) -> dict[str, float]:
        """Those of all steps since the last call."""
        told = {phase: statistics.median(seconds) for phase, seconds in self.found.items()}
        for seconds in self.found.values():
            seconds.clear()
        return told


def measure(repeat: int = 15) -> tuple[Constants, dict[int, float]]:
    """The constants of this machine, and the seconds of whole steps of few and of many rows."""
    with tempfile.TemporaryDirectory(prefix="ivme-bench-") as folder, _database(Path(folder)) as database:
        database.insert("s", _rows(10_000, 1).rename_columns(["a", "c"]))
        inserted = {count: [_rows(count, seed) for seed in range(repeat + 1)] for count in (_FEW, _MANY)}
        phases, steps, whole = _Phases(database), {}, {}
        for count, given in inserted.items():
            database.insert("r", given[-1])
            phases.medians()
            whole[count] = _median(partial(database.insert, "r"), given[:repeat])
            steps[count] = phases.medians()
        few, many = steps[_FEW], steps[_MANY]
        return (
            Constants(
                _routing(database, inserted[_MANY][0]),
                _line(few["put"], many["put"]),
                _line(few["prepare"], many["prepare"]),
                few["commit"],
                few["record"],
                _call_cpu(database._coordinator),
            ),
            whole,
        )


def _line(few: float, many: float) -> Linear:
    """By the rows of one shard; the many were spread over all."""
    return Linear(few, max(0.0, (many - few) / (_MANY / _SHARDS)))


def _routing(database: ShardedDatabase, rows: pa.Table) -> float:
    """The seconds in which the driver places a row."""
    catalog, table = database._catalog, database.relation("r")
    given = with_weights(rows, np.ones(rows.num_rows, np.int64))
    seconds = _median(lambda _: packed_by_shard(place_rows(catalog, _SHARDS, table, given)), range(5))
    return seconds / int(rows.num_rows)


def _call_cpu(coordinator: Coordinator, calls: int = 200) -> float:
    """The CPU of this process for one question to one shard."""
    start = time.process_time()
    for _ in range(calls // _SHARDS):
        coordinator.ask_all({"op": "status"})
    return (time.process_time() - start) / calls


# Telling


def told(known: Constants, whole: dict[int, float], most: int, sizes: Sequence[int], copies: float) -> Iterator[str]:
    """The constants, the model beside what was measured, and steps over up to so many hosts."""
    yield f"measured here, {_SHARDS} shards in processes of this machine, a join view with sums by group (medians):"
    yield f"  route    {known.route * 1e6:8.2f} µs a row at the driver"
    yield f"  put      {known.put.fixed * 1e3:8.2f} ms, and {known.put.row * 1e6:.2f} µs a row of a shard"
    yield f"  prepare  {known.prepare.fixed * 1e3:8.2f} ms, and {known.prepare.row * 1e6:.2f} µs a row of a shard"
    yield f"  record   {known.record * 1e3:8.2f} ms"
    yield f"  commit   {known.commit * 1e3:8.2f} ms"
    yield f"  call     {known.call * 1e3:8.2f} ms of the driver's CPU for each question to a shard"
    yield ""
    for rows, seconds in whole.items():
        said = step_cost(known, _SHARDS, rows).total
        yield f"a step of {rows:,} rows: {seconds * 1e3:,.1f} ms measured, {said * 1e3:,.1f} ms by the model"
    for from_tasks in (False, True):
        yield ""
        where = "Spark's tasks, one for each host" if from_tasks else "the driver"
        yield f"ms a step by the model, rows from {where} (in brackets what is serial at the driver):"
        yield "  hosts" + "".join(f"{rows:>18,}" for rows in sizes)
        for shards in _numbers(most):
            costs = (step_cost(known, shards, rows, copies=copies, from_tasks=from_tasks) for rows in sizes)
            cells = (f"{cost.total * 1e3:,.1f} ({cost.serial * 1e3:,.1f})" for cost in costs)
            yield f"  {shards:>5}" + "".join(f"{cell:>18}" for cell in cells)
    yield ""
    yield "serial at the driver: routing the rows that it is given, one record, and its part of three calls to each"
    yield "shard that has rows (put, prepare, and the commit to all shards). One step is in flight. The network is"
    yield "not in the model."


def _numbers(most: int) -> list[int]:
    """1, 2, 5, 10 and so on, up to a number, and that.

    >>> _numbers(30)
    [1, 2, 5, 10, 20, 30]
    """
    found = [digit * 10**power for power in range(len(str(most))) for digit in (1, 2, 5)]
    return [*(number for number in found if number < most), most]
