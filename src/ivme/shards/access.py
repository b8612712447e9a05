"""Access requests to a view over shards: which shards to ask, what, and how to put the answers together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.codes.nested_values import arrow_array
from ivme.engine.codes.value_check import value_check
from ivme.engine.ingest.rows import to_arrow
from ivme.engine.read.asked import signature
from ivme.engine.runtime.decoding import is_global
from ivme.errors import DataError, UnknownNameError
from ivme.query.defaults import default_of
from ivme.query.model import Aggregate, Column, Table
from ivme.query.order import Order
from ivme.query.types import Type
from ivme.shards.hashing import Hashes, hash_column
from ivme.shards.merge import WEIGHT, merge
from ivme.shards.message import Question
from ivme.shards.routing import asked_places, places
from ivme.shards.shard import REQUEST
from ivme.shards.sharding import Sharding
from ivme.views.ordered_rows import arrange


def read_request(made: Sharding, parameters: Mapping[str, Any]) -> pa.Table:
    """The parameters of one request, checked: a row in the types and the order of the view's.

    A value that its type does not hold equals nothing, as NULL does; as the end of a range it is an error.
    """
    query, given = made.query, completed(made, {name: [value] for name, value in parameters.items()})
    types = [made.typed.types[variable] for variable in query.input]
    found = [
        arrow_array([_held(made, name, given[name][0], type_)], type_)
        for name, type_ in zip(query.parameters, types, strict=True)
    ]
    return pa.table(found, names=list(query.parameters))


def _held(made: Sharding, name: str, value: Any, type_: Type) -> Any:
    try:
        return None if value is None else value_check(type_)(value)
    except (TypeError, ValueError) as error:
        if isinstance(error, ValueError) and not dict(made.query.ends).get(name):
            return None
        raise DataError(f"parameter {name} of view {made.name}: not a value of type {type_}: {error}") from None


def read_requests(made: Sharding, columns: Mapping[str, Any]) -> pa.Table:
    """The parameters of requests, checked: a row for each, in the types and the order of the view's."""
    query, columns = made.query, completed(made, columns)
    if not query.parameters:
        return pa.table({})
    described = (Column(n, made.typed.types[v]) for n, v in zip(query.parameters, query.input, strict=True))
    listed = [list(_values(columns[name])) for name in query.parameters]
    if len({len(values) for values in listed}) > 1:
        raise DataError(f"the columns of the requests of view {made.name} differ in length")
    return to_arrow(list(zip(*listed, strict=True)), Table(f"requests of {made.name}", tuple(described)))


def completed(made: Sharding, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of requests with the defaults of those left out."""
    query, found = made.query, dict(columns)
    variables = dict(zip(query.parameters, query.input, strict=True))
    defaults: dict[str, Any] = {}
    for name, value in query.defaults:
        default = default_of(value, made.typed.types[variables[name]])
        defaults[name] = [default] if name in dict(query.lists) else default
    for name in columns:
        if name not in query.parameters:
            raise UnknownNameError(f"view {made.name} has no parameter {name}; {signature(made.typed, defaults)}")
    requests = len(list(_values(next(iter(columns.values()))))) if columns else 1
    for name, value in defaults.items():
        found.setdefault(name, [value] * requests)
    missing = [name for name in query.parameters if name not in found]
    if missing:
        told = signature(made.typed, defaults)
        raise UnknownNameError(f"view {made.name} needs a value for {', '.join(missing)}; {told}")
    return found


def _values(column: Any) -> Iterable[Any]:
    return column.to_pylist() if hasattr(column, "to_pylist") else column  # type: ignore[no-any-return]


def _input_hashes(made: Sharding, requests: pa.Table) -> dict[str, Hashes]:
    routed = [(i, variable) for i, variable in enumerate(made.query.input) if variable in made.routing.variables]
    return {variable: hash_column(requests.column(i)) for i, variable in routed}


def questions_for(made: Sharding, requests: pa.Table) -> list[Question]:
    """Whom to ask for the rows of one request: the shards whose cells agree with its parameters."""
    wanted: dict[int, list[int]] = {}
    for pattern, shard in sorted(asked_places(made.routing, _input_hashes(made, requests))):
        wanted.setdefault(shard, []).append(pattern)
    sent = (requests,) if made.query.input else ()
    return [Question(s, {"op": "rows", "view": made.name, "patterns": found}, sent) for s, found in wanted.items()]


def put_together(made: Sharding, parts: Sequence[pa.Table]) -> pa.Table:
    """The rows of one request, with their multiplicities as last column, in the view's order if that is spread."""
    rows = _or_nothing(made, merge(made, parts))
    return rows if made.order is None else in_order(made.order, rows)


def in_order(order: Order, rows: pa.Table) -> pa.Table:
    """The rows that an order shows of some, with their multiplicities as last column; O(N log N)."""
    data = rows.drop_columns([WEIGHT])
    places, counts = arrange(data, rows.column(WEIGHT).to_numpy(), order)
    return data.take(pa.array(places)).append_column(WEIGHT, pa.array(counts, pa.int64()))


def questions_for_many(made: Sharding, requests: pa.Table) -> list[Question]:
    """Whom to ask for the rows of many requests: each shard for those that it may have rows of, by their numbers."""
    numbers: dict[int, set[int]] = {shard: set() for shard in range(made.routing.shards)}
    for _, shard, found in places(made.routing, _input_hashes(made, requests), requests.num_rows):
        numbers[shard].update(found.tolist())
    questions = []
    for shard, wanted in numbers.items():
        chosen = pa.array(sorted(wanted), pa.int64())
        sent = requests.take(chosen).add_column(0, REQUEST, chosen)
        questions.append(Question(shard, {"op": "many", "view": made.name}, (sent,)))
    return questions


def put_many_together(made: Sharding, requests: pa.Table, parts: Sequence[pa.Table]) -> pa.Table:
    """The rows of many requests in their order, the parameters in front."""
    together = pa.concat_tables(parts)
    whose = together.column(REQUEST).to_numpy()
    plain = together.drop_columns([REQUEST])
    order = np.argsort(whose, kind="stable")
    bounds = np.searchsorted(whose[order], np.arange(requests.num_rows + 1))
    answers = [
        put_together(made, [plain.take(pa.array(order[bounds[n] : bounds[n + 1]]))]) for n in range(requests.num_rows)
    ]
    found = pa.concat_tables(answers) if answers else merge(made, [plain.slice(0, 0)])
    chosen = np.repeat(np.arange(found.num_rows), np.maximum(found.column(WEIGHT).to_numpy(), 0))
    numbers = np.repeat(np.arange(len(answers)), [answer.num_rows for answer in answers])
    rows = found.drop_columns([WEIGHT]).take(pa.array(chosen, pa.int64()))
    asked = requests.take(pa.array(numbers[chosen], pa.int64()))
    names = [f":{name}" if name in rows.column_names else name for name in requests.column_names]
    return pa.table([*asked.columns, *rows.columns], names=[*names, *rows.column_names])


def _or_nothing(made: Sharding, rows: pa.Table) -> pa.Table:
    """Aggregates over everything are one row also over nothing: COUNT 0, everything else NULL."""
    query = made.query
    if rows.num_rows or not is_global(query.head, query.output):
        return rows
    values = [c.source.definition.over_nothing if isinstance(c.source, Aggregate) else None for c in query.head]
    columns = [pa.array([value], field.type) for value, field in zip([*values, 1], rows.schema, strict=True)]
    return pa.table(columns, schema=rows.schema)
