"""The log of steps as a source of a streaming query: each step comes once for each shard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from ivme.shards.journal import StepJournal
from ivme.spark.shards.keys import shard_keys

SCHEMA = "key int, shard int, step bigint"


class StepSource(DataSource):
    """`format("ivme_steps")`, with the option `checkpoint`."""

    @classmethod
    def name(cls) -> str:
        return "ivme_steps"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> StepReader:  # noqa: ARG002, N802
        return StepReader(self.options["checkpoint"])


class StepReader(DataSourceStreamReader):
    """Offsets are the numbers of steps."""

    def __init__(self, root: str) -> None:
        self._root = root

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"step": 0}

    def latestOffset(self, start: Mapping[str, int], limit: Any) -> dict[str, int]:  # noqa: ARG002, N802
        return {"step": max(start["step"], StepJournal.open(Path(self._root), None).last_step())}

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[InputPartition]:
        return [InputPartition((start["step"], end["step"]))] if start["step"] < end["step"] else []

    def read(self, partition: InputPartition) -> Iterator[tuple[int, int, int]]:
        first, last = partition.value
        keys = shard_keys(StepJournal.open(Path(self._root), None).shards)
        for step in range(first + 1, last + 1):
            for shard, key in enumerate(keys):
                yield key, shard, step
