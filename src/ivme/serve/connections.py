"""Who may hold a connection, and for how long, before a request is there to be judged.

uvicorn waits forever for the rest of a header or a body, and keeps whatever was sent of it. Here each connection has a
deadline: for its header, from the first byte, however slowly the rest comes; for its body; and for the next request.
When all places of an address or of the server are taken, the connection that has waited longest gives its place to the
new one; only if none waits, the new one is refused. A request that was not admitted (`Gate`) earns no longer wait than
a connection that has sent nothing, so that a token is needed to hold a place.

A connection that is being closed while its client does not read what is left is cut.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ivme.serve.problem import Problem
from ivme.serve.settings import Settings

ADMITTED = "ivme.admitted"
"""The key that the gate sets in the scope of a request that may ask."""

_HEADER_BYTES = 64 * 1024
_LINGER = 5.0
"""How long a refused client may go on sending its body, or a client read the end of its answer, in seconds."""

_REASONS = {
    400: b"Bad Request",
    408: b"Request Timeout",
    431: b"Request Header Fields Too Large",
    503: b"Service Unavailable",
}


class Connections:
    """All connections of a server, and those of each address, in the order of their last answers.

    Used by the event loop only.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._open: dict[Connection, None] = {}
        self._by_origin: defaultdict[str, dict[Connection, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, connection: Connection) -> bool:
        """Takes a connection in, in place of one that waits if there are too many; False if it is refused."""
        most, mine = self.settings.connections_per_address, self._by_origin[connection.origin]
        if most and len(mine) >= most:
            if not self._evict(mine):
                return False
        elif len(self._open) >= self.settings.connections and not self._evict(self._open):
            return False
        self._open[connection] = self._by_origin[connection.origin][connection] = None
        return True

    def _evict(self, candidates: Iterable[Connection]) -> bool:
        """Cuts the connection that has waited longest for a request, an unadmitted one first."""
        chosen = None
        for other in candidates:
            if other.is_waiting and (chosen is None or not other.admitted):
                chosen = other
                if not other.admitted:
                    break
        if chosen is None:
            return False
        self.leave(chosen)
        chosen.transport.abort()
        return True

    def answered(self, connection: Connection) -> None:
        """Puts a connection behind those that have waited longer."""
        if connection in self._open:
            for held in (self._open, self._by_origin[connection.origin]):
                held[connection] = held.pop(connection)

    def leave(self, connection: Connection) -> None:
        mine = self._by_origin[connection.origin]
        self._open.pop(connection, None)
        mine.pop(connection, None)
        if not mine:
            del self._by_origin[connection.origin]

    def sweep(self) -> None:
        """Ends the connections whose time is over."""
        now = time.monotonic()
        for connection in list(self._open):
            connection.expire(now)

    def cut_unread(self) -> None:
        """Cuts the connections whose clients do not read what is there for them."""
        for connection in list(self._open):
            if connection.transport.is_closing() or connection.flow.write_paused:
                connection.transport.abort()

    def cut_all(self) -> None:
        for connection in list(self._open):
            connection.transport.abort()


class Connection(HttpToolsProtocol):
    """One connection: uvicorn's protocol with deadlines. `places` is set by `connection_class`.

    `reading` is the part of a request that is being sent: "header", "body", or "" between requests. `since` is when
    that began.
    """

    places: Connections

    def connection_made(self, transport: Any) -> None:
        peer = transport.get_extra_info("peername")
        self.origin = origin_of(peer[0] if isinstance(peer, tuple) else "")
        self.reading, self.since, self.admitted = "", time.monotonic(), False
        self._header_bytes = 0
        self._closing_since: float | None = None
        if not self.places.enter(self):
            self.transport = transport
            self._refuse(503, "too many connections; close some, or try again later")
            return
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.places.leave(self)
        super().connection_lost(exc)

    @property
    def is_running(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def is_waiting(self) -> bool:
        """Whether nothing is being done for it: no header is complete since the last answer."""
        return not self.is_running and self.reading != "body" and not self.transport.is_closing()

    def expire(self, now: float) -> None:
        """Closes the connection if its time is over."""
        if self.transport.is_closing():
            self._closing_since = self._closing_since or now
            if now - self._closing_since > _LINGER:
                self.transport.abort()
        elif now - self.since > self._seconds():
            if self.reading == "header":
                self._refuse(408, f"the header took longer than {self.places.settings.header_seconds} seconds")
            else:
                self.transport.close()

    def _seconds(self) -> float:
        """How long the present state may last: an answer that is under way has the gate's own limit."""
        settings = self.places.settings
        if self.pipeline or (self.is_running and self.reading != "body"):
            return float("inf")
        if self.reading == "body":
            return settings.seconds + _LINGER if self.is_running else _LINGER
        return settings.idle_seconds if self.admitted and not self.reading else settings.header_seconds

    def _refuse(self, status: int, message: str) -> None:
        """Answers in place of the application, and closes."""
        body = Problem(status, message).body()
        head = b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(head % (status, _REASONS[status], len(body)) + body)
        self.transport.close()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """What cannot be read is refused as all else is; where an answer has begun, nothing can be put into it."""
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.close()
        else:
            self._refuse(400, "this is not an HTTP request")

    # What the parser tells

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.reading != "header":
            return
        self._header_bytes += len(data)
        if self._header_bytes > _HEADER_BYTES and not self.transport.is_closing():
            self._refuse(431, f"the header has more than {_HEADER_BYTES} bytes")

    def on_message_begin(self) -> None:
        self.reading, self.since, self._header_bytes = "header", time.monotonic(), 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Trailers behind a body are of no use here, and would be held without a limit."""
        if self.reading == "header":
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.reading, self.since = "body", time.monotonic()

    def on_message_complete(self) -> None:
        self.reading, self.since = "", time.monotonic()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self.since = time.monotonic()
        self.admitted = bool(self.cycle.scope.get(ADMITTED))
        self.places.answered(self)
        super().on_response_complete()


def connection_class(places: Connections) -> type[Connection]:
    """The protocol of one server's connections, for uvicorn to make."""
    return type("ServerConnection", (Connection,), {"places": places})


def origin_of(host: str) -> str:
    """What counts as one address: an IPv6 network of 64 bits, which one customer has, is one.

    >>> origin_of("192.0.2.1"), origin_of("2001:db8::1") == origin_of("2001:db8::2"), origin_of("::ffff:192.0.2.1")
    ('192.0.2.1', True, '192.0.2.1')
    """
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    return str(address.ipv4_mapped or int(address) >> 64)
