"""Slow, killed and hostile clients of PostgreSQL's protocol: the server goes on as it was."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from ivme.database import Database
from ivme.serve.server import Server, running
from ivme.serve.settings import Settings

psycopg = pytest.importorskip("psycopg")

TOKEN = "a token of twenty-four letters"
_STARTUP = b"\0\3\0\0user\0me\0\0"
_SLOW = "SELECT COUNT(*) AS n FROM big x, big y, big z WHERE x.a + y.a + z.a > 5 AND x.a * y.a < z.a + 7"

_INTERRUPTED = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An interruption may come into a destructor, which cannot raise it; it is sent again."""


@pytest.fixture
def db() -> Iterator[Database]:
    with Database() as made:
        made.create_table("big", {"a": "int", "b": "int"})
        made.insert("big", [(n, n % 7) for n in range(3000)])
        yield made


def _raw(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.pg_port or 0), timeout=20)


def _sized(body: bytes, kind: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def _connect(server: Server, token: str = TOKEN) -> Any:
    where = {"host": "127.0.0.1", "port": server.pg_port, "user": "me", "dbname": "ivme"}
    return psycopg.connect(password=token, autocommit=True, connect_timeout=20, **where)


def _answer(raw: socket.socket) -> bytes:
    """All that comes until the server closes."""
    found = bytearray()
    with suppress(ConnectionResetError):
        while data := raw.recv(65536):
            found += data
    return bytes(found)


def _still_serves(server: Server) -> bool:
    with _connect(server) as connection:
        return bool(connection.execute("SELECT COUNT(*) AS n FROM big").fetchone() == (3000,))


def test_bytes_of_all_kinds_leave_the_server_as_it_was(db: Database) -> None:
    random = Random(4)
    started = _sized(_STARTUP)
    odd = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\xff" * 100,
        struct.pack("!I", 4),
        struct.pack("!I", 2**31) + b"x",
        _sized(b"\0\2\0\0user\0me\0\0"),
        started + _sized(b"SELECT 1\0", b"Q"),
        started + _sized(b"SCRAM-SHA-256\0" + struct.pack("!i", 3) + b"n,,", b"p"),
        started
        + _sized(b"SCRAM-SHA-256\0" + struct.pack("!i", 9) + b"n,,n=,r=a", b"p")
        + _sized(b"c=biws,r=a,p=AAAA", b"p"),
        started + _sized(b"PLAIN\0\0\0\0\1x", b"p"),
        *(started + random.randbytes(random.randrange(1, 400)) for _ in range(20)),
    ]
    settings = Settings(port=0, pg_port=0, token=TOKEN, header_seconds=1.0)
    with running(db, settings) as server:
        for data in odd:
            with _raw(server) as raw:
                raw.sendall(data)
                assert b"3000" not in _answer(raw)
        assert _still_serves(server)


def test_messages_without_sense_end_their_connection_only(db: Database) -> None:
    random = Random(5)
    with running(db, Settings(port=0, pg_port=0, body_bytes=10_000)) as server:
        first = _connect(server)
        odd = [
            _sized(b"", b"?"),
            _sized(b"SELECT 1", b"Q"),
            struct.pack("!cI", b"Q", 2**30),
            struct.pack("!cI", b"Q", 1),
            _sized(b"\xff\xfe\0", b"Q"),
            _sized(b"x\0SELECT 1\0\0\7", b"P"),
            _sized(b"\0\0\0\1\0\2\0\1\0\0\0\1x", b"B"),
            _sized(b"Dx\0", b"D"),
            *(
                _sized(random.randbytes(random.randrange(40)), random.choice([b"P", b"B", b"D", b"E"]))
                for _ in range(30)
            ),
        ]
        for data in odd:
            with _raw(server) as raw:
                raw.sendall(_sized(_STARTUP) + data + _sized(b"", b"S") + _sized(b"", b"X"))
                assert b"the server failed" not in _answer(raw), data
        assert (3000,) == first.execute("SELECT COUNT(*) AS n FROM big").fetchone()
        with pytest.raises(psycopg.Error):
            first.execute("SELECT '" + "x" * 20_000 + "' AS x")
        first.close()


def test_a_client_that_says_nothing_loses_its_place(db: Database) -> None:
    with running(db, Settings(port=0, pg_port=0, token=TOKEN, header_seconds=0.5)) as server, _raw(server) as raw:
        assert b"" == _answer(raw)
        assert _still_serves(server)


def test_too_many_connections_are_refused_and_places_are_given_back(db: Database) -> None:
    settings = Settings(port=0, pg_port=0, token=TOKEN, connections_per_address=3)
    with running(db, settings) as server:
        held = [_connect(server) for _ in range(3)]
        with pytest.raises(psycopg.OperationalError, match="too many connections"):
            _connect(server)
        held[0].close()
        _until(lambda: _still_serves(server))
        for connection in held[1:]:
            connection.close()


def _until(holds: Callable[[], bool]) -> None:
    """Waits for something that becomes true soon: a place is given back after the client has left."""
    for _ in range(200):
        try:
            assert holds()
            return
        except psycopg.OperationalError:
            time.sleep(0.05)
    raise AssertionError("it never came true")


@_INTERRUPTED
def test_a_select_that_takes_too_long_is_ended_and_the_database_goes_on(db: Database) -> None:
    with running(db, Settings(port=0, pg_port=0, token=TOKEN, seconds=0.5)) as server:
        with _connect(server) as connection, pytest.raises(psycopg.errors.QueryCanceled, match=r"longer than 0\.5"):
            connection.execute(_SLOW)
        assert _still_serves(server)
    db.insert("big", [(1, 1)])
    assert 3001 == len(db.table("big"))
    assert () == db.views


@_INTERRUPTED
def test_a_client_cancels_its_statement_and_goes_on(db: Database) -> None:
    with running(db, Settings(port=0, pg_port=0, token=TOKEN)) as server, _connect(server) as connection:
        timer = threading.Timer(0.5, connection.cancel_safe)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled, match="was cancelled"):
            connection.execute(_SLOW)
        timer.join()
        assert (3000,) == connection.execute("SELECT COUNT(*) AS n FROM big").fetchone()


@_INTERRUPTED
def test_a_client_that_is_killed_while_it_waits_leaves_nothing(db: Database) -> None:
    with running(db, Settings(port=0, pg_port=0, seconds=2.0)) as server:
        raw = _raw(server)
        raw.sendall(_sized(_STARTUP) + _sized(_SLOW.encode() + b"\0", b"Q"))
        time.sleep(0.3)
        raw.close()
        assert _still_serves(server)


def test_a_client_that_is_killed_in_a_transaction_has_changed_nothing(db: Database) -> None:
    with running(db, Settings(port=0, pg_port=0)) as server:
        raw = _raw(server)
        changes = (
            b"BEGIN; INSERT INTO big VALUES (-1, 0); DELETE FROM big WHERE a < 10; SELECT COUNT(*) AS n FROM big\0"
        )
        raw.sendall(_sized(_STARTUP) + _sized(changes, b"Q"))
        found = b""
        while not found.endswith(b"Z\0\0\0\5T"):
            found += raw.recv(65536)
        assert b"2990" in found
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # as if the process was killed
        raw.close()
        assert _still_serves(server)
        assert 3000 == len(db.table("big"))
        db.insert("big", [(-1, 0)])


def test_answers_and_texts_have_limits(db: Database) -> None:
    settings = Settings(port=0, pg_port=0, token=TOKEN, rows=100, statement_characters=200)
    with running(db, settings) as server, _connect(server) as connection:
        with pytest.raises(psycopg.Error, match="more than 100 rows"):
            connection.execute("SELECT * FROM big")
        with pytest.raises(psycopg.Error, match="at most 200 characters"):
            connection.execute("SELECT a FROM big WHERE a IN (" + ", ".join(map(str, range(100))) + ")")
        assert 100 == len(connection.execute("SELECT a FROM big WHERE a < 100").fetchall())


def test_a_client_that_does_not_read_is_cut(db: Database) -> None:
    db.create_table("wide", {"s": "string"})
    db.insert("wide", [(f"{n}" * 2000,) for n in range(4000)])
    with running(db, Settings(port=0, pg_port=0, seconds=1.0)) as server, _raw(server) as raw:
        raw.sendall(_sized(_STARTUP) + _sized(b"SELECT * FROM wide\0", b"Q"))
        time.sleep(2.5)
        assert _still_serves(server)
        assert not _answer(raw).endswith(b"Z\0\0\0\5I")
