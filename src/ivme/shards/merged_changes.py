"""The changes of rows and groups that have parts in several shards, merged by the driver after each step.

What changed in its part, each shard says by itself. What the groups that changed somewhere are now, all shards are
asked at the step: that is the value after it. Without the changes it is the value before. Nothing is kept in the
driver; a shard looks through its rows of the view once for a step that changes any (`whole_rows=True` spares that).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ivme.errors import DataError, SparkError
from ivme.shards.access import put_together
from ivme.shards.change_files import merged_path, partial_files, read_change
from ivme.shards.cluster import Question
from ivme.shards.engine import change_schema
from ivme.shards.merge import WEIGHT, consolidated, expanded
from ivme.shards.parts import EngineKey, Part, write_parts
from ivme.shards.sharding import Sharding, needs_merging

if TYPE_CHECKING:
    from ivme.shards.database import ShardedDatabase


def merge_changes(database: ShardedDatabase) -> None:
    """Merges what the shards wrote in the last step, for all views that need it; again after a crash, the same."""
    for entry in database._catalog.views:
        if entry.followed:
            made = database.view(entry.name).sharding
            if needs_merging(made):
                _merge_step(database, made)


def _merge_step(database: ShardedDatabase, made: Sharding) -> None:
    root, step = database.root, database.step
    for number, paths in partial_files(root, made.name).items():
        target = merged_path(root, made.name, number)
        if not target.exists():
            if number != step:
                continue
            try:
                change = _merged(database, made, pa.concat_tables(map(read_change, paths)))
            except DataError as error:
                raise SparkError(
                    f"the batch was applied, as step {step}, but what it changed in view {made.name} cannot be told: "
                    f"{error}; change the rows back, and follow the view anew"
                ) from error
            part = Part(EngineKey(made.name, 0, 0), made.name, change)
            write_parts(root, f"changes/{made.name}/{step}-m-m.part", 0, [part])
            target.with_name(f"{target.name}.part").replace(target)
        for path in paths:
            path.unlink()


def _merged(database: ShardedDatabase, made: Sharding, changed: pa.Table) -> pa.Table:
    """The change of the view's own rows, from the changes of their parts."""
    names = [column.name for column in made.partial if isinstance(column.source, str)]
    keys = changed.select(names if made.has_partial_rows else changed.column_names[:-1])
    head = {"op": "parts", "view": made.name}
    questions = [Question(shard, head, (keys,)) for shard in range(made.routing.shards)]
    after = pa.concat_tables(answer.tables[0] for answer in database._ask(questions) if answer.tables)
    before = consolidated(pa.concat_tables([after, _signed(changed, -1)]))
    rows = [_signed(_rows(made, before), -1), _rows(made, after)]
    return consolidated(pa.concat_tables(rows).cast(change_schema(made)))


def _rows(made: Sharding, parts: pa.Table) -> pa.Table:
    """The rows of the view that parts with weights make, with weights."""
    if made.has_partial_rows:
        return put_together(made, [expanded(parts)])
    rows = consolidated(parts)
    return rows.set_column(rows.num_columns - 1, WEIGHT, pa.array([1] * rows.num_rows, pa.int64()))


def _signed(rows: pa.Table, sign: int) -> pa.Table:
    weights = pa.array(rows.column(WEIGHT).to_numpy() * sign, pa.int64())
    return rows.set_column(rows.num_columns - 1, WEIGHT, weights)
