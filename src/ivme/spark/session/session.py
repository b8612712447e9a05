"""Spark sessions that start quickly on one machine, and behave the same wherever they run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ivme.errors import SparkError
from ivme.spark.session.java import class_archive, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERYWHERE: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.localRelationThreshold": "0",
}
"""What results depend on, and what Arrow needs to go through at full speed: for every session that ivme opens."""

ON_ONE_MACHINE: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
}
"""What makes a local session start in 5 s in place of 8 s, and a job with Python in it take half the time."""

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For sessions that live for minutes: code is compiled once and quickly. Long runs are better without."""

ARCHIVES = "IVME_SPARK_ARCHIVES"


def open_session(
    name: str = "ivme",
    *,
    master: str | None = None,
    remote: str | None = None,
    conf: Mapping[str, str] | None = None,
    log: Path | None = None,
    archives: Path | None = None,
) -> SparkSession:
    """The session of this process, or a new one: local unless `master` or `remote` (Spark Connect) says otherwise.

    `conf` comes last and overrides. With `log`, what a new JVM writes to its standard error goes to that file.
    `archives`, or the environment's IVME_SPARK_ARCHIVES, is a folder where an archive of classes may be
    (`ivme.spark.session.java`); a session that uses one is assumed to be short-lived.
    """
    if archives is None and ARCHIVES in os.environ:
        archives = Path(os.environ[ARCHIVES])
    sessions = _sessions()
    if remote is not None:
        if master is not None:
            raise SparkError("a session has a master or a remote address, not both")
        return _connected(_configured(sessions.builder.remote(remote), {**EVERYWHERE, **(conf or {})}), remote)
    running = sessions.getActiveSession()
    if running is not None:
        return running
    under_submit = "PYSPARK_GATEWAY_PORT" in os.environ
    builder = sessions.builder.appName(name)
    if not under_submit:
        find_java()
        master = master or "local[*]"
        builder = builder.master(master)
    local = (master or "").startswith("local")
    settings = {**EVERYWHERE, **(ON_ONE_MACHINE if local else {})}
    if local:
        settings["spark.driver.extraJavaOptions"] = _java_options(archives)
    settings.update(conf or {})
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _standard_error_to(log):
        session = _configured(builder, settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR" if log is None else "WARN")
    return session


def _connected(builder: SparkSession.Builder, remote: str) -> SparkSession:
    from pyspark.errors import PySparkException

    try:
        return builder.getOrCreate()
    except ImportError as error:
        raise SparkError(f"Spark Connect needs more packages ({error}); install pyspark[connect]") from error
    except PySparkException as error:
        raise SparkError(f"cannot connect to {remote}: {error}") from error


def _sessions() -> type[SparkSession]:
    from pyspark.sql import SparkSession

    return SparkSession


def _configured(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder


def _java_options(archives: Path | None) -> str:
    if archives is None:
        return "-XX:+UseParallelGC"
    archive = class_archive(archives)
    shared = f" -XX:SharedArchiveFile={archive}" if archive.exists() else ""
    return f"{QUICK_JAVA}{shared} -Xlog:disable -Xlog:all=error:stderr"


@contextmanager
def _standard_error_to(log: Path | None) -> Iterator[None]:
    """What processes started inside inherit as standard error: a file, to keep a JVM's messages off the terminal."""
    if log is None:
        yield
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
