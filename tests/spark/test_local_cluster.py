"""Shards in long-running tasks, the short form: a cluster of two executors that Spark starts within the driver's JVM.

`test_standalone.py` and `test_standalone_stream.py` kill more of what there is to kill, on a master with two workers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.spark.test_standalone import check, finished, start


@pytest.mark.long
def test_a_killed_task_of_a_cluster_loses_and_doubles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each executor has one host: no process has most of the entries, and none is served twice."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    found = finished(start("local-cluster[2,3,512]", tmp_path, 4, 1, 31), tmp_path)
    assert ["worker"] == json.loads(found["kills"])
    check(found)
