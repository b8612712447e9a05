"""The engine beside Spark's driver: batches of changes go into an embedded database, and on to the sinks, exactly once.

The life of a batch:

1. It is planned: the journal has its number, its source, and what the source needs to read it again.
2. Spark reads it; rows reach the driver as Arrow.
3. The database takes the changes and the number in one durable transaction. A number that it has is not taken again.
4. The sinks write what changed in the views, each idempotent by the number.
5. The journal notes that the sinks have it.

After a crash before 3 nothing of the batch exists, and it is planned again. After a crash between 3 and 5 the batch is
read again from its plan, and `replay` makes the changes that a sink lacks.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from ivme.errors import DataError, PipelineError, SparkError
from ivme.pipeline.journal import ChangeFile, Planned, RunJournal
from ivme.pipeline.model import Pipeline
from ivme.pipeline.plan_changes import VIEWS, Definitions, old_definitions
from ivme.pipeline.quarantine import Quarantine, letters_name
from ivme.pipeline.source_batch import SourceBatch
from ivme.pipeline.state_copy import StateCopy
from ivme.pipeline.status import WAITING
from ivme.pipeline.table_changes import TableChanges
from ivme.pipeline.taken import TakenBatches
from ivme.pipeline.transactions import waiting
from ivme.pipeline.watermarks import clock_changes, without_old
from ivme.spark.pipeline.dead_letters import without_letters
from ivme.spark.pipeline.directory import BadFilesError, Directory, files_plan
from ivme.spark.pipeline.events import Applied, Refused, Report
from ivme.spark.pipeline.evolving import backfill_grown, evolve_tables, refuse_impossible
from ivme.spark.pipeline.iceberg import IcebergFeed
from ivme.spark.pipeline.jdbc_source import JdbcRows
from ivme.spark.pipeline.load import has_delta
from ivme.spark.pipeline.open_database import SOURCE, open_database
from ivme.spark.pipeline.opening import (
    create_tables,
    create_views,
    load_added,
    load_all,
    redefine,
)
from ivme.spark.pipeline.redelivery import finish_redelivery
from ivme.spark.pipeline.sinks import Sinks
from ivme.spark.pipeline.source import AGAIN, BACKFILL, LOAD, DeltaFeed, Source, ViewChanges, table_of
from ivme.spark.pipeline.taking import (
    Prepared,
    StoppedError,
    prepared,
    prepared_without_refused,
    stopped,
    told,
)
from ivme.spark.pipeline.tracing import batch_span
from ivme.spark.pipeline.writers import require_packages
from ivme.spark.session.failure import told_failures
from ivme.spark.session.jobs import described_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Driver:
    """A pipeline that is open: its database, its sources and its sinks."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        report: Report = lambda _: None,
        memory_limit: int | str | None = None,
    ) -> None:
        require_packages(pipeline, has_delta(spark))
        self.spark, self.pipeline, self.report = spark, pipeline, report
        self.lock = threading.RLock()
        self._owing: str | None = None
        self._halted = False
        self.quarantine = Quarantine(pipeline.state / "quarantine")
        self.taken = TakenBatches(pipeline.state / "taken")
        self._copy = None if pipeline.copy is None else StateCopy(pipeline.copy, pipeline.state)
        if self._copy is not None:
            self._copy.restore()
        pipeline.state.mkdir(parents=True, exist_ok=True)
        self.journal = RunJournal(pipeline.state / "journal.sqlite")
        try:
            self.database, self.sharded = open_database(spark, pipeline, self.journal, memory_limit)
        except BaseException:
            self.journal.close()
            raise
        try:
            if self._copy is not None:
                self._copy.claim()
            with told_failures(spark, f"{pipeline.file}: Spark failed"):
                self._open()
        except BaseException:
            self.close()
            raise

    def halt(self) -> None:
        """Takes no more batches of streams; waits for the one under way."""
        with self.lock:
            self._halted = True

    def resume(self) -> None:
        """Takes batches of streams again after `halt`."""
        with self.lock:
            self._halted = False

    def close(self) -> None:
        with self.lock:
            self.database.close()
            self.journal.close()

    @property
    def reached(self) -> int:
        """The number of the last batch that the database has; -1 before the load."""
        position = self.database.position(SOURCE)
        return -1 if position is None else position

    # Opening

    def _open(self) -> None:
        refuse_impossible(self)
        old = old_definitions(self.pipeline, self.journal)
        evolve_tables(self)
        create_tables(self)
        if self.reached < 0:
            load_all(self)
        create_views(self)
        self.outlets = Sinks(self.spark, self.pipeline, self.database, self.journal, self._save_copy, self.sharded)
        self.sources: dict[str, Source] = {
            source.table.name: self._source(source.table.name)
            for source in self.pipeline.sources
            if source.changes is not None and source.changes.kind != "stream"
        }
        self._recover(old)
        redefine(self, old)
        backfill_grown(self)
        load_added(self)
        self.outlets.write_first(self.reached)
        if self.sharded is not None:
            self.sharded.release()

    def _save_copy(self) -> None:
        """Brings the copy of the state up to date; sinks write nothing that it does not have."""
        if self._copy is not None:
            self._copy.save(self.journal)

    def loaded_version(self, table: str) -> int | None:
        """The version of the Delta table that a table was loaded from."""
        noted = self.journal.fact(f"version of {table}")
        return None if noted is None else int(noted)

    def refuse_owing(self, what: str) -> None:
        """Refuses a changed file while a stream owes its last batch to the sinks."""
        if self._owing is not None:
            raise PipelineError(
                f"{self.pipeline.file}: {what}, while the last batch of table {self._owing} has not reached all sinks; "
                "run the pipeline as it was once more, then change it"
            )

    def _source(self, table: str) -> Source:
        source = self.pipeline.table(table)
        assert source.changes is not None
        if source.changes.kind == "directory":
            return Directory(self.spark, source, self.journal, lambda f, path, why: self._refuse(table, f, path, why))
        kinds: dict[str, Callable[..., Source]] = {
            "delta": DeltaFeed,
            "iceberg": IcebergFeed,
            "view": ViewChanges,
            "jdbc": JdbcRows,
        }
        return kinds[source.changes.kind](self.spark, source, self.journal)

    # Batches

    def step(self, table: str) -> bool:
        """Takes the next batch of a table's changes through; False if there is none.

        A stream that owes its last batch to the sinks comes first: Spark will hand it over again.
        """
        with self.lock:
            if self._owing is not None:
                return False
            source = self.sources[table]
            found = source.next_plan()
            if found is None:
                return False
            plan, files = found
            number = self.next_number()
            with batch_span(self.pipeline.name, number, table):
                self._take(Planned(number, table, plan), files)
            return True

    def take_stream(self, table: str, batch_id: int, read: SourceBatch, lag: int, start: float) -> None:
        """Takes a batch that Spark's streaming hands over, which it does again after a failure."""
        with self.lock:
            if self._halted:
                raise SparkError("the pipeline is stopping; Spark hands this batch over again when it runs again")
            last = self.journal.last_of(table)
            if last is not None and batch_id < last.plan["batch"]:
                raise SparkError(
                    f"the stream of table {table} is at batch {batch_id}, and batch {last.plan['batch']} has been "
                    f"applied: its checkpoint in {self.pipeline.state / 'streams'} was lost; start with another state"
                )
            again = last is not None and last.plan["batch"] == batch_id
            planned = last if again and last is not None else Planned(self.next_number(), table, {"batch": batch_id})
            if again and planned.number <= self.reached:
                self.outlets.write_missing(planned.number, lambda: self._changes_again(planned, lambda: read))
                self._owing = None
                return
            self.journal.plan(planned)
            with batch_span(self.pipeline.name, planned.number, table):
                self.take(planned, read, start, lag)

    def next_number(self) -> int:
        last = self.journal.last()
        return max(self.reached, -1 if last is None else last.number) + 1

    def _take(self, planned: Planned, files: list[ChangeFile]) -> None:
        """Plans, reads and applies a batch; files that turn out bad are refused, and the rest goes on."""
        start = time.perf_counter()
        self.journal.plan(planned, files)
        source = self.sources[planned.source]
        try:
            with described_jobs(
                self.spark, f"ivme {self.pipeline.name}", f"batch {planned.number} of {planned.source}"
            ):
                read = source.read(planned.plan)
        except BadFilesError as bad:
            self._without(planned, files, bad.reasons)
            return
        try:
            self.take(planned, read, start, source.lag())
        except StoppedError:
            self.journal.drop(planned)
            raise

    def take(self, planned: Planned, read: SourceBatch, start: float, lag: int) -> None:
        """Takes what was read of a batch; rows that cannot be taken are set aside."""
        table = self.pipeline.table(table_of(planned.source)).table
        found = prepared(self.pipeline, self.database, table, read, planned.number)
        try:
            self._check_letters(planned, found, read.size)
            self.apply_prepared(planned, found, start, lag)
        except StoppedError:
            raise
        except DataError as error:
            if self.pipeline.stop_at_bad:
                raise stopped(planned.source, f"not applicable: {error}") from error
            found = prepared_without_refused(self.pipeline, self.database, table, read, planned.number, error)
            self._check_letters(planned, found, read.size)
            self.apply_prepared(planned, found, start, lag)
        for name, letters in found.letters.items():
            count = letters.num_rows
            self.report(Refused(name, letters_name(planned.number), told(letters, max(read.size, count)), count))

    def _check_letters(self, planned: Planned, found: Prepared, rows: int) -> None:
        """Stops at bad rows if the pipeline is to, or if too many wait already; otherwise keeps them."""
        limit, waiting = self.pipeline.bad_limit, self.quarantine.waiting() + found.set_aside
        for table, letters in found.letters.items():
            if self.pipeline.stop_at_bad:
                raise stopped(table, told(letters, rows))
            if limit is not None and waiting > limit:
                raise stopped(table, f"{told(letters, rows)}; {waiting} rows would wait, and bad_limit is {limit}")
        for table, letters in found.letters.items():
            self.quarantine.keep_letters(table, planned.number, letters)

    def apply_prepared(self, planned: Planned, found: Prepared, start: float, lag: int) -> None:
        """Applies what was made of a batch, and moves the clock; keeps what its source cannot give again."""
        moved = clock_changes(self.database, self.pipeline.tables, found.changes)
        changes = without_old(self.database, self.pipeline.tables, {**found.changes, **moved})
        if moved or not found.is_repeatable:
            self.taken.save(planned.number, changes)
        self.apply(planned, changes, start, lag)
        if self.pipeline.together:
            self.journal.note(WAITING, json.dumps(waiting(self.database, self.pipeline.together)))

    def apply(self, planned: Planned, changes: Mapping[str, TableChanges], start: float, lag: int) -> None:
        """The database takes changes and the number of their batch, and the sinks get what changed in the views."""
        if self.sharded is not None:
            self._save_copy()  # shards may outlive this machine, and know of the batch then
        applying, table = time.perf_counter(), table_of(planned.source)
        with self.database.batch(source=SOURCE, position=planned.number) as batch:
            for name, delta in changes.items():
                if delta.size:
                    batch.apply(name, delta.rows, delta.weights)
        engine = time.perf_counter() - applying
        rewritten = self.outlets.rewritten
        changes_out = self.outlets.write(planned.number)
        rewritten = self.outlets.rewritten - rewritten
        seconds = time.perf_counter() - start
        rows = sum(changes[each.table.name].size for each in self.pipeline.tables if each.table.name in changes)
        self.report(Applied(planned.number, table, rows, changes_out, seconds, engine, lag, rewritten))

    def _without(self, planned: Planned, files: list[ChangeFile], reasons: dict[str, str]) -> None:
        source = self.sources[planned.source]
        assert isinstance(source, Directory)
        if self.pipeline.stop_at_bad:
            self.journal.drop(planned)
        for file in files:
            if file.name in reasons:
                self._refuse(planned.source, file, source.folder / file.name, reasons[file.name])
        rest = [file for file in files if file.name not in reasons]
        if not rest:
            self.journal.drop(planned)
            return
        self._take(Planned(planned.number, planned.source, files_plan(rest)), rest)

    def _changes_again(self, planned: Planned, read: Callable[[], SourceBatch]) -> Mapping[str, TableChanges]:
        """The changes of a batch that the database has: those that were stored, or what the source gives again."""
        kept = self.taken.load(planned.number)
        if kept is not None:
            return kept
        table, content = table_of(planned.source), read().content
        assert isinstance(content, TableChanges), "other changes are kept"
        return {table: self.without_letters_of(table, planned.number, content)}

    def without_letters_of(self, table: str, batch: int, delta: TableChanges) -> TableChanges:
        """A batch that is read again, without the rows that were refused."""
        path = self.quarantine.letters_of(table, batch)
        return without_letters(delta, pq.read_table(path)) if path.exists() else delta

    def _refuse(self, table: str, file: ChangeFile, path: Path, reason: str) -> None:
        if self.pipeline.stop_at_bad:
            raise DataError(f"{path} cannot be applied: {reason}; the pipeline stops at bad files (on_bad: stop)")
        self.quarantine.keep_file(table, path, reason)
        self.journal.refuse(table, file, reason)
        self.report(Refused(table, file.name, reason))

    # After a crash

    def _recover(self, old: Definitions) -> None:
        """Continues where the last run ended: a batch of which nothing is applied is planned again, and sinks that lack
        the last one get it, under the views that were there then."""
        last = self.journal.last()
        if last is None or last.number < self.reached:
            return
        if last.source.startswith(AGAIN):
            finish_redelivery(self, last, old)
        elif last.number > self.reached:
            for each in self.pipeline.sources:
                self.quarantine.letters_of(each.table.name, last.number).unlink(missing_ok=True)
            self.journal.drop(last)
        elif last.source.startswith((LOAD, BACKFILL)):
            table = table_of(last.source)
            self.outlets.write_missing(last.number, lambda: self._loaded_again(table, last.number), old)
        elif last.source in self.sources:
            source = self.sources[last.source]
            self.outlets.write_missing(
                last.number, lambda: self._changes_again(last, lambda: source.read(last.plan)), old
            )
        elif last.source != VIEWS:
            self._recover_stream(last)

    def _loaded_again(self, table: str, number: int) -> Mapping[str, TableChanges]:
        """The changes of a batch that loaded a table: those that were stored, or all that the table has."""
        return self.taken.load(number) or {table: TableChanges(*self.database.contents(table))}

    def _recover_stream(self, last: Planned) -> None:
        """The last batch came from a stream: Spark hands it over again, for the database or for the sinks alone."""
        kept = self.taken.load(last.number)
        if kept is not None:
            self.outlets.write_missing(last.number, lambda: kept)
        elif self.sharded is None and self.outlets.lacks_changes(last.number):
            self._owing = last.source
        else:
            self.outlets.write_missing(last.number, None)
