"""What happens to sinks when the file differs from the one they were written under.

A sink of changes adds up to its view. If the view is written otherwise, the sink gets the difference between the rows
that the old text has and those that the new one has, over the same tables, as one more batch. Both are computed by
databases in memory, so that after a crash the same batch is made again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ivme.database import Database
from ivme.engine.runtime.delta import delta_table
from ivme.pipeline.model import WEIGHT, Pipeline, Sink, ViewText
from ivme.spark.pipeline.replay import replay
from ivme.view import View

VIEWS = "views"
"""The source of the batches that views written otherwise make, and the fact that says what sinks were written under."""

Definitions = list[list[Any]]
"""The views of a file, as plain data: name, query, options."""


def definitions(pipeline: Pipeline) -> Definitions:
    """The views of the file, as the journal holds them."""
    found: Definitions = json.loads(json.dumps([[v.name, v.query, dict(v.options)] for v in pipeline.views]))
    return found


def with_definitions(pipeline: Pipeline, found: Definitions) -> Pipeline:
    """The pipeline with the views that its file had before."""
    place = pipeline.tables[0].place
    views = tuple(ViewText(name, query, place, tuple(options.items())) for name, query, options in found)
    return replace(pipeline, views=views)


def described(sink: Sink) -> str:
    """Where a sink writes what, as the journal holds it."""
    return json.dumps([sink.view, sink.mode, sink.format, sink.path])


def differences(
    pipeline: Pipeline, old: Definitions, database: Database, views: Collection[str]
) -> dict[str, pa.Table]:
    """What to add to the rows that views had under old definitions, for those that they have now."""
    before = _rows(with_definitions(pipeline, old), database, views)
    after = _rows(pipeline, database, views)
    return {name: _net(after[name], before[name]) for name in views}


def schemas(pipeline: Pipeline, database: Database, views: Iterable[str]) -> dict[str, pa.Schema]:
    """The columns of views, with their parameters, under the definitions of a pipeline."""
    found: dict[str, pa.Schema] = {}
    replay(pipeline, database, None, views, lambda view: found.update({view.name: view.change_schema}))
    return found


def _rows(pipeline: Pipeline, database: Database, views: Iterable[str]) -> dict[str, pa.Table]:
    found: dict[str, pa.Schema] = {}

    def note(view: View) -> None:
        found[view.name] = view.change_schema

    changes = replay(pipeline, database, None, views, note)
    return {
        name: delta_table([] if change is None else [change], found[name], WEIGHT) for name, change in changes.items()
    }


def _net(after: pa.Table, before: pa.Table) -> pa.Table:
    """Rows that came, and rows that went."""
    gone = before.set_column(before.num_columns - 1, WEIGHT, pc.negate(before.column(WEIGHT)))
    both = pa.concat_tables([after, gone.cast(after.schema)])
    keys = [name for name in both.column_names if name != WEIGHT]
    if not keys or any(pa.types.is_nested(both.schema.field(name).type) for name in keys):
        return both
    summed = both.group_by(keys).aggregate([(WEIGHT, "sum")]).rename_columns([*keys, WEIGHT])
    return summed.filter(pc.not_equal(summed.column(WEIGHT), 0)).select(both.column_names).cast(both.schema)
