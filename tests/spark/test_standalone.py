"""Shards in long-running tasks on a standalone master with two workers: killed at random, nothing is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import ivme
from tests.spark.standalone_driver import VIEW, apply
from tests.test_docs import ROOT

KILLS = int(os.environ.get("IVME_SHARD_KILLS", "4"))


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("standalone")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    command = [str(ROOT / "scripts" / "standalone")]
    started = subprocess.run([*command, "start", str(folder)], capture_output=True, text=True, env=environment)
    assert 0 == started.returncode, started.stderr
    yield started.stdout.strip()
    subprocess.run([*command, "stop", str(folder)], check=True, env=environment)
    time.sleep(0.5)
    assert not any(is_alive(int(process)) for process in (folder / "pids").read_text().split())


def start(master: str, folder: Path, batches: int, kills: int, seed: int) -> subprocess.Popen[str]:
    given = [master, str(folder / "checkpoint"), str(batches), str(kills), str(seed)]
    command = [sys.executable, "-m", "tests.spark.standalone_driver", *given]
    with (folder / "log").open("a") as log:
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True, cwd=ROOT
        )


def finished(process: subprocess.Popen[str], folder: Path) -> dict[str, str]:
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    process.wait()
    process.stdout.close()
    assert 0 == process.returncode, (folder / "log").read_text()[-3000:]
    return dict(line.split(" ", 1) for line in lines)


def check(found: dict[str, str]) -> None:
    """The rows are those of the embedded database, nothing is held twice, and no process has most of it."""
    number, rows = json.loads(found["rows"])
    with ivme.Database() as expected:
        expected.create_table("R", {"a": "int", "b": "int"})
        expected.create_table("S", {"b": "int", "c": "int"})
        view = expected.create_view("v", VIEW)
        for each in range(number):
            apply(expected, each)
        assert [list(row) for row in sorted(view)] == rows
    assert "true" == found["read"], "Spark's tasks read the same"
    assert [] == json.loads(found["twice"])
    entries = json.loads(found["entries"])
    assert 2 == len(entries)
    assert max(entries) < 0.7 * sum(entries)


@pytest.mark.long
@pytest.mark.parametrize(("batches", "kills", "seed"), [(6, 1, 4), (40, KILLS, 1)], ids=["once", "often"])
def test_killed_workers_and_executors_lose_and_double_nothing(
    batches: int, kills: int, seed: int, master: str, tmp_path: Path
) -> None:
    """Once, it is a worker of Python."""
    found = finished(start(master, tmp_path, batches, kills, seed), tmp_path)
    assert kills == len(json.loads(found["kills"]))
    check(found)


@pytest.mark.long
def test_a_killed_driver_loses_and_doubles_nothing_and_its_tasks_end(master: str, tmp_path: Path) -> None:
    chance = random.Random(2)
    process = start(master, tmp_path, 10**6, 0, 0)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("open ")
    time.sleep(2 + 5 * chance.random())
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 60
    while any(map(is_alive, json.loads(line.removeprefix("open ")))):
        assert time.monotonic() < deadline, "a task outlived its driver by a minute"
        time.sleep(0.2)
    check(finished(start(master, tmp_path, 0, 0, 0), tmp_path))


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split(")")[-1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
