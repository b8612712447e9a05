"""The engine beside Spark's driver: batches of changes go into an embedded database, and on to the sinks, exactly once.

The life of a batch:

1. It is planned: the journal has its number, its source, and what the source needs to read it again.
2. Spark reads it; rows reach the driver as Arrow.
3. The database takes the changes and the number in one durable transaction. A number that it has is not taken again.
4. The sinks write what changed in the views, each idempotent by the number.
5. The journal notes that the sinks have it.

After a crash before 3 nothing of the batch is there, and it is planned anew. After a crash between 3 and 5 the batch is
read again from its plan, and `replay` makes the changes that a sink lacks.
"""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ivme.database import Database
from ivme.errors import DataError, PipelineError, SparkError
from ivme.pipeline.journal import ChangeFile, Planned, RunJournal
from ivme.pipeline.model import Pipeline, Rows, TableSource
from ivme.pipeline.quarantine import Quarantine
from ivme.pipeline.read import create_table
from ivme.query.model import Table
from ivme.spark.pipeline.dead_letters import separated, without_letters
from ivme.spark.pipeline.directory import BadFilesError, Directory, files_plan
from ivme.spark.pipeline.events import Applied, Refused, Report
from ivme.spark.pipeline.load import collected, conformed, load_frame
from ivme.spark.pipeline.redefinition import VIEWS, Definitions, definitions
from ivme.spark.pipeline.redelivery import finish_redelivery
from ivme.spark.pipeline.sinks import Sinks
from ivme.spark.pipeline.source import (
    AGAIN,
    LOAD,
    DeltaFeed,
    Source,
    TableChanges,
    ViewChanges,
    delta_version,
    table_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = "pipeline"
"""The name under which the database keeps the number of the last batch."""

_DUE, _DONE = "due", "done"


class Driver:
    """A pipeline that is open: its database, its sources and its sinks."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        report: Report = lambda _: None,
        memory_limit: int | str | None = None,
    ) -> None:
        self.spark, self.pipeline, self.report = spark, pipeline, report
        self.lock = threading.RLock()
        self._owing: str | None = None
        self._halted = False
        self.quarantine = Quarantine(pipeline.state / "quarantine")
        pipeline.state.mkdir(parents=True, exist_ok=True)
        self.database = Database(
            pipeline.state / "database",
            durability="sync",
            memory_limit=memory_limit,
            functions=pipeline.functions,
        )
        self.journal = RunJournal(pipeline.state / "journal.sqlite")
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def halt(self) -> None:
        """Takes no more batches of streams; waits for the one under way."""
        with self.lock:
            self._halted = True

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
        self._check_declarations()
        self._create_tables()
        if self.reached < 0:
            self._load()
        old = self._definitions_of_sinks()
        self._create_views()
        self.outlets = Sinks(self.spark, self.pipeline, self.database, self.journal)
        self.sources: dict[str, Source] = {
            source.table.name: self._source(source.table.name)
            for source in self.pipeline.tables
            if source.changes is not None and source.changes.kind != "stream"
        }
        self._recover(old)
        self._redefine(old)
        self._load_added()
        self.outlets.write_first(self.reached)

    def _create_tables(self) -> None:
        """Makes the tables that are not there; one that was added to the file of a state is to be loaded, too."""
        for source in self.pipeline.tables:
            name = source.table.name
            if name not in self.database.tables:
                if self.reached >= 0 and source.load is not None:
                    self.journal.note(f"load {name}", _DUE)
                create_table(self.database, source.table)

    def _definitions_of_sinks(self) -> Definitions:
        """The views as they were when the sinks were written last."""
        noted = self.journal.fact(VIEWS)
        if noted is not None:
            found: Definitions = json.loads(noted)
            return found
        there = ((name, self.journal.fact(f"view {name}")) for name in self.database.views)
        before = [[name, *json.loads(said)] for name, said in there if said is not None]
        return before or definitions(self.pipeline)

    def _check_declarations(self) -> None:
        """A state belongs to the tables that it was made with."""
        for source in self.pipeline.tables:
            said = _declaration(source.table)
            noted = self.journal.fact(f"table {source.table.name}")
            if noted is not None and noted != said:
                raise PipelineError(
                    f"{source.place}: table {source.table.name} is declared as {said}; the state in "
                    f"{self.pipeline.state} was made with {noted}. Declare it as it was, or use another state"
                )
            if noted is None:
                self.journal.note(f"table {source.table.name}", said)

    def _load(self) -> None:
        """Fills the tables from their sources, in one transaction, as batch 0; views are then built in bulk."""
        with self.database.batch(source=SOURCE, position=0) as batch:
            for source in self.pipeline.tables:
                if source.load is not None:
                    batch.insert(source.table.name, self._loaded(source, source.load))

    def _load_added(self) -> None:
        """Loads the tables that were added to the file, each as a batch of its own."""
        for source in self.pipeline.tables:
            name = source.table.name
            if source.load is None or self.journal.fact(f"load {name}") != _DUE:
                continue
            self._refuse_owing(f"table {name} was added")
            last = self.journal.last_of(LOAD + name)
            if last is None or last.number > self.reached:
                start, planned = time.perf_counter(), Planned(self.next_number(), LOAD + name, {})
                self.journal.plan(planned)
                rows = self._loaded(source, source.load)
                self.apply(planned, TableChanges(rows, np.ones(rows.num_rows, np.int64)), start, 0)
            self.journal.note(f"load {name}", _DONE)

    def _loaded(self, source: TableSource, load: Rows) -> pa.Table:
        name = source.table.name
        if load.format == "delta":
            self.journal.note(f"version of {name}", str(delta_version(str(load.path))))
        frame = load_frame(self.spark, load, source.table, self.loaded_version(name))
        return conformed(collected(frame, self.pipeline.state / "loading" / name), source.table)

    def loaded_version(self, table: str) -> int | None:
        """The version of the Delta table that a table was loaded from."""
        noted = self.journal.fact(f"version of {table}")
        return None if noted is None else int(noted)

    def _create_views(self) -> None:
        """Makes the views that are not there as the file has them; if one differs, all are made anew."""
        wanted = {view.name: json.dumps([view.query, dict(view.options)]) for view in self.pipeline.views}
        there = {name: self.journal.fact(f"view {name}") for name in self.database.views}
        if any(wanted.get(name) != said for name, said in there.items()):
            for name in reversed(self.database.views):
                self.database.drop_view(name)
        for view in self.pipeline.views:
            if view.name not in self.database.views:
                self.journal.note(f"view {view.name}", wanted[view.name])
                self.database.create_view(view.name, view.query, **dict(view.options))

    def _redefine(self, old: Definitions) -> None:
        """Brings sinks from the views that they were written under to those of the file, as a batch of its own.

        A crash may have left such a batch half done, for a file that has been changed again since.
        """
        new, last = definitions(self.pipeline), self.journal.last()
        half_done = last is not None and last.source == VIEWS and last.number == self.reached
        goals = [last.plan["views"], new] if half_done and last is not None else [new]
        for number, goal in enumerate(goals):
            if goal == old:
                continue
            self._refuse_owing("views were changed")
            if number or not half_done:
                self.outlets.check_columns(old, goal)
                planned = Planned(self.next_number(), VIEWS, {"views": goal})
                self.journal.plan(planned)
                with self.database.batch(source=SOURCE, position=planned.number):
                    pass
            self.outlets.write_difference(self.reached, old, goal)
            old = goal
            self.journal.note(VIEWS, json.dumps(goal))
        self.journal.note(VIEWS, json.dumps(new))

    def _refuse_owing(self, what: str) -> None:
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
        kind = DeltaFeed if source.changes.kind == "delta" else ViewChanges
        return kind(self.spark, source, self.journal)

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
            self._take(Planned(self.next_number(), table, plan), files)
            return True

    def take_stream(self, table: str, batch_id: int, delta: TableChanges, lag: int, start: float) -> None:
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
                self.outlets.write_missing(planned.number, table, lambda: self.without_letters_of(planned, delta))
                self._owing = None
                return
            self.journal.plan(planned)
            try:
                self.apply(planned, delta, start, lag)
            except DataError as error:
                self._apply_rest(planned, delta, start, lag, error)

    def next_number(self) -> int:
        last = self.journal.last()
        return max(self.reached, -1 if last is None else last.number) + 1

    def _take(self, planned: Planned, files: list[ChangeFile]) -> None:
        """Plans, reads and applies a batch; files that turn out bad are refused, and the rest goes on."""
        start = time.perf_counter()
        self.journal.plan(planned, files)
        source = self.sources[planned.source]
        try:
            delta = source.read(planned.plan)
        except BadFilesError as bad:
            self._without(planned, files, bad.reasons)
            return
        try:
            self.apply(planned, delta, start, source.lag())
        except DataError as error:
            if not files:
                raise
            if self.pipeline.stop_at_bad:
                self.journal.drop(planned)
                names = ", ".join(file.name for file in files)
                message = f"{names} of table {planned.source} cannot be applied: not applicable: {error}"
                raise DataError(f"{message}; the pipeline stops at bad files (on_bad: stop)") from error
            self._apply_rest(planned, delta, start, source.lag(), error)

    def apply(self, planned: Planned, delta: TableChanges, start: float, lag: int) -> None:
        applying = time.perf_counter()
        with self.database.batch(source=SOURCE, position=planned.number) as batch:
            if delta.size:
                batch.apply(table_of(planned.source), delta.rows, delta.weights)
        engine = time.perf_counter() - applying
        changes_out = self.outlets.write(planned.number)
        seconds = time.perf_counter() - start
        source = table_of(planned.source)
        self.report(Applied(planned.number, source, delta.size, changes_out, seconds, engine, lag))

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

    def _apply_rest(self, planned: Planned, delta: TableChanges, start: float, lag: int, error: DataError) -> None:
        """The database refused a batch: it takes what it can, and the other rows wait in quarantine."""
        table = planned.source
        if self.pipeline.stop_at_bad:
            message = f"a batch of table {table} cannot be applied: not applicable: {error}"
            raise DataError(f"{message}; the pipeline stops at bad changes (on_bad: stop)") from error
        good, letters = separated(self.database, self.pipeline.table(table).table, delta)
        if not letters.num_rows:
            raise error
        name = self.quarantine.keep_letters(table, planned.number, letters)
        self.apply(planned, good, start, lag)
        rows = f"{letters.num_rows} row{'s' if letters.num_rows > 1 else ''}"
        self.report(Refused(table, name, f"not applicable: {rows} of {delta.size}, the first: {error}"))

    def without_letters_of(self, planned: Planned, delta: TableChanges) -> TableChanges:
        """A batch that is read again, without the rows that were refused."""
        path = self.quarantine.letters_of(planned.source, planned.number)
        return without_letters(delta, pq.read_table(path)) if path.exists() else delta

    def _refuse(self, table: str, file: ChangeFile, path: Path, reason: str) -> None:
        if self.pipeline.stop_at_bad:
            raise DataError(f"{path} cannot be applied: {reason}; the pipeline stops at bad files (on_bad: stop)")
        self.quarantine.keep_file(table, path, reason)
        self.journal.refuse(table, file, reason)
        self.report(Refused(table, file.name, reason))

    # After a crash

    def _recover(self, old: Definitions) -> None:
        """Takes up what the last run left: a batch of which nothing was applied is planned anew, and sinks that lack
        the last one get it, under the views that were there then."""
        last = self.journal.last()
        if last is None or last.number < self.reached:
            return
        if last.source.startswith(AGAIN):
            finish_redelivery(self, last, old)
        elif last.number > self.reached:
            self.journal.drop(last)
        elif last.source.startswith(LOAD):
            table = table_of(last.source)
            self.outlets.write_missing(last.number, table, lambda: TableChanges(*self.database.contents(table)), old)
        elif last.source in self.sources:
            read = self.sources[last.source].read
            self.outlets.write_missing(
                last.number, last.source, lambda: self.without_letters_of(last, read(last.plan)), old
            )
        elif last.source != VIEWS:
            self._recover_stream(last)

    def _recover_stream(self, last: Planned) -> None:
        """The last batch came from a stream: Spark hands it over again, for the database or for the sinks alone."""
        if self.outlets.lacks_changes(last.number):
            self._owing = last.source
        else:
            self.outlets.write_missing(last.number, last.source, None)


def _declaration(table: Table) -> str:
    columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
    key = f" primary key ({', '.join(table.primary_key)})" if table.primary_key else ""
    promised = f"{' append-only' * table.append_only}{' static' * table.static}"
    further = [f" unique ({', '.join(each)})" for each in table.unique]
    further += [f" not null ({', '.join(table.not_null)})"] if table.not_null else []
    return f"({columns}){key}{promised}{''.join(further)}{''.join(f' {each}' for each in table.references)}"
