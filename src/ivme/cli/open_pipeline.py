"""A pipeline that a command opens: on a session of its own, with a log, and with errors in one line."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ivme.errors import IvmeError, SparkError

if TYPE_CHECKING:
    from ivme.pipeline import Pipeline
    from ivme.spark.pipeline.driver import Driver
    from ivme.spark.pipeline.events import Refused, Report


@contextmanager
def opened(
    pipeline: Pipeline,
    master: str | None,
    remote: str | None,
    report: Report,
    memory_limit: str | None = None,
    opening: AbstractContextManager[None] | None = None,
) -> Iterator[Driver]:
    """The pipeline on a session of its own; what Spark says goes to a log in the pipeline's state.

    `opening` is entered while tables are loaded and views built.
    """
    from ivme.spark.pipeline.driver import Driver
    from ivme.spark.session.session import open_session

    log = pipeline.state / "spark.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=log)
    session = open_session(
        f"ivme {pipeline.name}",
        master=master,
        remote=remote,
        conf=dict(pipeline.spark),
        log=log,
    )
    with _logged(log):
        with opening or nullcontext():
            driver = Driver(session, pipeline, report, memory_limit)
        try:
            yield driver
        finally:
            driver.close()


@contextmanager
def _logged(log: Path) -> Iterator[None]:
    """What Spark or Java says of an error at length goes to the log, and a line of it to the user."""
    from ivme.spark.session.failure import is_foreign, reason_of

    try:
        yield
    except Exception as error:
        cause = error.__cause__ if isinstance(error, IvmeError) else error
        if cause is None or not is_foreign(cause):
            raise
        logging.getLogger("ivme").error("the pipeline failed", exc_info=error)
        told = f"{error if isinstance(error, IvmeError) else f'Spark failed: {reason_of(error)}'} (more is in {log})"
        raise (type(error) if isinstance(error, IvmeError) else SparkError)(told) from error


@contextmanager
def answering(driver: Driver) -> Iterator[None]:
    """Answers Spark's tasks for the views meanwhile; the address is in the state."""
    from ivme.spark.pipeline.open_pipeline import answering_host
    from ivme.spark.views.answers import Answers

    answers = Answers(driver.database, driver.pipeline.state, answering_host(driver.spark))
    try:
        yield
    finally:
        answers.close()


def whole_files(refused: Sequence[Refused], pipeline: Path) -> Iterator[str]:
    """What is said at the end of files that were refused whole, by table."""
    from ivme.shown_table import counted

    for table in dict.fromkeys(event.source for event in refused):
        files = [event for event in refused if event.source == table]
        verb = "was" if len(files) == 1 else "were"
        yield (
            f"WARNING: {counted(len(files), 'file')} of table {table} {verb} not applied, and wait in quarantine; the "
            f"first is {files[0].name}: {files[0].reason}. If {pipeline.name} is wrong, correct it and run "
            f"`ivme replay {pipeline}`; if a file is, correct it and give it a new name"
        )
