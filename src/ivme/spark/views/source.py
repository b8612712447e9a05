"""The format `ivme_pipeline`: a view of a running pipeline as a table of Spark, and its changes as a stream.

    CREATE TEMPORARY VIEW sales USING ivme_pipeline OPTIONS (state '/data/shop.state', view 'per_city')

A table of the catalog has the same in the comment of its first column, since Spark hands no options of such tables to
formats in Python (`names` writes it). Each query asks when it runs, so that names outlive changes, and restarts of the
pipeline. Equalities on the parameters of a view become access requests, and filters that mean the same in both are
applied in the pipeline. A stream of changes reads a sink of changes, batch by batch, and needs no running pipeline.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from ivme.errors import SparkError
from ivme.pipeline.view_sink import ViewSink
from ivme.spark.pipeline.load import plain_arrow
from ivme.spark.views.asking import Address, Described, Question, ask, describe, is_answering
from ivme.spark.views.conditions import EQUALITIES, Condition, read_filter

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

FORMAT = "ivme_pipeline"


class PipelineSource(DataSource):
    """The format; options are `state` and `view`, or `sink` for a stream."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        if "sink" in self.options:
            return from_arrow_schema(ViewSink(self.options["sink"]).schema())
        state, view = self._wanted("state", "view")
        return from_arrow_schema(describe(Address.of(state), view).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        state, view = noted(schema) or self._wanted("state", "view")
        return ViewReader(state, view, describe(Address.of(state), view))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        (sink,) = self._wanted("sink")
        return ChangeReader(sink)

    def _wanted(self, *names: str) -> list[str]:
        for name in names:
            if name not in self.options:
                raise SparkError(f"the format {FORMAT} needs the option {name}")
        return [self.options[name] for name in names]


def note(state: str, view: str) -> str:
    """The comment that says of which view a table of the catalog is."""
    return json.dumps({"ivme": [state, view]})


def noted(schema: StructType) -> tuple[str, str] | None:
    """The state and the view of a table of the catalog; None of any other."""
    comment = schema.fields[0].metadata.get("comment", "") if schema.fields else ""
    if not comment.startswith('{"ivme":'):
        return None
    state, view = json.loads(comment)["ivme"]
    return state, view


class AddressPartition(InputPartition):
    """The one partition of a view, with the address that was good when the query was planned."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self.address = address


class ViewReader(DataSourceReader):
    """The rows of a view, requested by one task when it runs."""

    def __init__(self, state: str, view: str, told: Described) -> None:
        self._state, self._view, self._told = state, view, told
        self._conditions: list[Condition] = []

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        for each in filters:
            condition = read_filter(each, self._told.schema)
            if condition is None:
                yield each
            else:
                self._conditions.append(condition)

    def partitions(self) -> Sequence[InputPartition]:
        requests(self._view, self._told, self._conditions)
        return [AddressPartition(Address.of(self._state))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, AddressPartition)
        address = partition.address
        if not is_answering(address):
            address = Address.of(self._state)
        asked = Question(self._view, requests(self._view, self._told, self._conditions), self._conditions)
        yield from plain_arrow(ask(address, asked)).to_batches()


def requests(view: str, told: Described, conditions: Sequence[Condition]) -> list[dict[str, Any]]:
    """The access requests that equalities on the parameters of a view are; refused if one is left open."""
    chosen: dict[str, list[Any]] = {}
    for name in told.parameters:
        allowed = [c.values for c in conditions if c.column == name and c.kind in EQUALITIES and not c.negated]
        if allowed:
            chosen[name] = list(dict.fromkeys(allowed[0]))
        elif name not in told.defaults:
            raise SparkError(
                f"view {view} answers requests for {', '.join(told.parameters)}: say WHERE {name} = ..., with a "
                "constant or a list of them (spark.sql.python.filterPushdown.enabled must be true)"
            )
    return [dict(zip(chosen, values, strict=True)) for values in product(*chosen.values())]


class ChangeReader(DataSourceStreamReader):
    """The batches of a sink of changes; an offset is the number of the last batch that was read."""

    def __init__(self, path: str) -> None:
        self._path = path

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"batch": -1}

    def latestOffset(self, start: Mapping[str, int], limit: Any) -> dict[str, int]:  # noqa: ARG002, N802
        return {"batch": max([start["batch"], *ViewSink(self._path).batches()])}

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[InputPartition]:
        return [InputPartition((start["batch"] + 1, end["batch"]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        sink = ViewSink(self._path)
        rows = plain_arrow(sink.read(*partition.value))
        yield from rows.select([*sink.schema().names]).to_batches()
