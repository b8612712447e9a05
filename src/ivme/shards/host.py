"""`python -m ivme.shards.host`: a process that serves some shards by Arrow Flight, for as long as its driver wants it.

It tells the driver's registry where it listens, gets an epoch and a lease, brings its shards to the last step, and then
answers. The driver renews the lease by a stream of beats; a host without a lease answers nothing and ends, so that a
successor is the only one. The same function runs in a process of its own and in a task of Spark.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import flight

from ivme.errors import IvmeError, SparkError
from ivme.shards.checkpoint import Checkpoint
from ivme.shards.flight_client import ShardClients, raw_parts
from ivme.shards.message import LostError, Message, as_stream, error_head, unpack
from ivme.shards.parts import PackedPart
from ivme.shards.requests import answer
from ivme.shards.service import ShardService
from ivme.shards.shard import Shard
from ivme.shards.wire import Identity
from ivme.store.checkpoint_store import open_checkpoint_store

_CALL_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class HostStart:
    """What a host has to know before it knows anything: the driver's registry, and which host it is."""

    registry: str
    identity: Identity
    host: int

    def to_json(self) -> dict[str, Any]:
        return {"registry": self.registry, "identity": self.identity.to_json(), "host": self.host}

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> HostStart:
        return HostStart(found["registry"], Identity.from_json(found["identity"]), found["host"])


class ShardServer(flight.FlightServerBase):  # type: ignore[misc]
    """Serves some shards, while it has a lease."""

    def __init__(self, identity: Identity, listen: str) -> None:
        super().__init__(**identity.server_arguments(listen))
        self._services: dict[int, ShardService] = {}
        self._clients = ShardClients(identity.access)
        self._epoch = 0
        self._leased_until = 0.0

    def serve_shards(self, services: Mapping[int, ShardService], epoch: int) -> None:
        """Answers for these shards from now on."""
        self._epoch, self._services = epoch, dict(services)

    def renew(self, seconds: float) -> None:
        self._leased_until = time.monotonic() + seconds

    @property
    def is_leased(self) -> bool:
        return time.monotonic() < self._leased_until

    def _service(self, head: Mapping[str, Any]) -> ShardService:
        if not self.is_leased:
            raise LostError("this host has no lease any more")
        service = self._services.get(head.get("shard", -1))
        if service is None or head.get("epoch") != self._epoch:
            raise LostError(f"shard {head.get('shard')} is not served here in epoch {head.get('epoch')}")
        return service

    def do_get(self, context: Any, ticket: flight.Ticket) -> flight.RecordBatchStream:  # noqa: ARG002
        """Answers a question."""
        try:
            message = unpack(ticket.ticket)
            service = self._service(message.head)
            peers = message.head.get("peers", {})

            def forward(shard: int, transaction: str, key: tuple[str, str], parts: list[PackedPart]) -> None:
                address, epoch = peers[str(shard)]
                self._clients.put(address, shard, epoch, transaction, key, parts)

            found = answer(service, message, forward)
        except Exception as error:
            found = Message(error_head(error))
        return flight.RecordBatchStream(as_stream(found))

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:  # noqa: ARG002
        """Stages parts: a record batch for each, with its head and its body."""
        try:
            head = json.loads(descriptor.command)
            service = self._service(head)
            service.put(head["transaction"], tuple(head["key"]), raw_parts(reader))
        except IvmeError as error:
            raise flight.FlightUnavailableError(str(error)) from error


def local_address(registry: str) -> str:
    """The address of this machine that the driver can reach: that from which it is reached."""
    host, port = registry.rsplit(":", 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port)))
        return str(probe.getsockname()[0])


def serve(start: HostStart) -> None:
    """Serves the shards of a host until the driver ends it, or is gone."""
    access = start.identity.access
    listen = local_address(start.registry)
    with access.connect(start.registry) as client, ShardServer(start.identity, listen) as server:
        about = {"host": start.host, "address": f"{listen}:{server.port}", "pid": os.getpid()}
        told = _tell(client, start, "register", {**about, "name": socket.gethostname()})
        over = threading.Event()
        beats = threading.Thread(target=_follow_beats, args=(start, told, server, over), daemon=True)
        server.renew(told["lease"])
        beats.start()
        watch = threading.Thread(target=_watch_lease, args=(server, over), daemon=True)
        watch.start()
        try:
            server.serve_shards(_recovered(told), told["epoch"])
            _tell(client, start, "ready", {"host": start.host, "epoch": told["epoch"]})
            over.wait()
        finally:
            over.set()
            server.renew(-1)
            with suppress(flight.FlightError):  # the driver may be gone
                _tell(client, start, "gone", {"host": start.host, "epoch": told["epoch"]})
            server.shutdown()


def _tell(client: flight.FlightClient, start: HostStart, what: str, about: Mapping[str, Any]) -> dict[str, Any]:
    options = start.identity.access.options(_CALL_SECONDS)
    (result,) = client.do_action(flight.Action(what, json.dumps(about).encode()), options)
    found: dict[str, Any] = json.loads(result.body.to_pybytes())
    return found


def _recovered(told: Mapping[str, Any]) -> dict[int, ShardService]:
    """The shards of the host, each brought to the last step."""
    checkpoint = Checkpoint(open_checkpoint_store(told["checkpoint"]), told["identity"], told["shards"])
    shards = [Shard(checkpoint, number) for number in told["served"]]
    with ThreadPoolExecutor(max(len(shards), 1)) as pool:
        list(pool.map(Shard.recover, shards))
    return {shard.number: ShardService(shard) for shard in shards}


def _follow_beats(start: HostStart, told: Mapping[str, Any], server: ShardServer, over: threading.Event) -> None:
    """Renews the lease with each beat; when the beats end, so does the host."""
    ticket = flight.Ticket(json.dumps({"host": start.host, "epoch": told["epoch"]}).encode())
    try:
        with start.identity.access.connect(start.registry) as client:
            for _ in client.do_get(ticket, start.identity.access.options()):
                server.renew(told["lease"])
    except (flight.FlightError, pa.ArrowException, OSError):
        pass  # the driver is gone
    finally:
        server.renew(-1)
        over.set()


def _watch_lease(server: ShardServer, over: threading.Event) -> None:
    while server.is_leased and not over.wait(0.1):
        pass
    over.set()


def main() -> None:
    """Reads what to serve from the standard input, so that no list of processes shows the token."""
    start = HostStart.from_json(json.loads(sys.stdin.readline()))
    try:
        with suppress(KeyboardInterrupt):
            serve(start)
    except flight.FlightError as error:
        raise SystemExit(f"the driver at {start.registry} cannot be reached: {error}") from None
    except SparkError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # nothing that a thread still does may keep a shard's process
