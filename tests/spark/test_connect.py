"""A pipeline over Spark Connect, on a server that PySpark starts (defect 8)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ivme.spark.session.session import ARCHIVES
from tests.test_docs import ROOT

pytestmark = pytest.mark.xdist_group("spark")


@pytest.mark.long
def test_parquet_directories_delta_feeds_frames_and_names_work_over_connect(archives: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.spark.connect_driver", str(tmp_path)]
    environment = {**os.environ, ARCHIVES: str(archives)}
    ran = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", timeout=600, cwd=ROOT)
    assert (0, "done") == (ran.returncode, ran.stdout.strip()[-4:]), ran.stderr[-3000:]
