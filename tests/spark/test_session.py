"""Sessions: what they are set to, and what is said where Java is missing or too old."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ivme.errors import SparkError
from ivme.spark.session.java import find_java
from ivme.spark.session.session import open_session


def test_rows_go_through_a_session_as_arrow_and_back(spark: SparkSession) -> None:
    rows = pa.table({"a": [1, 2, 3]})
    doubled = spark.createDataFrame(rows).mapInArrow(lambda batches: batches, "a long")
    assert sorted(rows.column("a").to_pylist()) == sorted(doubled.toArrow().column("a").to_pylist())


def test_a_second_session_of_a_process_is_the_first(spark: SparkSession) -> None:
    assert open_session("another") is spark


def test_a_master_and_a_remote_address_exclude_each_other() -> None:
    with pytest.raises(SparkError, match="not both"):
        open_session(master="local[2]", remote="sc://localhost")


@pytest.mark.usefixtures("spark")
def test_a_remote_session_that_cannot_be_had_is_told_by_its_address_or_by_what_is_missing() -> None:
    with pytest.raises(SparkError, match=r"sc://nowhere\.invalid|install pyspark\[connect\]"):
        open_session(remote="sc://nowhere.invalid")


def test_a_machine_without_java_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    find_java.cache_clear()
    try:
        with pytest.raises(SparkError, match="openjdk-17-jre-headless"):
            find_java()
    finally:
        find_java.cache_clear()


def test_a_java_that_is_too_old_is_refused_by_its_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    find_java.cache_clear()
    try:
        with pytest.raises(SparkError, match=r"is 11\.0\.2"):
            find_java()
    finally:
        find_java.cache_clear()


def test_importing_ivme_needs_neither_spark_nor_java() -> None:
    code = "import ivme, ivme.cli, sys; ivme.Database(); print([m for m in sys.modules if m.startswith('pyspark')])"
    environment = {**os.environ, "PATH": "/nonexistent", "JAVA_HOME": "/nonexistent"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, encoding="utf-8")
    assert "[]" == result.stdout.strip(), result.stderr
