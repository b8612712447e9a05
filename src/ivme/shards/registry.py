"""The driver's own server: who serves which shard, at which epoch, and until when; and what readers elsewhere may know.

A host registers, and gets an epoch that is higher than that of any before it. Beats renew its lease. It is asked
nothing before it is ready, and it is not ready before the lease of the host before it is over, unless that one is known
to have ended: its process was waited for, or its side of the beats was closed. So no two hosts answer for a shard.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyarrow import flight

from ivme.shards.checkpoint import Checkpoint
from ivme.shards.message import LostError
from ivme.shards.wire import Identity

EPOCHS_OF_A_DRIVER = 1_000_000
"""A host's epoch is that of its driver times this, and the number of the attempt."""

_BEAT_SECONDS = 0.25
_BEAT = pa.schema([("beat", pa.int64())])


@dataclass(slots=True)
class HostEntry:
    """A host that registered."""

    host: int
    epoch: int
    address: str
    pid: int
    name: str
    last_beat: float = field(default_factory=time.monotonic)
    is_ready: bool = False
    has_ended: bool = False


class Registry(flight.FlightServerBase):  # type: ignore[misc]
    """Hosts by their numbers. `served` has the shards of each."""

    def __init__(self, identity: Identity, listen: str, served: Sequence[Sequence[int]], lease: float) -> None:
        super().__init__(**identity.server_arguments(listen))
        self.lease = lease
        self.present: Mapping[str, Any] = {}
        self._served = [list(shards) for shards in served]
        self._host_of = {shard: host for host, shards in enumerate(served) for shard in shards}
        self._checkpoint: Checkpoint | None = None
        self._epoch = 0
        self._hosts: dict[int, HostEntry] = {}
        self._before: dict[int, list[HostEntry]] = {}
        self._changed = threading.Condition()
        self._is_closing = False

    def open(self, checkpoint: Checkpoint, driver_epoch: int) -> None:
        """Takes hosts from now on."""
        self._checkpoint, self._epoch = checkpoint, driver_epoch * EPOCHS_OF_A_DRIVER

    # For the driver

    def entry_of(self, shard: int, seconds: float) -> HostEntry:
        """The host that serves a shard, waited for."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                found = self._hosts.get(self._host_of[shard])
                if found is not None and found.is_ready:
                    return found
                if self._is_closing or not self._changed.wait(max(deadline - time.monotonic(), 0)):
                    raise LostError(f"no host has served shard {shard} for {seconds:.0f} seconds")

    def wait_for_next(self, entry: HostEntry, seconds: float) -> None:
        """Waits until a host that does not answer is known to be gone; not for long, as it may be there."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._is_wanted(entry.host, entry.epoch) and entry.is_ready), seconds)

    def current(self) -> dict[int, HostEntry]:
        """The hosts that are ready, by shard."""
        with self._changed:
            ready = {shard: self._hosts.get(host) for shard, host in self._host_of.items()}
            return {shard: entry for shard, entry in ready.items() if entry is not None and entry.is_ready}

    def end(self, host: int, pid: int) -> None:
        """A host is known to have ended: its process was waited for."""
        with self._changed:
            for entry in [*self._before.get(host, []), *filter(None, [self._hosts.get(host)])]:
                if entry.pid == pid:
                    entry.has_ended, entry.is_ready = True, False
            self._changed.notify_all()

    def close(self) -> None:
        """Ends all hosts: their beats stop."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self.shutdown()

    # For hosts and readers

    def do_action(self, context: Any, action: flight.Action) -> list[bytes]:  # noqa: ARG002
        known: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
            "register": self._register,
            "ready": self._ready,
            "gone": self._gone,
            "present": self._present,
        }
        if action.type not in known:
            raise flight.FlightServerError(f"the driver does not know the request {action.type!r}")
        told = known[action.type](json.loads(action.body.to_pybytes()))
        return [json.dumps(dict(told)).encode()]

    def _register(self, about: Mapping[str, Any]) -> Mapping[str, Any]:
        with self._changed:
            if self._checkpoint is None or self._is_closing:
                raise flight.FlightUnavailableError("the driver takes no hosts now")
            self._epoch += 1
            host, before = about["host"], self._hosts.get(about["host"])
            entry = HostEntry(host, self._epoch, about["address"], about["pid"], about["name"])
            if before is not None:
                self._before[host] = [each for each in self._before.get(host, []) if not each.has_ended] + [before]
            self._hosts[host] = entry
            self._changed.notify_all()
            return {
                "epoch": entry.epoch,
                "lease": self.lease,
                "checkpoint": self._checkpoint.store.address,
                "identity": self._checkpoint.identity,
                "shards": self._checkpoint.shards,
                "served": self._served[host],
            }

    def _ready(self, about: Mapping[str, Any]) -> Mapping[str, Any]:
        """Lets a host be asked, once no other one can answer for its shards."""
        with self._changed:
            host, epoch = about["host"], about["epoch"]
            while self._is_wanted(host, epoch) and any(map(self._may_answer, self._before.get(host, ()))):
                self._changed.wait(_BEAT_SECONDS)
            if not self._is_wanted(host, epoch):
                raise flight.FlightUnavailableError("another host serves these shards")
            self._hosts[host].is_ready = True
            self._changed.notify_all()
        return {}

    def _may_answer(self, entry: HostEntry) -> bool:
        return not entry.has_ended and time.monotonic() < entry.last_beat + self.lease

    def _gone(self, about: Mapping[str, Any]) -> Mapping[str, Any]:
        """A host answers nothing any more."""
        self._closed_by(about["host"], about["epoch"])
        return {}

    def _present(self, _about: Mapping[str, Any]) -> Mapping[str, Any]:
        hosts = {shard: [entry.address, entry.epoch] for shard, entry in self.current().items()}
        return {**self.present, "hosts": hosts}

    def do_get(self, context: Any, ticket: flight.Ticket) -> flight.GeneratorStream:  # noqa: ARG002
        """Beats, for as long as the host is the one that is wanted."""
        about = json.loads(ticket.ticket)
        return flight.GeneratorStream(_BEAT, self._beats(about["host"], about["epoch"]))

    def _beats(self, host: int, epoch: int) -> Iterator[pa.RecordBatch]:
        try:
            number = 0
            while self._is_wanted(host, epoch):
                number += 1
                yield pa.record_batch([pa.array([number])], schema=_BEAT)
                with self._changed:
                    entry = self._hosts.get(host)
                    if entry is not None and entry.epoch == epoch:
                        entry.last_beat = time.monotonic()
                    self._changed.wait_for(lambda: not self._is_wanted(host, epoch), _BEAT_SECONDS)
        except GeneratorExit:
            self._closed_by(host, epoch)
            raise

    def _is_wanted(self, host: int, epoch: int) -> bool:
        entry = self._hosts.get(host)
        return not self._is_closing and entry is not None and entry.epoch == epoch

    def _closed_by(self, host: int, epoch: int) -> None:
        """A host closed its side, or ended: it has given up its lease."""
        with self._changed:
            for entry in [*self._before.get(host, []), *filter(None, [self._hosts.get(host)])]:
                if entry.epoch == epoch:
                    entry.has_ended, entry.is_ready = True, False
            self._changed.notify_all()
