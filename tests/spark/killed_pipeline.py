"""`python -m tests.spark.killed_pipeline FILE ARCHIVES PLACE`: runs a pipeline until it kills itself at a place."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from ivme.pipeline import read_pipeline
from ivme.pipeline.journal import RunJournal
from ivme.shards.coordinator import Coordinator
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.runner import run
from ivme.spark.pipeline.sink import DeltaWriter
from ivme.spark.pipeline.sinks import Sinks
from ivme.spark.session.session import open_session

PLACES: dict[str, tuple[type, str]] = {
    "when all shards have prepared the step": (Coordinator, "_decide"),
    "when the step has its record and no shard knows": (Coordinator, "_committed"),
    "when the shards have the batch and no sink has": (Sinks, "write"),
    "between two sinks": (DeltaWriter, "write"),
    "when the sinks have the batch and the journal does not know": (RunJournal, "wrote"),
}


def die(*_: Any) -> None:
    """All that this session started dies at once: Python, the JVM, and the hosts of shards."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main(file: str, archives: str, place: str) -> None:
    spark = open_session("killed", master="local[2]", archives=Path(archives))
    driver = Driver(spark, read_pipeline(file))
    setattr(*PLACES[place], die)
    run(driver, once=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
