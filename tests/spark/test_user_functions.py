"""Views that call functions of Python, on shards that Spark's tasks started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ivme
from ivme.errors import SchemaError
from ivme.shards.functions import VARIABLE
from tests import pure_functions
from tests.spark.functions_driver import STEPS, VIEWS, shown
from tests.test_docs import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def expected() -> list[str]:
    with ivme.Database() as db:
        db.create_table("page", {"title": "string", "views": "int"})
        db.create_function("slug", pure_functions.slug, arguments=["string"], returns="string")
        db.create_function("known", pure_functions.known, arguments=["string"], returns="bool", called_with_null=True)
        for name, text in VIEWS.items():
            db.create_view(name, text)
        found = []
        for change, rows in STEPS:
            getattr(db, change)("page", rows)
            found.append(shown(db))
    return [*found, found[-1]]


@pytest.mark.long
def test_views_that_call_functions_have_the_rows_of_an_embedded_database(tmp_path: Path, archives: Path) -> None:
    """In a process of its own: Spark's tasks have the environment with which its session was started."""
    command = [sys.executable, "-m", "tests.spark.functions_driver", str(tmp_path / "checkpoint"), str(archives)]
    environment = {**os.environ, VARIABLE: "tests.pure_functions", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert 0 == done.returncode, done.stderr[-3000:]
    assert expected() == done.stdout.splitlines()


@pytest.mark.long
def test_what_spark_may_not_import_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with ivme.SparkDatabase(spark, shards=2, checkpoint=tmp_path) as db:
        with pytest.raises(SchemaError, match=r"may not import tests\.pure_functions: list the module"):
            db.create_function("slug", pure_functions.slug, arguments=["string"], returns="string")
        assert db.functions == {}
