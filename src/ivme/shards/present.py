"""The database of a checkpoint as it is now, for processes that only read it: Spark's tasks, and its planner."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ivme.errors import SparkError
from ivme.shards.catalog import ShardCatalog
from ivme.shards.client import LEASE, ask
from ivme.shards.cluster import Question
from ivme.shards.journal import StepJournal
from ivme.shards.outcome import bases, committed_state
from ivme.shards.protocol import Message
from ivme.shards.sharding import Sharding, sharding

_PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Present:
    """A checkpoint at its last step that counts."""

    journal: StepJournal
    outcome: Mapping[str, Any]

    @staticmethod
    def of(root: str | Path, step: int | None = None) -> Present:
        """The present of a checkpoint; while a step that failed is being taken back, this waits for that."""
        journal = StepJournal.open(Path(root), None)
        deadline = time.monotonic() + _PATIENCE
        while True:
            outcome = journal.outcome(step or journal.last_outcome())
            if outcome is not None and outcome["failed"] is None:
                return Present(journal, outcome)
            if time.monotonic() > deadline:
                raise SparkError(f"the database at {root} is in the middle of a step; has its process died?")
            time.sleep(0.02)

    @property
    def step(self) -> int:
        return int(self.outcome["step"])

    def view(self, name: str) -> Sharding:
        catalog = ShardCatalog.from_json(committed_state(self.outcome)["catalog"])
        return sharding(catalog.view(name), catalog.tables)

    def ask(self, questions: Sequence[Question], lease: float = LEASE) -> list[Message]:
        """The answers of shards at this step, from daemons on this host."""
        known = bases(self.outcome, self.journal.shards)
        return [
            ask(self.journal, q.shard, {**q.head, "base": known[q.shard].to_json()}, q.tables, lease) for q in questions
        ]
