"""What Spark's user interface says of a pipeline's jobs: the group is the pipeline, the description the batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ivme
from tests.spark.flights import Flights

pytestmark = pytest.mark.xdist_group("spark")


def _told(spark: Any) -> set[tuple[str, str]]:
    """The groups and descriptions of all jobs that Spark remembers, from the store behind its user interface."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = [jobs.apply(number) for number in range(jobs.size())]
    return {(_value(job.jobGroup()), _value(job.description())) for job in found}


def _value(option: Any) -> str:
    return str(option.get()) if option.isDefined() else ""


def test_jobs_are_named_after_the_pipeline_the_view_and_the_batch(spark: Any, tmp_path: Path) -> None:
    flights = Flights(tmp_path, head="name: named_flights\n")
    with flights.file.open("a") as file:
        file.write("  texts: {view: per_city, format: csv, path: out/texts}\n")
    flights.change("1", ("insert", "D", 1, 2))
    with ivme.Pipeline(flights.file, spark=spark) as pipeline:
        pipeline.run()
        assert ("routes", 1, 1) == tuple(pipeline.last_progress[name] for name in ("source", "number", "rows_in"))  # type: ignore[index]
    expected = {
        "load of routes",
        "load of airports",
        "batch 1 of routes",
        "batch 0: view per_city to sink texts",
        "batch 1: view per_city to sink texts",
    }
    assert expected <= {told for group, told in _told(spark) if group == "ivme named_flights"}


@pytest.mark.long
def test_the_jobs_of_a_stream_are_named_after_it(spark: Any, tmp_path: Path) -> None:
    flights = Flights(tmp_path, head="name: streamed_flights\n")
    flights.change("1", ("insert", "D", 1, 2))
    stream = "stream: {format: csv, path: changes, options: {header: true}}, "
    stream += 'schema: "op string, no string, src long, dst long"'
    text = flights.file.read_text().replace("directory: changes, format: csv", stream)
    flights.file.write_text(text)
    with ivme.Pipeline(flights.file, spark=spark) as pipeline:
        pipeline.run()
    flights.check_sinks()
    assert "ivme streamed_flights: batch 0 of the stream of routes" in {told for _, told in _told(spark)}
