"""Rows of loads in the driver: by files, by a store, or partition by partition, and never as one result (defect 10)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ivme.pipeline import read_pipeline
from ivme.spark.pipeline import gathering
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.events import Event, Opening
from ivme.spark.session.jobs import share_done, watched_jobs
from tests.spark.flights import Flights
from tests.test_docs import ROOT

pytestmark = pytest.mark.xdist_group("spark")


def test_rows_are_the_same_by_files_by_a_store_and_by_partitions(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "id", "CAST(id % 7 AS string) AS s", "CASE WHEN id % 3 = 0 THEN id / 4 END AS f"
    frame, empty = spark.range(0, 1000, 1, 3).selectExpr(*text), spark.range(0).selectExpr(*text)

    def refuse(_: object) -> None:
        raise AssertionError("it was collected")

    monkeypatch.setattr(type(frame), "toArrow", refuse)
    for each in (frame, empty):
        files = gathering.collected(each, tmp_path / "files").sort_by("id")
        store = gathering.collected(each, tmp_path / "t", str(tmp_path / "store")).sort_by("id")
        assert files.to_pylist() == store.to_pylist()
        with monkeypatch.context() as patched:
            patched.setattr(gathering, "shares_disk", lambda _: False)
            assert files.to_pylist() == gathering.collected(each, tmp_path / "none").sort_by("id").to_pylist()
    assert [] == [path for path in tmp_path.rglob("*") if path.is_file()]


_SMALL = """
import sys
from pathlib import Path
from ivme.spark.pipeline.gathering import by_partition
from ivme.spark.session.session import open_session

spark = open_session("small", master="local[2]", conf={"spark.driver.maxResultSize": "1m"}, archives=Path(sys.argv[1]))
frame = spark.range(0, 200_000, 1, 8).selectExpr("id", "hash(id) AS h")
try:
    frame.toArrow()
except Exception as error:
    assert "maxResultSize" in str(error), error
else:
    raise AssertionError("all rows fit into one result")
assert 200_000 * 199_999 // 2 == sum(by_partition(frame).column("id").to_pylist())
spark.stop()
"""


@pytest.mark.long
def test_a_load_by_partitions_goes_past_the_limit_of_results(archives: Path) -> None:
    """On a cluster rows come partition by partition: more than the driver takes as one result."""
    command = [sys.executable, "-c", _SMALL, str(archives)]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300, cwd=ROOT)
    assert 0 == ran.returncode, ran.stderr[-2000:]


def test_loads_and_builds_are_told_as_they_go(spark: Any, tmp_path: Path) -> None:
    events: list[Event] = []
    Driver(spark, read_pipeline(Flights(tmp_path).file), events.append).close()
    ended = [(e.what, e.name, e.done, e.total) for e in events if isinstance(e, Opening) and e.seconds is not None]
    loads = [("load", "routes", 1, 2), ("load", "airports", 2, 2)]
    assert [*loads, *(("build", name, i + 1, 3) for i, name in enumerate(("per_city", "pairs", "search")))] == ended


def test_jobs_that_run_are_watched_by_their_group(spark: Any) -> None:
    assert 0.0 == share_done(spark, "nobody's")
    told: list[float] = []
    with watched_jobs(spark, "nobody's", told.append, every=0.01):
        while not told:
            spark.range(1).count()
    assert 0.0 == told[0]
