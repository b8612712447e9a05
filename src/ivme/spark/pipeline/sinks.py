"""All sinks of a pipeline: they follow the views, and write what each batch changed."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivme.engine.runtime.delta import Delta as ViewDelta
from ivme.engine.runtime.delta import delta_table
from ivme.pipeline.journal import RunJournal
from ivme.pipeline.model import WEIGHT, Pipeline, Sink
from ivme.pipeline.plan_changes import Definitions, described
from ivme.pipeline.read_sinks import PYTHON
from ivme.pipeline.state_database import StateDatabase
from ivme.pipeline.table_changes import TableChanges
from ivme.spark.pipeline.redefinition import differences, with_definitions
from ivme.spark.pipeline.replay import replay
from ivme.spark.pipeline.sink import SparkWriter, Writer
from ivme.spark.pipeline.writers import open_writer
from ivme.spark.session.failure import told_failures
from ivme.spark.session.jobs import described_jobs
from ivme.view import View

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ivme.shards.state import ShardedState
    from ivme.spark.shards.view_frames import ViewFrames


_WITHOUT_JOBS = ("parquet", "delta", "iceberg", PYTHON)
"""Formats that are mostly written without Spark, for which naming jobs would be calls to the JVM for nothing."""


class Sinks:
    """The sinks, with the feeds of the views whose changes they write."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        database: StateDatabase,
        journal: RunJournal,
        ready: Callable[[], None] = lambda: None,
        sharded: ShardedState | None = None,
    ) -> None:
        """`ready` is called before anything is written: what sinks get must not be lost with this machine.

        Shards keep what a batch changed in a view, and what Spark writes of them, its tasks read there.
        """
        self._pipeline, self._database, self._journal, self._ready = pipeline, database, journal, ready
        self._spark, self._sharded = spark, sharded
        self._frames = None if sharded is None else _frames_of(sharded)
        owner = journal.fact("owner")
        if owner is None:
            owner = uuid.uuid4().hex
            journal.note("owner", owner)
            ready()
        self._writers: dict[str, Writer] = {}
        for sink in pipeline.sinks:
            writer = self._writers[sink.name] = open_writer(spark, pipeline, sink, owner, database)
            if journal.written(sink.name) is None:
                with told_failures(spark, _place(sink)):
                    writer.claim()
                journal.note(f"sink {sink.name}", described(sink))
        followed = dict.fromkeys(sink.view for sink in pipeline.sinks if sink.mode != "rows")
        self._feeds = {name: database.view(name).changes() for name in followed}
        self._stale: set[str] = set()
        self.rewritten = 0
        """How many times a sink got all rows of its view."""
        self._started = {sink.name for sink in pipeline.sinks if journal.written(sink.name) is not None}

    def write(self, batch: int) -> int:
        """Writes the batch that the database has just taken; how many rows of views came or went.

        Sinks that have nothing yet get it with all other rows (`write_first`).
        """
        self._ready()
        changes = {name: self._heard(name) for name in self._feeds}
        started = [sink for sink in self._pipeline.sinks if sink.name in self._started]
        for sink in started:
            if sink.mode != "rows":
                self._write_changes(sink, batch, changes[sink.view])
            elif batch % sink.every == 0:
                self._write_rows(sink, batch)
            else:
                self._stale.add(sink.name)
        self._journal.wrote((sink.name for sink in started if sink.name not in self._stale), batch)
        frames = self._frames
        unheard = [] if frames is None else [name for name in changes if not self._is_heard(name)]
        counted = sum(frames.changed_rows(name, batch) for name in unheard) if frames is not None else 0
        return counted + sum(len(change) for change in changes.values() if change is not None)

    def _heard(self, view: str) -> ViewDelta | None:
        """The change of a view by the last batch, if a sink needs it here."""
        feed: Any = self._feeds[view]
        if self._is_heard(view):
            return next(iter(feed), None)
        feed.skip()
        return None

    def _is_heard(self, view: str) -> bool:
        sinks = [sink for sink in self._pipeline.sinks if sink.view == view and sink.mode != "rows"]
        return not all(self._is_from_tasks(sink) for sink in sinks)

    def _is_from_tasks(self, sink: Sink) -> bool:
        """Whether Spark's tasks write a sink from the shards."""
        return self._frames is not None and isinstance(self._writers[sink.name], SparkWriter) and sink.mode != "merge"

    def flush(self, batch: int) -> None:
        """Writes the rows that sinks were spared by `every`."""
        for sink in self._pipeline.sinks:
            if sink.name in self._stale:
                self._write_rows(sink, batch)
        self._journal.wrote(self._stale, batch)
        self._stale.clear()

    def write_first(self, batch: int) -> None:
        """Gives sinks that have nothing yet what the views have: all rows, as changes from nothing."""
        new = [sink for sink in self._pipeline.sinks if sink.name not in self._started]
        if new:
            self._ready()
        for sink in new:
            if sink.mode != "changes":
                self._write_rows(sink, batch)
            elif self._writers[sink.name].last() is None:
                self._write(sink, batch, self._everything(self._database.definitions.map_view(sink.view)))
            self._journal.wrote([sink.name], batch)
            self._started.add(sink.name)

    def lacks_changes(self, batch: int) -> bool:
        """Whether a sink of changes may lack a batch."""
        return bool(self._unsure(self._lacking(batch), batch))

    def _lacking(self, batch: int) -> list[Sink]:
        """The sinks that have earlier batches, and lack this one according to the journal."""
        written = [(sink, self._journal.written(sink.name)) for sink in self._pipeline.sinks]
        return [sink for sink, last in written if last is not None and last < batch]

    def _unsure(self, sinks: list[Sink], batch: int) -> list[Sink]:
        return [sink for sink in sinks if sink.mode != "rows" and self._writers[sink.name].last() != batch]

    def write_missing(
        self, batch: int, changes: Callable[[], Mapping[str, TableChanges]] | None, old: Definitions | None = None
    ) -> None:
        """Gives sinks the last batch of the database if they lack it, as after a crash between the two.

        `changes` gives those of the batch again, by table; it is not needed where no sink lacks changes. `old` are the
        definitions of views when the batch was taken.
        """
        self._ready()
        lacking = self._lacking(batch)
        unsure = self._unsure(lacking, batch)
        if unsure and self._sharded is not None:
            for sink in unsure:
                found = None if self._is_from_tasks(sink) else self._sharded.change_of_batch(batch, sink.view)
                self._write_changes(sink, batch, found)
        elif unsure and changes is not None:
            then = self._pipeline if old is None else with_definitions(self._pipeline, old)
            again = replay(then, self._database, changes(), {sink.view for sink in unsure})
            for sink in unsure:
                self._write_changes(sink, batch, again[sink.view])
        for sink in lacking:
            if sink.mode == "rows":
                self._write_rows(sink, batch)
        self._journal.wrote((sink.name for sink in lacking), batch)

    def write_difference(
        self, batch: int, old: Definitions, new: Definitions, widths: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """Gives sinks of changes, as one batch, what other definitions change in the rows of their views.

        `widths` are the numbers of columns that tables had under the old ones.
        """
        self._ready()
        sinks = [sink for sink in self._moved(old) if self._writers[sink.name].last() != batch]
        views = {sink.view for sink in sinks}
        found = differences(with_definitions(self._pipeline, new), old, self._database, views, widths)
        for sink in sinks:
            if found[sink.view].num_rows:
                self._write(sink, batch, found[sink.view])
        for sink in self._pipeline.sinks:
            if sink.mode != "changes" and self._journal.written(sink.name) is not None:
                self._write_rows(sink, batch)
        written = [sink.name for sink in self._pipeline.sinks if self._journal.written(sink.name) is not None]
        self._journal.wrote(written, batch)

    def _moved(self, old: Definitions) -> list[Sink]:
        """The sinks of changes that have some of a view that there was before."""
        names = {name for name, *_ in old}
        sinks = [sink for sink in self._pipeline.sinks if sink.mode == "changes" and sink.view in names]
        return [sink for sink in sinks if self._journal.written(sink.name) is not None]

    def _write_rows(self, sink: Sink, batch: int) -> None:
        frame = self._frames.rows(sink.view) if self._frames is not None and self._is_from_tasks(sink) else None
        self._write(sink, batch, self._database.view(sink.view).to_arrow() if frame is None else frame)
        self.rewritten += 1

    def _write(self, sink: Sink, batch: int, rows: pa.Table | DataFrame) -> None:
        """Writes a batch; what Spark does for it is named after the view and the sink."""
        writer = self._writers[sink.name]
        told = f"batch {batch}: view {sink.view} to sink {sink.name}"
        is_plain = sink.format in _WITHOUT_JOBS and not isinstance(writer, SparkWriter)
        jobs = nullcontext() if is_plain else described_jobs(self._spark, f"ivme {self._pipeline.name}", told)
        with told_failures(self._spark, _place(sink)), jobs:
            if isinstance(rows, pa.Table):
                writer.write(batch, rows)
            else:
                assert isinstance(writer, SparkWriter)
                writer.write_frame(batch, rows)

    def _write_changes(self, sink: Sink, batch: int, change: ViewDelta | None) -> None:
        if self._frames is not None and self._is_from_tasks(sink):
            names = self._database.definitions.map_view(sink.view).change_schema.names
            frame = self._frames.changes(sink.view, batch, names)
            if frame is not None:
                self._write(sink, batch, frame)
        elif change is not None:
            self._write(sink, batch, change_table(self._database.definitions.map_view(sink.view), change))

    def _everything(self, view: View) -> pa.Table:
        if not view.parameters:
            rows, weights = self._database.contents(view.name)
            return rows.append_column(WEIGHT, pa.array(weights))
        everything = replay(self._pipeline, self._database, None, {view.name})
        return change_table(view, everything[view.name])


def _place(sink: Sink) -> str:
    """Where the file has a sink, and what it writes to, as errors start."""
    return f"{sink.place}: sinks.{sink.name}: {sink.path or sink.table or sink.format} cannot be written"


def _frames_of(sharded: ShardedState) -> ViewFrames:
    from ivme.spark.shards.view_frames import ViewFrames

    return ViewFrames(sharded)


def change_table(view: View, change: ViewDelta | None) -> pa.Table:
    """The changes of a view's rows in Arrow: its columns (parameters first), and the weight."""
    return delta_table([] if change is None else [change], view.change_schema, WEIGHT)
