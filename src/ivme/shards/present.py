"""The database of a checkpoint as it is now, for processes that only read it: Spark's tasks, and its planner.

The checkpoint says where the driver listens, and the driver which step is the last one and who serves each shard.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyarrow import flight

from ivme.errors import SparkError
from ivme.shards.catalog import ShardCatalog
from ivme.shards.checkpoint import Checkpoint
from ivme.shards.flight_client import ShardClients
from ivme.shards.flight_cluster import CALL_SECONDS, DRIVER, PATIENCE
from ivme.shards.message import LostError, Message, Question, raise_error
from ivme.shards.sharding import Sharding, sharding
from ivme.shards.wire import Access
from ivme.store.checkpoint_store import open_checkpoint_store

_CLIENTS: dict[str, ShardClients] = {}
"""Connections that this process keeps, by the token of their database."""


@dataclass(frozen=True, slots=True)
class Present:
    """A database at its last step, or at one that several readers agreed on."""

    checkpoint: Checkpoint
    driver: str
    access: Access
    about: Mapping[str, Any]

    @staticmethod
    def of(address: str) -> Present:
        """The present of the database in a checkpoint; SparkError if no driver has it open."""
        checkpoint = Checkpoint.open(open_checkpoint_store(address), None)
        found = checkpoint.store.read(DRIVER)
        if found is None:
            raise SparkError(f"the database at {address} has not been opened by a driver")
        about = json.loads(found.to_pybytes())
        made = Present(checkpoint, about["address"], Access(about["token"], about["certificate"]), {})
        return made.refreshed()

    def refreshed(self) -> Present:
        """The same database as it is now."""
        try:
            with self.access.connect(self.driver) as client:
                action = flight.Action("present", b"{}")
                (told,) = client.do_action(action, self.access.options(CALL_SECONDS))
        except (flight.FlightError, pa.ArrowException, OSError) as error:
            where = self.checkpoint.store.address
            raise SparkError(f"the driver of the database at {where} cannot be reached: {error}") from error
        return replace(self, about=json.loads(told.body.to_pybytes()))

    @property
    def step(self) -> int:
        return int(self.about["step"])

    @property
    def clients(self) -> ShardClients:
        return _CLIENTS.setdefault(self.access.token, ShardClients(self.access))

    def at(self, step: int) -> Present:
        """The database at a step that was the last one a moment ago."""
        return replace(self, about={**self.about, "step": step})

    def catalog(self) -> ShardCatalog:
        return ShardCatalog.from_json(self.checkpoint.read_catalog(self.about["catalog"]))

    def view(self, name: str) -> Sharding:
        catalog = self.catalog()
        return sharding(catalog.view(name), catalog.tables)

    def host_of(self, shard: int) -> tuple[str, int]:
        """The address and the epoch of the host of a shard; LostError if there is none now."""
        found = self.about["hosts"].get(str(shard))
        if found is None:
            raise LostError(f"no host serves shard {shard} now")
        return found[0], found[1]

    def ask(self, questions: Sequence[Question]) -> list[Message]:
        """The answers of shards at this step, from their own hosts."""
        known = {"step": self.step, "ended": self.about["ended"]}
        return [self._one(replace(question, head={**question.head, **known})) for question in questions]

    def _one(self, question: Question) -> Message:
        deadline, now = time.monotonic() + PATIENCE, self
        while True:
            try:
                address, epoch = now.host_of(question.shard)
                found = self.clients.ask(address, epoch, question, PATIENCE)
                raise_error(found.head)
                return found
            except LostError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
                now = now.refreshed()
