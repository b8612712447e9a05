"""Shards without Spark: in this process, or in daemons, taken through steps by the code that Spark's tasks run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ivme.errors import IvmeError, SparkError
from ivme.shards.client import ask, stop_running
from ivme.shards.cluster import Question
from ivme.shards.database import ShardedDatabase
from ivme.shards.journal import StepJournal
from ivme.shards.outcome import bases, record_outcome
from ivme.shards.parts import PartFile
from ivme.shards.protocol import Message, error_head, raise_error
from ivme.shards.requests import answer
from ivme.shards.shard import Shard
from ivme.shards.stepping import take_steps

Asked = Callable[[Question], Message]


class LocalCluster:
    """A `Cluster` whose shards are asked directly."""

    def __init__(self, root: Path, shards: int | None, *, daemons: bool = False) -> None:
        self.journal = StepJournal.open(root, shards)
        self._daemons = daemons
        self.shards = {number: Shard(self.journal, number) for number in range(self.journal.shards)}

    def take_step(self, number: int) -> dict[str, Any]:
        found = self.journal.outcome(number)
        if found is not None:
            return found
        before = bases(self.journal.outcome(number - 1), self.journal.shards)
        taken = [
            take_steps(self.journal, shard, before[shard], [number], self._asking(shard))
            for shard in range(self.journal.shards)
        ]
        return record_outcome(self.journal, number, taken)

    def _asking(self, shard: int) -> Callable[[Mapping[str, Any]], Message]:
        return lambda head: self._one(Question(shard, head))

    def _one(self, question: Question) -> Message:
        if self._daemons:
            return ask(self.journal, question.shard, question.head, question.tables)
        try:
            head, tables = answer(self.shards[question.shard], Message(question.head, question.tables))
        except IvmeError as error:
            raise_error(error_head(error))
        return Message(head, tables)

    def kill(self, shard: int) -> None:
        """Loses what a shard holds in this process."""
        self.shards[shard] = Shard(self.journal, shard)

    def ask(self, questions: Sequence[Question]) -> list[Message]:
        return [self._one(question) for question in questions]

    def place_frame(self, *_: Any) -> list[PartFile]:
        raise SparkError("there are no DataFrames here")

    def is_frame(self, _rows: Any) -> bool:
        return False

    def close(self) -> None:
        if self._daemons:
            stop_running(self.journal)


def local_database(root: Path, shards: int | None = 2, *, daemons: bool = False) -> ShardedDatabase:
    return ShardedDatabase(LocalCluster(root, shards, daemons=daemons))
