"""What a sharded database needs of the machines that hold its shards. `flight_cluster.FlightCluster` is the one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ivme.query.model import Table
from ivme.shards.catalog import ShardCatalog
from ivme.shards.checkpoint import Checkpoint
from ivme.shards.message import Message, Question
from ivme.shards.parts import PackedPart


class Cluster(Protocol):
    """Shards that answer questions."""

    checkpoint: Checkpoint

    def start(self, epoch: int) -> None:
        """Begins to serve the shards, for the driver of this epoch."""

    def put(self, transaction: str, key: tuple[str, str], parts: Mapping[int, Sequence[PackedPart]]) -> None:
        """Sends parts to their shards; LostError if that cannot be done."""

    def ask(self, questions: Sequence[Question], *, patient: bool = True) -> list[Message]:
        """The answers of shards, in the order of the questions; an error of a shard is its answer.

        A question whose host is lost goes to the next one, or, with patient=False, is answered by LostError.
        """

    def publish(self, present: dict[str, Any]) -> None:
        """What readers in other processes see of the database from now on: its step, its catalog."""

    def place_frame(
        self, catalog: ShardCatalog, table: Table, frame: Any, weight: int | str, transaction: str, name: str
    ) -> list[tuple[int, tuple[str, str]]]:
        """Sends the rows of a Spark DataFrame to their shards, from where they are: to which, under which keys."""

    def is_frame(self, rows: Any) -> bool:
        """Whether rows are a DataFrame that `place_frame` takes."""

    def hosts(self) -> list[dict[str, Any]]:
        """For each shard its host and its epoch."""

    def close(self) -> None: ...
