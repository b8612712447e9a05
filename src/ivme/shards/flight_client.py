"""Questions and puts to hosts by Arrow Flight, over connections that stay open."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import flight

from ivme.shards.message import LostError, Message, Question, from_stream, pack
from ivme.shards.parts import PackedPart
from ivme.shards.wire import Access

_PARTS = pa.schema([("head", pa.binary()), ("body", pa.large_binary())])


class ShardClients:
    """Connections to hosts, by address, for any number of threads."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._clients: dict[str, flight.FlightClient] = {}
        self._lock = threading.Lock()

    def _client(self, address: str) -> flight.FlightClient:
        with self._lock:
            if address not in self._clients:
                self._clients[address] = self._access.connect(address)
            return self._clients[address]

    def ask(self, address: str, epoch: int, question: Question, timeout: float | None = None) -> Message:
        """The answer of a shard, which may be an error; LostError if its host does not answer."""
        head = {**question.head, "shard": question.shard, "epoch": epoch}
        ticket = flight.Ticket(pack(Message(head, question.tables)))
        try:
            found = self._client(address).do_get(ticket, self._access.options(timeout)).read_all()
        except flight.FlightTimedOutError:
            raise TimeoutError(f"shard {question.shard} has not answered for {timeout} seconds") from None
        except (flight.FlightError, pa.ArrowException, OSError) as error:
            raise LostError(f"the host of shard {question.shard} cannot be reached: {error}") from error
        return from_stream(found)

    def put(
        self,
        address: str,
        shard: int,
        epoch: int,
        transaction: str,
        key: tuple[str, str],
        parts: Sequence[PackedPart],
    ) -> None:
        """Hands parts to a shard; LostError if its host does not take them."""
        about = {"shard": shard, "epoch": epoch, "transaction": transaction, "key": key}
        descriptor = flight.FlightDescriptor.for_command(json.dumps(about).encode())
        try:
            writer, _ = self._client(address).do_put(descriptor, _PARTS, self._access.options())
            with writer:
                for part in parts:
                    writer.write_batch(_as_batch(part))
        except (flight.FlightError, pa.ArrowException, OSError) as error:
            raise LostError(f"the host of shard {shard} takes no rows: {error}") from error

    def forget(self, address: str) -> None:
        """Drops the connection to a host that has ended."""
        with self._lock:
            client = self._clients.pop(address, None)
        if client is not None:
            client.close()

    def close(self) -> None:
        for address in list(self._clients):
            self.forget(address)


def _as_batch(part: PackedPart) -> pa.RecordBatch:
    """A part as one row, without a copy of its body."""
    offsets = pa.array([0, part.body.size], pa.int64()).buffers()[1]
    body = pa.Array.from_buffers(pa.large_binary(), 1, [None, offsets, part.body])
    return pa.record_batch([pa.array([part.head], pa.binary()), body], schema=_PARTS)


def raw_parts(reader: Iterable[Any]) -> list[PackedPart]:
    """The parts that a put brings."""
    batches = (chunk.data for chunk in reader)
    return [PackedPart.read(batch.column(0)[0].as_py(), batch.column(1)[0].as_buffer()) for batch in batches]
