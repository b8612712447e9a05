"""What a server allows, and how far anything may go."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass

from ivme.errors import ServeError
from ivme.serve.grants import EVERYTHING, OPEN, OWNER, READER, READING, Grant, check_grants


@dataclass(frozen=True, slots=True)
class Settings:
    """The limits of a server; each has a default that suits one machine."""

    host: str = "127.0.0.1"
    port: int = 8321
    token: str | None = None
    read_token: str | None = None
    """A token with which nothing can be changed."""
    tokens: tuple[Grant, ...] = ()
    """Further tokens, each for some views and tables; see `grants.read_grant`."""
    body_bytes: int = 16 * 2**20
    rows: int = 1_000_000
    """The most rows that an answer may have."""
    page: int = 10_000
    """How many of them come at once, unless the request says otherwise."""
    seconds: float = 30.0
    """How long a request may take, and a subscriber not read."""
    frame: float = 0.05
    """Changes reach subscribers this often, in seconds, those in between summed up."""
    backlog: int = 200_000
    """How many changed rows may wait for a subscriber before it is dropped, and are stored for its return; a row
    with long texts counts once more for each KB of them."""
    connections: int = 2000
    """The most connections at once; the one that has waited longest for a request gives way to a new one."""
    connections_per_address: int = 500
    """The same for one address; 0 for no limit, as behind a proxy, from whose address all connections come."""
    header_seconds: float = 10.0
    """How long a client may take for the header of a request, and a connection be open without one that is admitted."""
    idle_seconds: float = 75.0
    """How long a connection stays open for the next request."""
    linger: float = 60.0
    """How long changes are stored after the last subscriber has left, in seconds."""
    statement_characters: int = 200_000
    """The longest text of SQL that a client may send; reading it takes time that grows with it."""
    pg_port: int | None = None
    """The port of PostgreSQL's protocol; None if it is not spoken."""
    tls_certificate: str | None = None
    """The file of a certificate (PEM): with it, TLS is spoken, and nothing else."""
    tls_key: str | None = None
    """The file of its key, if it is a different one."""
    owner: str = ""
    """The answer to clients that try to change the database, if its changes come from somewhere else only."""

    def check(self) -> None:
        """Refuses an invalid port, and to be reachable from other machines without a token."""
        for port in (self.port, self.pg_port or 0):
            if not 0 <= port <= 65535:
                raise ServeError(f"a port is a number from 0 to 65535; {port} is not")
        if self.connections < 1 or self.connections_per_address < 0:
            raise ServeError("a server needs at least 1 connection; 0 for an address means that it has no limit")
        if self.read_token is not None and self.token in (None, self.read_token):
            raise ServeError("a token for reading needs another one, for changes, in IVME_TOKEN")
        if self.tokens and self.token is None:
            raise ServeError("scoped tokens need one that may do everything: set IVME_TOKEN to at least 16 characters")
        if self.token is not None:
            check_grants(self.grants)
        if self.token is None and not is_loopback(self.host):
            raise ServeError(
                f"{self.host} can be reached from other machines: that needs a token. Put one into the environment "
                "variable IVME_TOKEN, or bind to 127.0.0.1"
            )

        self.tls_context()

    @property
    def grants(self) -> tuple[Grant, ...]:
        """What each token allows, that for everything first; without a token, everything."""
        if self.token is None:
            return (OPEN,)
        reading = () if self.read_token is None else (Grant(READER, self.read_token, READING),)
        return (Grant(OWNER, self.token, EVERYTHING), *reading, *self.tokens)

    def tls_context(self) -> ssl.SSLContext | None:
        """What TLS is spoken with; None without a certificate."""
        if self.tls_certificate is None:
            if self.tls_key is not None:
                raise ServeError("a key for TLS needs its certificate; name both files")
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.tls_certificate, self.tls_key)
        except (OSError, ssl.SSLError) as error:
            raise ServeError(f"the certificate {self.tls_certificate} cannot be used: {error}") from error
        return context


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "example.com")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
