"""Everything that change data does to a pipeline at once, with crashes: every table and sink is what it must be."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.pipeline import read_pipeline
from ivme.pipeline.journal import RunJournal
from ivme.pipeline.quarantine import Quarantine
from ivme.pipeline.taken import TakenBatches
from ivme.shards.state import ShardedState
from ivme.spark.pipeline.delta_merge import DeltaMergeWriter
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.sink import DeltaWriter, ParquetChanges
from ivme.spark.pipeline.sinks import Sinks
from tests.sharded_databases import local_database
from tests.spark.cdc_torture import Torture
from tests.test_docs import ROOT

_PLACES: tuple[tuple[type, str], ...] = (
    (RunJournal, "plan"),
    (TakenBatches, "save"),
    (Quarantine, "keep_letters"),
    (Sinks, "write"),
    (DeltaMergeWriter, "write"),
    (ParquetChanges, "write"),
    (DeltaWriter, "write"),
    (RunJournal, "wrote"),
)


class _CrashError(BaseException):
    """Stands for the end of the process: nobody catches it."""


def _take_all(spark: Any, file: Path) -> None:
    driver = Driver(spark, read_pipeline(file))
    try:
        worked = True
        while worked:  # tables take turns, as in a run
            worked = bool(sum(driver.step(table) for table in driver.sources))
        driver.outlets.flush(driver.reached)
    finally:
        driver.close()


def crash_once(spark: Any, file: Path, chance: random.Random) -> bool:
    """Runs the pipeline until it crashes at a random call, before it or after it; False if it ended before that."""
    kind, name = chance.choice(_PLACES)
    original, calls, after = getattr(kind, name), [chance.randrange(3)], chance.random() < 0.5

    def crash(*given: Any, **named: Any) -> Any:
        calls[0] -= 1
        if calls[0] >= 0:
            return original(*given, **named)
        if after:
            original(*given, **named)
        raise _CrashError

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kind, name, crash)
        try:
            _take_all(spark, file)
        except _CrashError:
            return True
    return False


def check_torture(torture: Torture) -> None:
    torture.check_sinks()
    pipeline = read_pipeline(torture.file)
    assert torture.bad == Quarantine(pipeline.state / "quarantine").waiting()
    if pipeline.engine is not None:
        torture.check_tables(ShardedState(local_database(pipeline.checkpoint, None), (), "pipeline"))
        return
    with Database(pipeline.state / "database") as database:
        torture.check_tables(database)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 8))])
def test_crashes_among_changes_of_every_kind_lose_and_double_nothing(spark: Any, tmp_path: Path, seed: int) -> None:
    torture = Torture(tmp_path, events=300 if seed == 1 else 900, per_file=60, seed=seed)
    chance = random.Random(seed)
    crashes = sum(crash_once(spark, torture.file, chance) for _ in range(4 if seed == 1 else 8))
    assert crashes >= 3
    _take_all(spark, torture.file)
    check_torture(torture)


@pytest.mark.long
def test_a_million_changes_and_twenty_kills_lose_and_double_nothing(tmp_path: Path, archives: Path) -> None:
    events = int(os.environ.get("IVME_TORTURE_EVENTS", "1000000"))
    torture = Torture(tmp_path, events=events, per_file=max(events // 100, 100), seed=11)
    chance, kills, enough = random.Random(5), 0, int(os.environ.get("IVME_TORTURE_KILLS", "20"))
    opened: list[str] = []
    life = 6 + events / 40_000  # so that kills come all along the way, not only at its start
    while True:
        with (tmp_path / "torture.log").open("a") as log:
            command = [sys.executable, "-m", "tests.spark.cdc_torture", str(torture.file), str(archives)]
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True, cwd=ROOT
            )
        assert process.stdout is not None
        if kills < enough:
            opened.append(process.stdout.readline().strip())  # it is open, at a batch
            time.sleep(chance.random() * life)
            os.killpg(process.pid, signal.SIGKILL)
            kills += 1
        said = process.stdout.read()
        process.wait()
        process.stdout.close()
        if "done" in said and kills >= enough:
            break
        assert process.returncode in (0, -signal.SIGKILL), (tmp_path / "torture.log").read_text()[-3000:]
    print("killed after", ", ".join(opened), "and done:", said.strip())
    check_torture(torture)


@pytest.mark.long
def test_rows_of_a_batch_that_was_never_applied_wait_once(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of a batch that crashed is another table's after the restart."""
    torture = Torture(tmp_path, events=60, per_file=10, seed=3)

    def crash(*_: Any) -> None:
        raise _CrashError

    driver = Driver(spark, read_pipeline(torture.file))
    with monkeypatch.context() as patched:
        patched.setattr(TakenBatches, "save", crash)
        with pytest.raises(_CrashError):
            driver.step("orders")
    driver.close()
    _take_all(spark, torture.file)
    check_torture(torture)
