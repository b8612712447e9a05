"""The driver and its JVM die at random moments; what is in the checkpoint is whole, and hosts do not live on."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ivme
from tests.spark.killed_driver import SPREAD, VIEW, apply
from tests.test_docs import ROOT

BATCHES = 8


def start(folder: Path, archives: Path) -> subprocess.Popen[str]:
    given = [str(folder / "checkpoint"), str(archives), str(BATCHES)]
    command = [sys.executable, "-m", "tests.spark.killed_driver", *given]
    with (folder / "log").open("a") as log:
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True, cwd=ROOT
        )


def kill(process: subprocess.Popen[str]) -> str:
    os.killpg(process.pid, signal.SIGKILL)
    assert process.stdout is not None
    said = process.stdout.read()
    process.wait()
    process.stdout.close()
    return said


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split(")")[-1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_a_killed_driver_loses_and_doubles_nothing(tmp_path: Path, archives: Path, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(2):
        process = start(tmp_path, archives)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.random() * 6)
        said = kill(process)
        if "rows" in said:
            break
    process = start(tmp_path, archives)
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    process.wait()
    process.stdout.close()
    assert 0 == process.returncode, (tmp_path / "log").read_text()[-3000:]
    with ivme.Database() as expected:
        expected.create_table("R", {"a": "int", "b": "int"})
        expected.create_table("S", {"b": "int", "c": "int"})
        view = expected.create_view("v", VIEW)
        spread = expected.create_view("spread", SPREAD)
        for number in range(BATCHES):
            apply(expected, number)
        (last,) = spread
        assert sorted([[[0, None], -1], [list(last), 1]], key=str) == json.loads(lines[-2].removeprefix("changes "))
        assert [list(row) for row in sorted(view)] == json.loads(lines[-1].removeprefix("rows "))


@pytest.mark.long
def test_hosts_end_when_their_driver_is_killed(tmp_path: Path, archives: Path) -> None:
    process = start(tmp_path, archives)
    assert process.stdout is not None
    hosts = json.loads(process.stdout.readline().removeprefix("open "))
    assert all(map(is_alive, hosts))
    kill(process)
    deadline = time.monotonic() + 60
    while any(map(is_alive, hosts)):
        assert time.monotonic() < deadline, "a host outlived its driver by a minute"
        time.sleep(0.2)
