"""What a sharded database needs of the machines that hold its shards. `stream.SparkCluster` is the one on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from ivme.query.model import Table
from ivme.shards.catalog import ShardCatalog
from ivme.shards.journal import StepJournal
from ivme.shards.parts import PartFile
from ivme.shards.protocol import Message


@dataclass(frozen=True, slots=True)
class Question:
    """A request to one shard."""

    shard: int
    head: Mapping[str, Any]
    tables: tuple[pa.Table, ...] = ()


class Cluster(Protocol):
    """Shards that can be asked, and that a step of the log is taken through."""

    journal: StepJournal

    def take_step(self, number: int) -> dict[str, Any]:
        """Takes all shards through a step that is in the log, and returns its outcome once it is recorded."""

    def ask(self, questions: Sequence[Question]) -> list[Message]:
        """The answers of shards, in the order of the questions."""

    def place_frame(
        self, catalog: ShardCatalog, table: Table, frame: Any, weight: int | str, folder: str, writer: str
    ) -> list[PartFile]:
        """Writes the rows of a Spark DataFrame as parts, where they are; `weight` is a number or a column."""

    def is_frame(self, rows: Any) -> bool:
        """Whether rows are a DataFrame that `place_frame` takes."""

    def close(self) -> None: ...
