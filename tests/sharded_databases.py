"""Shards without Spark, and without processes: each is asked in this process, by the code that hosts run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ivme.errors import IvmeError, SparkError
from ivme.shards.checkpoint import Checkpoint
from ivme.shards.coordinator import PutPlace
from ivme.shards.database import ShardedDatabase
from ivme.shards.flight_cluster import FlightCluster
from ivme.shards.merge import WEIGHT
from ivme.shards.message import Message, Question, error_head
from ivme.shards.parts import PackedPart
from ivme.shards.processes import ChildProcesses, by_host
from ivme.shards.requests import answer
from ivme.shards.service import ShardService
from ivme.shards.shard import Shard
from ivme.store.checkpoint_store import FolderStore, open_checkpoint_store


class LocalCluster:
    """A `Cluster` whose shards are asked directly."""

    def __init__(self, root: Path | str, shards: int | None) -> None:
        self.checkpoint = Checkpoint.open(open_checkpoint_store(root), shards)
        self.services: dict[int, ShardService] = {}
        self.present: dict[str, Any] = {}
        self._epoch = 0

    @property
    def shards(self) -> dict[int, Shard]:
        return {number: service.shard for number, service in self.services.items()}

    def start(self, epoch: int) -> None:
        self._epoch = epoch
        for number in range(self.checkpoint.shards):
            self.kill(number)

    def kill(self, shard: int) -> None:
        """Loses what a shard holds in this process."""
        self.services[shard] = ShardService(Shard(self.checkpoint, shard))

    def put(self, transaction: str, key: tuple[str, str], parts: Mapping[int, Sequence[PackedPart]]) -> None:
        for shard, each in parts.items():
            self.services[shard].put(transaction, key, each)

    def ask(self, questions: Sequence[Question], *, patient: bool = True) -> list[Message]:  # noqa: ARG002
        return [self.one(question) for question in questions]

    def one(self, question: Question) -> Message:
        try:
            return answer(self.services[question.shard], Message(question.head, question.tables), self._forward)
        except IvmeError as error:
            return Message(error_head(error))

    def _forward(self, shard: int, transaction: str, key: tuple[str, str], parts: list[PackedPart]) -> None:
        self.put(transaction, key, {shard: parts})

    def publish(self, present: dict[str, Any]) -> None:
        self.present = present

    def place_frame(self, *_: Any) -> list[PutPlace]:
        raise SparkError("there are no DataFrames here")

    def is_frame(self, _rows: Any) -> bool:
        return False

    def hosts(self) -> list[dict[str, Any]]:
        return [{"host": "here", "epoch": self._epoch} for _ in self.services]

    def close(self) -> None:
        pass


def local_database(root: Path | str, shards: int | None = 2) -> ShardedDatabase:
    return ShardedDatabase(LocalCluster(root, shards), lambda: LocalCluster(root, None))


def hosted_database(root: Path, shards: int | None = 2, hosts: int | None = None, **options: Any) -> ShardedDatabase:
    """A database whose shards are in processes, one for each if not said otherwise."""

    def cluster(wanted: int | None) -> FlightCluster:
        checkpoint = Checkpoint.open(FolderStore(root), wanted)
        served = by_host(checkpoint.shards, min(hosts or checkpoint.shards, checkpoint.shards))
        return FlightCluster(checkpoint, ChildProcesses(), served, **options)

    return ShardedDatabase(cluster(shards), lambda: cluster(None))


def kill(database: ShardedDatabase, shard: int) -> None:
    """Loses what a shard of a local database holds in this process."""
    cluster = database._cluster
    assert isinstance(cluster, LocalCluster)
    cluster.kill(shard)


def reopened(database: ShardedDatabase) -> ShardedDatabase:
    """The database of the same checkpoint, by another driver, which takes over."""
    return local_database(database.checkpoint.store.address, None)


def negated(rows: pa.Table) -> pa.Table:
    """The opposite of rows with weights."""
    weights = pa.array(-rows.column(WEIGHT).to_numpy())
    return rows.set_column(rows.num_columns - 1, WEIGHT, weights)
