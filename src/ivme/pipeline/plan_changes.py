"""`ivme plan`: how a pipeline's file differs from its state, and what the next run does about it; without Spark.

The driver asks the same before it changes anything, so that what cannot be done is refused with nothing changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ivme.database import Database
from ivme.errors import IvmeError
from ivme.pipeline.declarations import declared_columns, edit_of
from ivme.pipeline.history import HISTORY
from ivme.pipeline.journal import RunJournal
from ivme.pipeline.model import Pipeline, Sink
from ivme.pipeline.read_tables import create_table
from ivme.pipeline.tables_of_source import tables_of
from ivme.query.model import Table

VIEWS = "views"
"""The fact that says what sinks were written under, and the source of batches that views written otherwise make."""

Definitions = list[list[Any]]
"""The views of a file, as plain data: name, query, options."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that a run does about a difference, or why it cannot."""

    kind: str
    name: str
    what: str
    refused: bool = False
    is_edit: bool = False
    """Whether a table of the state gets other columns."""

    def __str__(self) -> str:
        return f"{'refused: ' if self.refused else ''}{self.kind} {self.name}: {self.what}"


def definitions(pipeline: Pipeline) -> Definitions:
    """The views of the file, as the journal holds them."""
    found: Definitions = json.loads(json.dumps([[v.name, v.query, dict(v.options)] for v in pipeline.views]))
    return found


def described(sink: Sink) -> str:
    """Where a sink writes what, as the journal holds it."""
    return json.dumps([sink.view, sink.mode, sink.format, sink.table if sink.format == "iceberg" else sink.path])


def planned_steps(pipeline: Pipeline, journal: RunJournal) -> list[Step]:
    """All differences between a file and its state, in the order in which a run takes them up."""
    if journal.fact("owner") is None and not journal.facts("table "):
        return list(_first_run(pipeline))
    return [*_tables(pipeline, journal), *_views(pipeline, journal), *_sinks(pipeline, journal)]


def missing_sources(pipeline: Pipeline, journal: RunJournal) -> Iterator[Step]:
    """The sources on this machine's disk that the next run reads, and that are not there."""
    for source in pipeline.tables:
        name = source.table.name
        load = source.load if journal.fact(f"table {name}") is None else None
        if load is not None and load.path is not None and _is_missing(load.path):
            yield Step("table", name, f"{load.place}: its load: there is no {load.path}; check the path", refused=True)
        changes = source.changes
        if changes is not None and changes.kind == "directory" and _is_missing(str(changes.rows.path)):
            what = f"{changes.rows.place}: its changes: there is no directory {changes.rows.path}; make it"
            yield Step("table", name, what, refused=True)


def _is_missing(path: str) -> bool:
    """Whether a path is one of this machine, not a pattern of several, and nothing is there."""
    return "://" not in path and not set("*?[{") & set(path) and not Path(path).exists()


def _first_run(pipeline: Pipeline) -> Iterator[Step]:
    for source in pipeline.tables:
        yield Step("table", source.table.name, "is created" + (" and loaded" if source.load is not None else ""))
    yield from (Step("view", view.name, "is built") for view in pipeline.views)
    yield from (Step("sink", sink.name, f"starts with all rows of {sink.view}") for sink in pipeline.sinks)


def _tables(pipeline: Pipeline, journal: RunJournal) -> Iterator[Step]:
    wanted = [table for source in pipeline.tables for table in tables_of(pipeline, source)]
    for table in wanted:
        noted = journal.fact(f"table {table.name}")
        parent = table.name.removeprefix(HISTORY)
        if noted is None and parent != table.name and journal.last_of(parent) is not None:
            what = f"events of table {parent} were taken without a history; use another state"
            yield Step("table", table.name, what, refused=True)
        elif noted is None:
            loaded = any(s.table.name == table.name and s.load is not None for s in pipeline.tables)
            yield Step("table", table.name, "is created" + (" and loaded" if loaded else ""))
        if noted is None:
            continue
        edit = edit_of(noted, table)
        if edit.refused:
            yield Step("table", table.name, f"{edit.refused}; declare it as it was, or use another state", refused=True)
        for column in edit.added:
            yield Step("table", table.name, f"gets the column {column.name} {column.type}", is_edit=True)
        for old, new in edit.widened:
            yield Step("table", table.name, f"column {old.name} becomes {new.type} (it is {old.type})", is_edit=True)
    names = {table.name for table in wanted}
    for name in sorted(set(journal.facts("table ")) - names):
        yield Step("table", name, "is not in the file; it stays in the state")


def _views(pipeline: Pipeline, journal: RunJournal) -> Iterator[Step]:
    old = {name: said for name, *said in old_definitions(pipeline, journal)}
    new = {name: said for name, *said in definitions(pipeline)}
    for name, said in new.items():
        if name not in old:
            yield Step("view", name, "is built")
        elif old[name] != said:
            yield Step("view", name, "has a new definition, and is rebuilt; its sinks get the difference")
    yield from (Step("view", name, "is dropped") for name in old if name not in new)


def _sinks(pipeline: Pipeline, journal: RunJournal) -> Iterator[Step]:
    for sink in pipeline.sinks:
        noted = journal.fact(f"sink {sink.name}")
        if journal.written(sink.name) is None:
            yield Step("sink", sink.name, f"starts with all rows of {sink.view}")
        elif noted not in (None, described(sink)):
            what = f"wrote {noted} (view, mode, format, path) and is {described(sink)} now; give it another name"
            yield Step("sink", sink.name, what, refused=True)
    yield from _other_columns(pipeline, journal)


def _other_columns(pipeline: Pipeline, journal: RunJournal) -> Iterator[Step]:
    """Sinks of changes whose views have other columns now: their readers would see two layouts."""
    if not any(step.is_edit for step in _tables(pipeline, journal)) and old_definitions(
        pipeline, journal
    ) == definitions(pipeline):
        return
    before, after = _schemas(*_old_pipeline(pipeline, journal)), _schemas(pipeline, [s.table for s in pipeline.tables])
    for sink in pipeline.sinks:
        had, has = before.get(sink.view), after.get(sink.view)
        if sink.mode != "changes" or journal.written(sink.name) is None or None in (had, has) or had == has:
            continue
        assert had is not None
        assert has is not None
        told = [", ".join(f"{field.name} {field.type}" for field in each) for each in (had, has)]
        what = (
            f"has changes of view {sink.view} with the columns {told[0]}, and the view has {told[1]} now; write to a "
            "sink with another name and path"
        )
        yield Step("sink", sink.name, what, refused=True)


def old_definitions(pipeline: Pipeline, journal: RunJournal) -> Definitions:
    """The views as they were when the sinks were written last."""
    noted = journal.fact(VIEWS)
    if noted is not None:
        found: Definitions = json.loads(noted)
        return found
    there = journal.facts("view ")
    return [[name, *json.loads(said)] for name, said in there.items()] or definitions(pipeline)


def _old_pipeline(pipeline: Pipeline, journal: RunJournal) -> tuple[Pipeline, list[Table]]:
    from ivme.pipeline.model import ViewText

    place = pipeline.tables[0].place
    old = old_definitions(pipeline, journal)
    views = tuple(ViewText(name, query, place, tuple(options.items())) for name, query, options in old)
    tables = []
    for name, said in journal.facts("table ").items():
        try:
            tables.append(Table(name, declared_columns(said)[0]))
        except IvmeError:
            continue  # of a version that wrote it otherwise: its views cannot be compared
    return replace(pipeline, views=views), tables


def _schemas(pipeline: Pipeline, tables: list[Table]) -> dict[str, pa.Schema]:
    """The columns of views, as far as their tables are known."""
    found: dict[str, pa.Schema] = {}
    with Database(functions=pipeline.functions) as database:
        for table in tables:
            create_table(database, replace(table, append_only=False, static=False))
        for view in pipeline.views:
            try:
                made = database.create_view(view.name, view.query, **dict(view.options))
            except IvmeError:
                continue  # reads a table that is not known any more
            found[view.name] = made.change_schema
    return found
