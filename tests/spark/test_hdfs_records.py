"""Records in HDFS itself, where two drivers make the same ones at the same time: one of them gets each, whole.

`IVME_HDFS=hdfs://127.0.0.1:8020` says where a name node is. Decision 0621 says how to start one from the jars of an old
Spark.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from typing import Any

import pytest

from tests.test_docs import ROOT

HDFS = os.environ.get("IVME_HDFS")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(HDFS is None, reason="there is no HDFS: IVME_HDFS does not name one"),
]

RECORDS = 100


def racer(address: str, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.spark.hdfs_racer", address, name, str(RECORDS)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def told(process: subprocess.Popen[str], line: str = "") -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    if line:
        process.stdin.write(line)
        process.stdin.flush()
    return process.stdout.readline().strip()


def test_of_two_drivers_one_makes_each_record() -> None:
    address = f"{HDFS}/{uuid.uuid4().hex}"
    drivers = {name: racer(address, name) for name in ("one", "other")}
    try:
        assert ["ready", "ready"] == [told(process) for process in drivers.values()]
        for process in drivers.values():
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        won = {name: json.loads(told(process)) for name, process in drivers.items()}
        assert sorted(won["one"] + won["other"]) == list(range(RECORDS))
        assert won["one"]
        assert won["other"]
        there = json.loads(told(drivers["one"], "list\n"))
        whose = {str(number): name for name, numbers in won.items() for number in numbers}
        assert there == {number: [name, len(f"{name} {number}") * 1000] for number, name in whose.items()}
    finally:
        for process in drivers.values():
            process.communicate(timeout=60)
