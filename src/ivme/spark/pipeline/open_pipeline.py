"""A pipeline from Python: what `ivme run` does, beside DataFrames and Spark SQL."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ivme.errors import PipelineError
from ivme.pipeline.read import read_pipeline
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.events import Event, Report
from ivme.spark.pipeline.runner import run
from ivme.spark.pipeline.verify import Compared, verify_pipeline
from ivme.spark.session.session import open_session
from ivme.spark.views.answers import Answers
from ivme.spark.views.names import change_frame, register_views, view_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ivme.pipeline.state_database import StateDatabase, StateView


class Pipeline:
    """An open pipeline: its tables are loaded and its views built.

    `file` is a pipeline file, `frames` the DataFrames that it names, `spark` the session to use: by default that of
    the process. `report` is called with each batch that was applied, and each row or file that was set aside.
    """

    def __init__(
        self,
        file: Path | str,
        *,
        spark: SparkSession | None = None,
        frames: Mapping[str, DataFrame] | None = None,
        report: Report = lambda _: None,
        memory_limit: int | str | None = None,
    ) -> None:
        self._read = read_pipeline(file, frames)
        conf = dict(self._read.spark)
        self.spark = spark or open_session(f"ivme {self._read.name}", conf=conf)
        self._recent: deque[Event] = deque(maxlen=100)

        def noted(event: Event) -> None:
            self._recent.append(event)
            report(event)

        self._driver = Driver(self.spark, self._read, noted, memory_limit)
        self._stop = threading.Event()
        self.failure: BaseException | None = None
        """What ended the thread of `start`, if anything did; `stop` raises it."""
        self._thread: threading.Thread | None = None
        try:
            self._answers = Answers(self._driver.database, self._read.state, answering_host(self.spark))
        except BaseException:
            self._driver.close()
            raise

    # Running

    @property
    def batch(self) -> int:
        """The number of the last batch that the views have; 0 after the load."""
        return self._driver.reached

    @property
    def quarantined(self) -> int:
        """The number of rows in quarantine."""
        return self._driver.quarantine.waiting()

    @property
    def recent_progress(self) -> list[dict[str, Any]]:
        """The last hundred events, as plain data, the newest last: batches, refusals, loads and builds."""
        return [{"event": type(event).__name__.lower(), **asdict(event)} for event in self._recent]

    @property
    def last_progress(self) -> dict[str, Any] | None:
        """The last batch that was applied: its number, source, rows, changes and seconds."""
        applied = [told for told in self.recent_progress if told["event"] == "applied"]
        return applied[-1] if applied else None

    def run(self) -> int:
        """Applies all changes that wait, and writes the sinks; returns the number of the last batch."""
        self._refuse_while_running("run")
        run(self._driver, once=True)
        self._driver.resume()
        return self.batch

    def start(self, *, every: float | None = None) -> None:
        """Follows the sources in a thread until `stop`, and looks for changes every so many seconds."""
        self._refuse_while_running("start")
        self._stop.clear()
        self._thread = threading.Thread(target=self._follow, args=(every,), name=f"ivme {self._read.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops between two batches; raises the error that ended the pipeline before, if there was one."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stop.set()
            thread.join()
            self._driver.resume()
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def _follow(self, every: float | None) -> None:
        try:
            run(self._driver, once=False, stop=self._stop, pause=every)
        except BaseException as error:
            self.failure = error

    def _refuse_while_running(self, what: str) -> None:
        if self._thread is not None:
            raise PipelineError(f"the pipeline runs in a thread already; stop() it before {what}()")

    def close(self) -> None:
        """Stops, and closes the state; sinks and names stay."""
        try:
            self.stop()
        finally:
            self._answers.close()
            self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Reading

    @property
    def database(self) -> StateDatabase:
        """The database in the pipeline's state; only the pipeline changes it."""
        return self._driver.database

    def view(self, name: str) -> StateView:
        """A view, read in this process without Spark: rows, requests, changes as they come."""
        return self._driver.database.view(name)

    def frame(self, view: str, **parameters: Any) -> DataFrame:
        """The rows of a view, whole or for given parameters, as a DataFrame; each action on it reads them again."""
        return view_frame(self.spark, self._read.state, view, parameters)

    def changes(self, view: str) -> DataFrame:
        """The changes of a view as a streaming DataFrame, with `ivme_weight` and `ivme_batch`: what its sink has."""
        return change_frame(self.spark, self._read, view)

    def register(self, schema: str = "ivme", spark: SparkSession | None = None) -> dict[str, str]:
        """Names the views in a catalog: `spark.sql("SELECT * FROM ivme.sales")`; the names, or why there is none."""
        return register_views(spark or self.spark, self._read, schema)

    def verify(self) -> list[Compared]:
        """Compares every table and view with plain Spark SQL over the sources."""
        return list(verify_pipeline(self._driver))


def answering_host(spark: SparkSession) -> str:
    """The address that Spark's tasks find this process under: the driver's, on a cluster."""
    if not hasattr(spark, "_jvm") or (spark.conf.get("spark.master", "") or "").startswith("local"):
        return "127.0.0.1"
    return spark.conf.get("spark.driver.host", "127.0.0.1") or "127.0.0.1"
