"""Pipelines go on from the states that earlier versions wrote (`fixtures/`), each row once.

To add one: run the pipeline of `flights.py` in the folder `WRITTEN` with the version to be kept, and copy it under the
date. A state knows where its sinks write, so the test moves these places along.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.flights import Flights
from tests.spark.test_pipeline import Ran, check

FIXTURES = Path(__file__).parent / "fixtures"
WRITTEN = "/tmp/fixture/flights"
ROUTES = [("A", 1, 2), ("C", 2, 3), ("C", 2, 3), ("D", 1, 2), ("E", 4, 5)]


@pytest.mark.parametrize("name", sorted(each.name for each in FIXTURES.iterdir()))
def test_a_pipeline_goes_on_from_an_older_state(spark: SparkSession, tmp_path: Path, name: str) -> None:
    shutil.copytree(FIXTURES / name, tmp_path / "pipeline")
    _move(tmp_path / "pipeline")
    flights = Flights.there(tmp_path / "pipeline", ROUTES)
    flights.change("4", ("insert", "F", 5, 1), ("delete", "C", 2, 3))
    ran = Ran(spark, flights.file, verify=True)
    check(flights, ran)
    assert 1 == len(ran.batches)


def _move(folder: Path) -> None:
    """Writes the places of sinks anew, as if the state had been written in this folder."""
    with closing(sqlite3.connect(folder / "flights.state" / "journal.sqlite")) as journal, journal:
        tables = [name for (name,) in journal.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for _, column, *_ in journal.execute(f'PRAGMA table_info("{table}")').fetchall():
                changed = f'UPDATE "{table}" SET "{column}" = REPLACE("{column}", ?, ?) WHERE "{column}" LIKE ?'
                journal.execute(changed, (WRITTEN, str(folder), f"%{WRITTEN}%"))
