"""A process that writes is killed at any time, again and again: nothing that it committed is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from ivme.database import Database
from tests.durability import load
from tests.durability.directories import bag

ROOT = Path(__file__).parent.parent.parent
KILLS = int(os.environ.get("IVME_KILLS", "60"))


def killed(directory: Path, seed: int, durability: str, steps: int, pause: float) -> int:
    """Runs the load, kills it a moment after some steps, and returns the last that it said it had committed."""
    command = [sys.executable, "-m", "tests.durability.load", str(directory), str(seed), durability]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
        lines = [process.stdout.readline() for _ in range(steps)]
        time.sleep(pause)
        process.kill()
        lines += process.stdout.read().splitlines(keepends=True)
        assert -signal.SIGKILL == process.wait()
    return max([0, *(int(line) for line in lines if line.endswith("\n"))])


def check(directory: Path, seed: int, committed: int, known: tuple[int, load.Bags]) -> tuple[int, load.Bags]:
    """The directory holds all steps up to some step, at least the last that was committed, and no part of another."""
    with Database(directory) as db:
        reached = db.position("load") or 0
        assert max(committed, known[0]) <= reached <= max(committed, known[0]) + 1
        step, bags = known
        for later in range(step + 1, reached + 1):
            load.apply(bags, load.changes(seed, later, bags))
        assert bags == {table: bag(db, table) for table in ("R", "S")}
        assert bag(db, "P") in ({(k,): 1 for k in range(1, reached + more)} for more in (1, 2))
        for name in db.views:
            db.view(name).verify()
        return reached, bags


@pytest.mark.parametrize(
    ("kills", "durability"),
    [
        (1, "sync"),
        pytest.param(3, "sync", marks=pytest.mark.long),
        pytest.param(1, "async", marks=pytest.mark.long),
        pytest.param(KILLS, "sync", marks=pytest.mark.long),
        pytest.param(KILLS // 4, "async", marks=pytest.mark.long),
    ],
)
def test_nothing_that_was_committed_is_lost(tmp_path: Path, kills: int, durability: str) -> None:
    choose = random.Random(kills)
    known: tuple[int, load.Bags] = (0, {"R": Counter(), "S": Counter()})
    for _ in range(kills):
        steps, pause = choose.choice([0, 1, choose.randrange(40)]), choose.uniform(0.0, 0.02)
        committed = killed(tmp_path, kills, durability, steps, pause)
        assert steps == 0 or committed >= known[0] + steps
        known = check(tmp_path, kills, committed, known)
