"""`spark.read.format("ivme")` and `readStream`: the rows and the changes of views as DataFrames.

Options: `checkpoint` and `view`; `parameter.NAME` for each parameter of the view. Each shard is a partition, which asks
the shard's own host. Where parts of rows are in several shards they are merged: by Spark for
`SparkDatabase.table`, in one task for the plain format.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ivme.engine.codes.arrow_types import arrow_type
from ivme.errors import SparkError, UnknownNameError
from ivme.shards.access import put_together, questions_for, read_request
from ivme.shards.changes import view_change
from ivme.shards.checkpoint import Checkpoint
from ivme.shards.engine import Engine, change_schema
from ivme.shards.lists import refuse_lists
from ivme.shards.merge import WEIGHT, expanded
from ivme.shards.present import Present
from ivme.shards.sharding import Sharding, needs_merging
from ivme.spark.shards.agreed_step import agreed
from ivme.store.checkpoint_store import open_checkpoint_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ivme.spark.shards.database import SparkDatabase

WEIGHTS = "_weight"
"""The column of a DataFrame with the weights of rows."""

_MOST_PARTITIONS = 8


class ViewSource(DataSource):
    """The format `ivme`."""

    @classmethod
    def name(cls) -> str:
        return "ivme"

    def _wanted(self) -> tuple[str, str]:
        missing = [name for name in ("checkpoint", "view") if name not in self.options]
        if missing:
            raise SparkError(f"format('ivme') needs the option {missing[0]}")
        return self.options["checkpoint"], self.options["view"]

    def schema(self) -> StructType:
        root, view = self._wanted()
        made = Present.of(root).view(view)
        if self.options.get("changes") == "true":
            return from_arrow_schema(_renamed(change_schema(made)))
        return from_arrow_schema(Engine.partial_schema(made) if self._partial(made) else row_schema(made))

    def _partial(self, made: Sharding) -> bool:
        return self.options.get("partial") == "true" and made.has_partial_rows

    def reader(self, schema: StructType) -> ViewReader:  # noqa: ARG002
        root, view = self._wanted()
        present = Present.of(root)
        made = present.view(view)
        return ViewReader(root, view, _parameters(made, self.options), self._partial(made))

    def streamReader(self, schema: StructType) -> ChangeReader:  # noqa: ARG002, N802
        root, view = self._wanted()
        if self.options.get("changes") != "true":
            raise SparkError("a stream of format('ivme') has the option changes=true; SparkDatabase.changes sets it")
        return ChangeReader(root, view, int(self.options["after"]), self.options["consumer"])


class ViewReader(DataSourceReader):
    """One partition for each shard that has rows, or one for all if their parts must be merged.

    It outlives changes of the view: each query that uses it reads the step that is the last one then.
    """

    def __init__(self, root: str, view: str, parameters: Mapping[str, Any], partial: bool) -> None:
        self._root, self._view, self._id = root, view, uuid.uuid4().hex
        self._parameters, self._partial = dict(parameters), partial

    def _questions(self, made: Sharding) -> list[Any]:
        return questions_for(made, read_request(made, self._parameters))

    def partitions(self) -> Sequence[InputPartition]:
        made = Present.of(self._root).view(self._view)
        if needs_merging(made) and not self._partial:
            return [InputPartition(-1)]
        return [InputPartition(number) for number in range(len(self._questions(made)))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        present = agreed(Present.of(self._root), self._id)
        made = present.view(self._view)
        questions = self._questions(made)
        chosen = questions if partition.value < 0 else [questions[partition.value]]
        parts = [answer.tables[0] for answer in present.ask(chosen)]
        rows = pa.concat_tables(parts) if self._partial else expanded(put_together(made, parts))
        yield from rows.to_batches(max_chunksize=65_536)


class ChangeReader(DataSourceStreamReader):
    """The changes of a followed view; offsets are the numbers of steps."""

    def __init__(self, root: str, view: str, after: int, consumer: str) -> None:
        self._root, self._view, self._after, self._consumer = root, view, after, consumer

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"step": self._after}

    def latestOffset(self, start: Mapping[str, int], limit: Any) -> dict[str, int]:  # noqa: ARG002, N802
        return {"step": max(start["step"], Present.of(self._root).step)}

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[InputPartition]:
        steps = range(start["step"] + 1, end["step"] + 1)
        size = -(-len(steps) // _MOST_PARTITIONS)
        return [InputPartition(steps[i : i + size]) for i in range(0, len(steps), max(size, 1))]

    def commit(self, end: Mapping[str, int]) -> None:
        """What is before `end` is no longer stored for this stream."""
        _checkpoint(self._root).write_consumer(self._consumer, self._view, end["step"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        checkpoint = _checkpoint(self._root)
        for change in (each for step in partition.value for each in view_change(checkpoint, self._view, step)):
            yield from change.rename_columns([*change.column_names[:-1], WEIGHTS]).to_batches()


def _checkpoint(root: str) -> Checkpoint:
    return Checkpoint.open(open_checkpoint_store(root), None)


def row_schema(made: Sharding) -> pa.Schema:
    """The columns of a view's rows."""
    heads = zip(made.query.head, made.typed.head, strict=True)
    return pa.schema([(column.name, arrow_type(type_)) for column, type_ in heads])


def _renamed(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_name(WEIGHTS) if field.name == WEIGHT else field for field in schema])


def _parameters(made: Sharding, options: Mapping[str, str]) -> dict[str, Any]:
    """The values of a view's parameters among the options, from their texts."""
    given = {key[len("parameter.") :]: value for key, value in options.items() if key.startswith("parameter.")}
    known = {name.lower(): name for name in made.query.parameters}
    types = dict(zip(made.query.parameters, (made.typed.types[v] for v in made.query.input), strict=True))
    found = {}
    for name, text in given.items():
        if name.lower() not in known:
            raise UnknownNameError(
                f"view {made.name} has no parameter {name}; it has {', '.join(known.values()) or 'none'}"
            )
        target = known[name.lower()]
        try:
            found[target] = pa.array([text]).cast(arrow_type(types[target]))[0].as_py()
        except pa.ArrowException as error:
            raise SparkError(f"parameter {target} of view {made.name}: {error}") from None
    return found


def read_view(database: SparkDatabase, view: str, parameters: Mapping[str, Any]) -> DataFrame:
    """The rows of a view as a DataFrame, merged by Spark where that is needed."""
    made = database.view(view).sharding
    refuse_lists(made)
    read_request(made, parameters)
    spark = database.spark
    spark.dataSource.register(ViewSource)
    reader = spark.read.format("ivme").option("checkpoint", database.checkpoint.store.address).option("view", made.name)
    for name, value in parameters.items():
        reader = reader.option(f"parameter.{name}", _text(value))
    if made.query.aggregates and needs_merging(made) and not made.query.input:
        return _merged(made, reader.option("partial", "true").load())
    return reader.load()


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value).lower() if isinstance(value, bool) else str(value)


def _merged(made: Sharding, partial: DataFrame) -> DataFrame:
    """The groups of partial rows added up and finished as everywhere, those of one group together."""
    keys = [column.name for column in made.partial if isinstance(column.source, str)]
    schema = Engine.partial_schema(made)

    def merging(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = pa.Table.from_batches([batch.cast(schema) for batch in batches], schema=schema)
        if parts.num_rows or not keys:
            yield from put_together(made, [parts]).drop_columns([WEIGHT]).to_batches()

    together = partial.repartition(*keys) if keys else partial.coalesce(1)
    return together.mapInArrow(merging, from_arrow_schema(row_schema(made)))


def stream_changes(database: SparkDatabase, view: str) -> DataFrame:
    """The changes of a view from the present step on, as a streaming DataFrame."""
    spark = database.spark
    spark.dataSource.register(ViewSource)
    consumer = uuid.uuid4().hex
    database.checkpoint.write_consumer(consumer, view, database.step)
    reader = spark.readStream.format("ivme").option("checkpoint", database.checkpoint.store.address)
    reader = reader.option("view", view).option("changes", "true").option("consumer", consumer)
    return reader.option("after", str(database.step)).load()
