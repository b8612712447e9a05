"""What happens to sinks when the file differs from the one they were written under.

A sink of changes adds up to its view. If the view is redefined, the sink gets the difference between the rows
that the old text has and those that the new one has, over the same tables, as one more batch. Both are computed by
databases in memory, so that after a crash the same batch is made again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ivme.engine.runtime.delta import delta_table
from ivme.pipeline.model import WEIGHT, Pipeline, ViewText
from ivme.pipeline.plan_changes import Definitions
from ivme.pipeline.state_database import StateDatabase
from ivme.spark.pipeline.replay import replay
from ivme.view import View


def with_definitions(pipeline: Pipeline, found: Definitions) -> Pipeline:
    """The pipeline with the views that its file had before."""
    place = pipeline.tables[0].place
    views = tuple(ViewText(name, query, place, tuple(options.items())) for name, query, options in found)
    return replace(pipeline, views=views)


def differences(
    pipeline: Pipeline, old: Definitions, database: StateDatabase, views: Collection[str], widths: Mapping[str, int]
) -> dict[str, pa.Table]:
    """What to add to the rows that views had under old definitions, for those that they have now.

    `widths` are the numbers of columns that tables had then, where they have more now.
    """
    before = _rows(with_definitions(pipeline, old), database, views, widths)
    after = _rows(pipeline, database, views, {})
    return {name: _net(after[name], before[name]) for name in views}


def _rows(
    pipeline: Pipeline, database: StateDatabase, views: Iterable[str], widths: Mapping[str, int]
) -> dict[str, pa.Table]:
    found: dict[str, pa.Schema] = {}

    def note(view: View) -> None:
        found[view.name] = view.change_schema

    changes = replay(pipeline, database, None, views, note, widths)
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
