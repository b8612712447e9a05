"""The changes of rows and groups that have parts in several shards, merged by the driver while the step is open.

What changed in its part, each shard says by itself. What the groups that changed somewhere are now, all shards are
asked within the step: that is the value after it. Without the changes it is the value before. A sum that does not fit
its type is found here, before the step has happened, also one of a view that the step makes. Nothing is stored in the
driver; a shard looks through its rows of the view once for a step that changes any (`whole_rows=True` spares that). Of
a view that shows the first rows in an order, all shards tell their first ones.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from ivme.errors import DataError
from ivme.shards.access import in_order, put_together, questions_for, read_request
from ivme.shards.catalog import ShardCatalog
from ivme.shards.coordinator import Coordinator, OpenStep
from ivme.shards.engine import change_schema
from ivme.shards.exchange import Told
from ivme.shards.merge import WEIGHT, consolidated, expanded
from ivme.shards.message import Message, Question
from ivme.shards.parts import CHANGE, EngineKey, PackedPart, Part
from ivme.shards.sharding import Sharding, sharding


def merged_changes(coordinator: Coordinator, step: OpenStep) -> list[PackedPart]:
    """The changes of followed views whose rows have to be merged; DataError if a sum of any view does not fit."""
    found = []
    try:
        _check_new(coordinator, step)
        for view, changes in step.partial_changes().items():
            entry = coordinator.catalog.view(view)
            made = sharding(entry, coordinator.catalog.tables)
            change = _merged(coordinator, step, made, pa.concat_tables(changes))
            if change.num_rows and entry.followed:
                found.append(PackedPart.of(Part(EngineKey(view, 0, 0), CHANGE, change)))
    except DataError as error:
        raise DataError(f"{error}; nothing was changed") from None
    return found


def merged_feeds(coordinator: Coordinator, step: OpenStep) -> list[Told]:
    """The changes of views that feed others, of one row or the first rows in an order, after a round of a step."""
    try:
        return [
            (view, _merged(coordinator, step, sharding(step.catalog.view(view), step.catalog.tables), changes))
            for view, changes in ((view, pa.concat_tables(each)) for view, each in step.partial_changes().items())
        ]
    except DataError as error:
        raise DataError(f"{error}; nothing was changed") from None


def merged_rows(catalog: ShardCatalog, view: str, ask: Callable[[list[Question]], list[Message]]) -> pa.Table:
    """All rows of such a view, with their weights as last column."""
    made = sharding(catalog.view(view), catalog.tables)
    answers = ask(questions_for(made, read_request(made, {})))
    return put_together(made, [answer.tables[0] for answer in answers]).cast(change_schema(made))


def _check_new(coordinator: Coordinator, step: OpenStep) -> None:
    """Raises DataError if a sum of a view that the step makes does not fit."""
    there = {view.name for view in coordinator.catalog.views}
    for view in sorted(step.large_views() - there):
        made = sharding(step.catalog.view(view), step.catalog.tables)
        answers = coordinator.within(step, {"op": "parts", "view": view}, (pa.table({}),))
        _rows(made, pa.concat_tables(answer.tables[0] for answer in answers if answer.tables))


def _merged(coordinator: Coordinator, step: OpenStep, made: Sharding, changed: pa.Table) -> pa.Table:
    """The change of the view's own rows, from the changes of their parts."""
    names = [column.name for column in made.partial if isinstance(column.source, str)]
    keys = changed.select(names if made.has_partial_rows else [] if made.is_cut else changed.column_names[:-1])
    answers = coordinator.within(step, {"op": "parts", "view": made.name}, (keys,))
    after = pa.concat_tables(answer.tables[0] for answer in answers if answer.tables)
    before = consolidated(pa.concat_tables([after, _signed(changed, -1)]))
    rows = [_signed(_rows(made, before), -1), _rows(made, after)]
    return consolidated(pa.concat_tables(rows).cast(change_schema(made)))


def _rows(made: Sharding, parts: pa.Table) -> pa.Table:
    """The rows of the view that parts with weights make, with weights."""
    if made.has_partial_rows:
        return put_together(made, [expanded(parts)])
    rows = consolidated(parts)
    if made.order is not None:
        return in_order(made.order, rows)
    return rows.set_column(rows.num_columns - 1, WEIGHT, pa.array([1] * rows.num_rows, pa.int64()))


def _signed(rows: pa.Table, sign: int) -> pa.Table:
    weights = pa.array(rows.column(WEIGHT).to_numpy() * sign, pa.int64())
    return rows.set_column(rows.num_columns - 1, WEIGHT, weights)
