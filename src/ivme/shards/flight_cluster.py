"""Shards in hosts that are reached by Arrow Flight, whatever starts the hosts."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Protocol

from ivme.errors import IvmeError, SparkError
from ivme.query.model import Table
from ivme.shards.catalog import ShardCatalog
from ivme.shards.checkpoint import Checkpoint
from ivme.shards.coordinator import PutPlace
from ivme.shards.flight_client import ShardClients
from ivme.shards.host import HostStart
from ivme.shards.message import LostError, Message, Question, error_head
from ivme.shards.parts import PackedPart
from ivme.shards.registry import HostEntry, Registry
from ivme.shards.wire import Access, Identity, self_signed

LEASE = 10.0
"""For how many seconds a host answers that hears nothing of its driver."""

CALL_SECONDS = 60.0
PATIENCE = 180.0
"""A question that is not answered in time is sent again, which does nothing twice; and no more after the
second time."""

_LOST_SECONDS = 1.0
"""After so long it is known that a host is gone, if it is."""

DRIVER = "driver"
"""The object of the checkpoint that says where the driver listens."""


class HostStarter(Protocol):
    """Starts hosts, and starts them again when they end."""

    def start(self, hosts: Sequence[HostStart], registry: Registry) -> None: ...

    def failure(self) -> str:
        """Why hosts do not come up, as far as that is known."""

    def close(self) -> None: ...


class FlightCluster:
    """A `Cluster` of hosts. `served` has the shards of each host."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        starter: HostStarter,
        served: Sequence[Sequence[int]],
        *,
        listen: str = "127.0.0.1",
        lease: float = LEASE,
        tls: bool = False,
    ) -> None:
        self.checkpoint = checkpoint
        self._starter = starter
        certificate, key = self_signed() if tls else ("", "")
        self.access = Access(secrets.token_urlsafe(32), certificate)
        self._identity = Identity(self.access, key)
        self._registry = Registry(self._identity, listen, served, lease)
        self.address = f"{listen}:{self._registry.port}"
        self._hosts = len(served)
        self._clients = ShardClients(self.access)
        self._pool = ThreadPoolExecutor(max(checkpoint.shards, 2), "ivme-ask")

    def start(self, epoch: int) -> None:
        self._registry.open(self.checkpoint, epoch)
        described = {"address": self.address, "epoch": epoch, "pid": os.getpid(), **self.access.to_json()}
        self.checkpoint.store.write(DRIVER, [json.dumps(described).encode()])
        starts = [HostStart(self.address, self._identity, host) for host in range(self._hosts)]
        self._starter.start(starts, self._registry)

    # Asking

    def put(self, transaction: str, key: tuple[str, str], parts: Mapping[int, Sequence[PackedPart]]) -> None:
        def one(shard: int) -> None:
            entry = self._entry(shard)
            try:
                self._clients.put(entry.address, shard, entry.epoch, transaction, key, parts[shard])
            except LostError:
                self._look_for_next(entry)
                raise

        self._each(one, list(parts))

    def ask(self, questions: Sequence[Question], *, patient: bool = True) -> list[Message]:
        asked = [self._with_peers(question) for question in questions]
        return self._each(self._patiently if patient else self._once, asked)

    def _each(self, function: Any, given: Sequence[Any]) -> list[Any]:
        return [function(given[0])] if len(given) == 1 else list(self._pool.map(function, given))

    def _with_peers(self, question: Question) -> Question:
        """A shard that puts rows to others is told where they are."""
        if question.head["op"] != "spread" and not question.head.get("last_round"):
            return question
        entries = ((shard, self._entry(shard)) for shard in range(self.checkpoint.shards))
        peers = {str(shard): (entry.address, entry.epoch) for shard, entry in entries}
        return replace(question, head={**question.head, "peers": peers})

    def _entry(self, shard: int) -> HostEntry:
        try:
            return self._registry.entry_of(shard, PATIENCE)
        except LostError as error:
            raise SparkError(f"{error}; {self._starter.failure()}") from error

    def _once(self, question: Question) -> Message:
        """The answer of the current host; a slow one is retried, a lost one is not waited for."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                entry = self._registry.entry_of(question.shard, 0)
                return self._clients.ask(entry.address, entry.epoch, question, CALL_SECONDS)
            except TimeoutError as error:
                if time.monotonic() > deadline:
                    return Message(error_head(SparkError(str(error))))
            except LostError as error:
                return Message(error_head(error))

    def _patiently(self, question: Question) -> Message:
        """The answer of a host, if need be of the next one."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                entry = self._entry(question.shard)
            except IvmeError as error:
                return Message(error_head(error))
            found = self._once(question)
            if found.head.get("error", [""])[0] != LostError.__name__ or time.monotonic() > deadline:
                return found
            self._look_for_next(entry)

    def _look_for_next(self, entry: HostEntry) -> None:
        self._clients.forget(entry.address)
        self._registry.wait_for_next(entry, _LOST_SECONDS)

    def publish(self, present: dict[str, Any]) -> None:
        self._registry.present = present

    # Frames are Spark's

    def place_frame(
        self, catalog: ShardCatalog, table: Table, frame: Any, weight: int | str, transaction: str, name: str
    ) -> list[PutPlace]:
        del catalog, table, frame, weight, transaction, name
        raise SparkError("only a SparkDatabase takes Spark's DataFrames")

    def is_frame(self, _rows: Any) -> bool:
        return False

    # About hosts

    def hosts(self) -> list[dict[str, Any]]:
        found = self._registry.current()
        entries = [found.get(shard) for shard in range(self.checkpoint.shards)]
        return [
            {} if each is None else {"host": f"{each.name} {each.address}", "epoch": each.epoch} for each in entries
        ]

    def close(self) -> None:
        """Ends the hosts; returns when those that this process started have ended."""
        self._registry.close()
        self._starter.close()
        self._clients.close()
        self._pool.shutdown()
