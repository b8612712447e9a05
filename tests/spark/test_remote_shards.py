"""Sharded databases through Spark Connect and spark-submit, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.test_docs import ROOT

HERE = Path(__file__).parent


@pytest.mark.long
@pytest.mark.skipif(
    find_spec("grpc") is None, reason="Spark Connect needs grpcio, which the extra spark does not bring"
)
def test_a_database_works_through_spark_connect(tmp_path: Path) -> None:
    """With SPARK_TESTING the server takes any free port."""
    environment = {**os.environ, "SPARK_TESTING": "1", "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-m", "tests.spark.remote_driver", str(tmp_path / "checkpoint")]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert 0 == result.returncode, result.stderr[-3000:]
    assert "done" in result.stdout


@pytest.mark.long
def test_a_database_works_through_spark_submit(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "import sys, ivme\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "with ivme.SparkDatabase(spark, 2, sys.argv[1]) as db:\n"
        "    db.create_table('R', {'a': 'int'})\n"
        "    view = db.create_view('v', 'SELECT COUNT(*) AS n FROM R')\n"
        "    db.insert('R', spark.range(1000).selectExpr('id AS a'))\n"
        "    print('rows', view.scalar())\n"
    )
    submit = Path(sys.executable).parent / "spark-submit"
    command = [
        str(submit),
        "--master",
        "local[2]",
        "--conf",
        "spark.ui.enabled=false",
        str(script),
        str(tmp_path / "c"),
    ]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert "rows 1000" in result.stdout, result.stderr[-3000:]
