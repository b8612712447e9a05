"""Requests with lists to a view over shards: the rows of each member are requested, and put together here.

A view of several blocks is whole in one shard, which gets the lists as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.codes.arrow_types import arrow_type
from ivme.engine.read.lists import put_together, requests_of
from ivme.engine.runtime.decoding import is_global
from ivme.errors import PlanError
from ivme.query.model import Aggregate
from ivme.query.shape import is_shape
from ivme.shards.access import completed, read_request
from ivme.shards.merge import WEIGHT
from ivme.shards.sharding import Sharding

Ask = Callable[[pa.Table], pa.Table]
"""The rows of a request, which has one row, with their multiplicities as last column."""


def listed(made: Sharding, parameters: Mapping[str, Any], ask: Ask) -> pa.Table:
    """The rows of a request with lists, with their multiplicities as last column."""
    query, types = made.query, made.typed.types
    given = {name: values[0] for name, values in completed(made, {n: [v] for n, v in parameters.items()}).items()}
    members = requests_of(query, types, given)
    if is_shape(query):
        return ask(_with_lists(made, given))
    answers = [ask(read_request(made, each)) for each in members]
    schema = pa.schema([pa.field(c.name, arrow_type(t)) for c, t in zip(query.head, made.typed.head, strict=True)])
    parts = [
        (batch.drop_columns([WEIGHT]), batch.column(WEIGHT).to_numpy())
        for answer in answers
        for batch in answer.combine_chunks().to_batches()
    ]
    sources = [column.source for column in query.head]
    empty = tuple(each.definition.over_nothing if isinstance(each, Aggregate) else None for each in sources)
    found = put_together(query, parts, schema, empty if is_global(query.head, query.output) else None)
    rows = pa.Table.from_batches([batch for batch, _ in found], schema=schema)
    counts = np.concatenate([np.empty(0, np.int64), *(counts for _, counts in found)])
    return rows.append_column(WEIGHT, pa.array(counts, pa.int64()))


def _with_lists(made: Sharding, given: Mapping[str, Any]) -> pa.Table:
    lists = dict(made.query.lists)
    arrays = []
    for name, variable in zip(made.query.parameters, made.query.input, strict=True):
        type_ = arrow_type(made.typed.types[variable])
        value = [each for each in given[name] if each is not None] if name in lists else given[name]
        arrays.append(pa.array([value], pa.list_(type_) if name in lists else type_))
    return pa.table(arrays, names=list(made.query.parameters))


def refuse_lists(made: Sharding) -> None:
    """Refuses lists where values come one at a time."""
    if made.query.lists:
        raise PlanError(f"view {made.name} has lists, so call it with them: view(list=[...])")
