"""A pipeline goes on from the copy of its state in another folder and another process, and no sink notices."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ivme.pipeline import read_pipeline
from tests.spark.cdc_torture import Torture
from tests.spark.test_cdc_torture import check_torture, crash_once
from tests.test_docs import ROOT


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    "engine",
    ["", "engine: {shards: 2, hosts: 1}\n", "engine: {shards: 2, hosts: 1, checkpoint: shared}\n"],
    ids=["one engine", "shards", "shards that outlive it"],
)
def test_a_machine_that_is_gone_is_replaced(spark: Any, archives: Path, tmp_path: Path, seed: int, engine: str) -> None:
    torture = Torture(tmp_path, events=600, per_file=60, seed=seed)
    text, chance = engine + torture.file.read_text(), random.Random(seed)
    for machine in range(3):
        torture.file.write_text(f"state: machine{machine}\ncopy: file://{tmp_path}/store\n{text}")
        assert crash_once(spark, torture.file, chance)
        shutil.rmtree(read_pipeline(torture.file).state)  # the machine is gone with its disk
    torture.file.write_text(f"state: last\ncopy: file://{tmp_path}/store\n{text}")
    command = [sys.executable, "-m", "tests.spark.cdc_torture", str(torture.file), str(archives)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert "done" in ran.stdout, ran.stderr[-3000:]
    opened = int(ran.stdout.split()[1])
    assert opened > 0, "it went on where the last machine was"
    check_torture(torture)
