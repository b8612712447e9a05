"""Processes that are killed: whatever the moment, the next run ends where an undisturbed one would have."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ivme.pipeline import read_pipeline
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.verify import verify_pipeline
from ivme.spark.session.session import ARCHIVES
from tests.spark.flights import Flights

FILES = 8


@contextmanager
def running(flights: Flights, archives: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`ivme run` as a user starts it; it is over when the block is left."""
    environment = {**os.environ, ARCHIVES: str(archives), "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "ivme.cli", "run", str(flights.file), "--master", "local[2]", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def java_of(process: subprocess.Popen[str]) -> int:
    """The JVM that a run started; its launcher has become it."""
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return next(int(child) for child in found if "java" in Path(f"/proc/{child}/cmdline").read_text().split("\0")[0])


def wait_for(process: subprocess.Popen[str], text: str) -> str:
    """What is printed up to a text."""
    printed = ""
    assert process.stdout is not None
    for line in process.stdout:
        printed += line
        if text in line:
            return printed
    raise AssertionError(f"{text!r} did not come: {printed}")


def kill_once(flights: Flights, archives: Path, whom: str, seed: int) -> None:
    """Starts a run, and kills the JVM or the driver some time after some batch."""
    chosen = random.Random(seed)
    with running(flights, archives, "--once") as process:
        wait_for(process, f"batch {chosen.randint(0, FILES // 2)}")
        time.sleep(chosen.random() * 0.4)
        os.kill(java_of(process) if whom == "JVM" else process.pid, signal.SIGKILL)
        rest = process.stdout.read() if process.stdout else ""
        code = process.wait(timeout=120)
    if whom == "JVM" and code:
        assert "run the pipeline again" in rest, rest


def check_after_kill(spark: SparkSession, archives: Path, folder: Path, whom: str, seed: int) -> None:
    flights = Flights(folder, more=", files_per_batch: 1")
    flights.random_changes(FILES, 12, seed)
    kill_once(flights, archives, whom, seed)
    driver = Driver(spark, read_pipeline(flights.file))
    try:
        while driver.step("routes"):
            pass
        driver.outlets.flush(driver.reached)
        assert FILES == driver.reached
        assert flights.per_city() == set(driver.database.view("per_city"))
        assert [] == [difference for compared in verify_pipeline(driver) for difference in compared.differences]
    finally:
        driver.close()
    flights.check_sinks()


@pytest.mark.parametrize("whom", ["JVM", pytest.param("driver", marks=pytest.mark.long)])
def test_a_killed_run_loses_nothing_and_does_nothing_twice(
    spark: SparkSession, archives: Path, tmp_path: Path, whom: str
) -> None:
    check_after_kill(spark, archives, tmp_path, whom, 1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("whom", ["JVM", pytest.param("driver", marks=pytest.mark.long)])
def test_twenty_kills_at_random_points(
    spark: SparkSession, archives: Path, tmp_path: Path, whom: str, seed: int
) -> None:
    check_after_kill(spark, archives, tmp_path, whom, 100 + seed)


@pytest.mark.long
def test_a_pipeline_runs_under_spark_submit(archives: Path, tmp_path: Path) -> None:
    import ivme.cli

    assert archives.is_dir()
    flights = Flights(tmp_path)
    flights.change("1", ("insert", "D", 1, 2))
    folder = Path(sys.executable).parent
    command = [str(folder / "spark-submit"), "--master", "local[2]", str(ivme.cli.__file__), "run", str(flights.file)]
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    ran = subprocess.run([*command, "--once"], env=environment, capture_output=True, encoding="utf-8", timeout=300)
    assert 0 == ran.returncode, ran.stderr
    assert "1 batch, 1 row in" in ran.stdout
    flights.check_sinks()


@pytest.mark.long
def test_a_pipeline_runs_over_spark_connect_and_a_stream_is_refused_by_name_there(
    archives: Path, tmp_path: Path
) -> None:
    flights = Flights(tmp_path)
    flights.change("1", ("insert", "D", 1, 2))
    command = [sys.executable, "-m", "ivme.cli", "run", str(flights.file), "--once", "--remote", "local[2]"]
    environment = {**os.environ, ARCHIVES: str(archives)}
    ran = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", timeout=300)
    assert 0 == ran.returncode, ran.stderr
    flights.check_sinks()
    text = flights.file.read_text().replace("directory: changes, format: csv", "stream: {format: csv, path: changes}")
    flights.file.write_text(
        text.replace("tables:", "state: other\ntables:", 1).replace("path: out/", "path: other-out/")
    )
    refused = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", timeout=300)
    assert 2 == refused.returncode, refused.stdout
    assert "table routes has a stream of changes, which needs Spark's driver in this process" in refused.stderr


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_continuous_run_follows_new_files_and_stops_cleanly_at_a_signal(
    archives: Path, tmp_path: Path, number: signal.Signals
) -> None:
    flights = Flights(tmp_path)
    with running(flights, archives) as process:
        wait_for(process, "is at batch 0")
        flights.change("1", ("insert", "D", 1, 2))
        wait_for(process, "batch 1")
        process.send_signal(number)
        rest = process.stdout.read() if process.stdout else ""
        assert 0 == process.wait(timeout=60), rest
    assert "1 batch," in rest
    flights.check_sinks()
