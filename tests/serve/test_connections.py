"""Connections that send nothing, half of something, or read nothing: they end, and nobody else is held up."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from ivme.database import Database
from ivme.errors import ServeError
from ivme.serve.settings import Settings
from tests.serve.raw import connect, read_answer, read_to_end, request
from tests.serve.running import serving

TOKEN = "a token of some length"
GET = request("GET /views/per_city HTTP/1.1")

HALVES = {
    "nothing": b"",
    "half a line": b"GET /views/per",
    "half a header": b"GET /views/per_city HTTP/1.1\r\nHost: local",
    "a header without its end": GET[:-2],
}


@contextmanager
def closing(connections: list[socket.socket]) -> Iterator[None]:
    try:
        yield
    finally:
        for connection in connections:
            connection.close()


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def send_slowly(connection: socket.socket, *pieces: bytes) -> None:
    """Sends pieces until the server closes the connection, which it has to."""
    try:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.02)
    except ConnectionError:
        return
    pytest.fail("all was taken")


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_a_header_that_does_not_come_ends_the_connection(db: Database, half: bytes) -> None:
    with serving(db, Settings(header_seconds=0.3)) as address, connect(address) as connection:
        connection.sendall(half)
        answer = read_to_end(connection)
        assert (answer.startswith(b"HTTP/1.1 408 Request Timeout"), b"" == answer) == (half != b"", half == b"")


def test_a_header_that_comes_byte_by_byte_ends_the_connection(db: Database) -> None:
    with serving(db, Settings(header_seconds=0.5)) as address, connect(address) as connection:
        send_slowly(connection, GET[:-2], *[b"y"] * 1000)


@pytest.mark.parametrize("start", [b"GET /", b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\n"])
def test_a_header_without_an_end_is_refused_when_it_is_too_long(db: Database, start: bytes) -> None:
    more = b"X-Y: z\r\n" if start.endswith(b"\r\n") else b"a"
    with serving(db) as address, connect(address) as connection:
        connection.sendall(start + more * (200_000 // len(more)))
        assert b" 431 " in read_to_end(connection).split(b"\r\n")[0]


@pytest.mark.parametrize(
    "form", [("Content-Length: 100", b'{"insert"'), ("Transfer-Encoding: chunked", b'9\r\n{"insert"')]
)
def test_a_body_that_does_not_come_is_given_up(
    db: Database, form: tuple[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ivme.serve.connections._LINGER", 0.2)
    header, body = form
    with serving(db, Settings(seconds=0.3)) as address, connect(address) as connection:
        connection.sendall(
            request("POST /tables/flights/changes HTTP/1.1", "Content-Type: application/json", header, body=body)
        )
        assert b" 408 " in read_to_end(connection).split(b"\r\n")[0]
        assert 3 == len(list(db.view("all_flights")))


def test_trailers_without_an_end_are_not_held(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ivme.serve.connections._LINGER", 0.2)
    with serving(db, Settings(seconds=0.3)) as address, connect(address) as connection:
        connection.sendall(request("GET /views/per_city HTTP/1.1", "Transfer-Encoding: chunked", body=b"0\r\n"))
        assert 200 == read_answer(connection)[0]
        send_slowly(connection, *[b"X: y\r\n" * 100] * 1000)


def test_a_connection_waits_for_the_next_request_only_so_long(db: Database) -> None:
    with serving(db, Settings(idle_seconds=0.5, header_seconds=30)) as address, connect(address) as connection:
        for _ in range(3):
            connection.sendall(GET)
            assert 200 == read_answer(connection)[0]
        assert b"" == read_to_end(connection)


def test_who_is_not_admitted_holds_no_place(db: Database) -> None:
    settings = Settings(token=TOKEN, header_seconds=0.4, idle_seconds=60)
    with serving(db, settings) as address, connect(address) as stranger, connect(address) as client:
        stranger.sendall(GET)
        assert 401 == read_answer(stranger)[0]
        token = f"Authorization: Bearer {TOKEN}"
        client.sendall(request("GET /views/per_city HTTP/1.1", token))
        assert 200 == read_answer(client)[0]
        assert b"" == read_to_end(stranger)
        time.sleep(0.5)
        client.sendall(request("GET /views/per_city HTTP/1.1", token))
        assert 200 == read_answer(client)[0]


def test_a_stranger_is_refused_before_its_body_is_read(db: Database) -> None:
    with serving(db, Settings(token=TOKEN)) as address, connect(address) as connection:
        connection.sendall(
            request(
                "POST /batch HTTP/1.1", "Content-Type: application/json", "Content-Length: 16000000", body=b'{"changes'
            )
        )
        assert 401 == read_answer(connection)[0]


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_a_good_client_goes_on_among_hundreds_that_send_nothing(db: Database, half: bytes) -> None:
    """The one that has waited longest gives its place to a new connection, also if all are of one address."""
    with serving(db, Settings(connections=200, connections_per_address=100)) as address:
        opened: list[socket.socket] = []
        with closing(opened), connect(address) as steady:
            for number in range(300):
                opened.append(connect(address))
                opened[-1].sendall(half)
                if number % 50 == 0:
                    steady.sendall(GET)
                    assert 200 == read_answer(steady)[0]
                    assert 200 == httpx.get(f"{address}/views/per_city", timeout=30).status_code


def test_all_addresses_together_have_a_limit(db: Database) -> None:
    with serving(db, Settings(connections=50, connections_per_address=20)) as address:
        opened: list[socket.socket] = []
        with closing(opened):
            opened += [connect(address, f"127.0.0.{2 + number % 100}") for number in range(200)]
            assert 200 == httpx.get(f"{address}/views/per_city", timeout=30).status_code


def test_a_new_connection_is_refused_where_none_waits(db: Database) -> None:
    with serving(db, Settings(connections_per_address=3)) as address:
        opened = [connect(address) for _ in range(3)]
        with closing(opened):
            for connection in opened:
                connection.sendall(request("GET /views/per_city/changes HTTP/1.1"))
                assert connection.recv(100).startswith(b"HTTP/1.1 200")
            with connect(address) as refused:
                assert read_to_end(refused).startswith(b"HTTP/1.1 503 Service Unavailable")
            with connect(address, "127.0.0.2") as other:
                other.sendall(GET)
                assert 200 == read_answer(other)[0]
            opened[0].close()
            wait_for(lambda: httpx.get(f"{address}/healthz", timeout=30).status_code == 200)


def test_a_server_without_a_place_is_refused() -> None:
    with pytest.raises(ServeError, match="at least 1 connection"):
        Settings(connections=0).check()


def test_an_answer_that_is_not_read_is_cut(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """4 MB, of which the system holds some; the rest would wait in the server as long as the client likes."""
    monkeypatch.setattr("ivme.serve.connections._LINGER", 0.2)
    db.insert("flights", [(f"{number:0200}", 1, 2) for number in range(20_000)])
    with serving(db, Settings(seconds=0.5)) as address, connect(address, receive_buffer=4096) as connection:
        connection.sendall(request("GET /views/all_flights HTTP/1.1", "Accept: application/x-ndjson"))
        wait_for(lambda: b"\nivme_connections 1\n" in httpx.get(f"{address}/metrics", timeout=30).content)


def test_changes_that_end_close_their_connection(db: Database) -> None:
    """A client that does not read what is left would hold its place until it has been idle for long."""
    db.create_view("short", "SELECT COUNT(*) AS n FROM flights")
    with serving(db) as address, connect(address) as connection:
        connection.sendall(request("GET /views/short/changes HTTP/1.1"))
        assert b"connection: close" in connection.recv(1000)
        db.drop_view("short")
        connection.settimeout(20)
        received = b"".join(iter(lambda: connection.recv(4096), b""))
        assert b"event: end" in received


@pytest.mark.parametrize(("rows", "length"), [(1000, 500), (1, 4_000_000)], ids=["many", "long"])
def test_a_subscriber_that_does_not_read_is_dropped(
    db: Database, monkeypatch: pytest.MonkeyPatch, rows: int, length: int
) -> None:
    """By the number of rows that wait for it, or by their size, long before its 30 seconds are over."""
    monkeypatch.setattr("ivme.serve.connections._LINGER", 0.2)
    settings = Settings(seconds=0.5, backlog=5000, linger=0.1)
    with serving(db, settings) as address, connect(address, receive_buffer=4096) as connection:
        connection.sendall(request("GET /views/all_flights/changes HTTP/1.1"))
        assert connection.recv(100).startswith(b"HTTP/1.1 200")

        def dropped() -> bool:
            text = str(time.monotonic_ns()).zfill(length)
            db.insert("flights", [(f"{text}-{number}", 1, 2) for number in range(rows)])
            found = httpx.get(f"{address}/metrics", timeout=30).text
            return "\nivme_subscribers 0\n" in found and "\nivme_connections 1\n" in found

        wait_for(dropped)
        db.view("all_flights").verify()


def test_a_server_stops_in_spite_of_subscribers_that_do_not_read(
    db: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so where it has waited for somebody as long as it may; uvicorn's messages are not passed on to others."""
    opened: list[socket.socket] = []
    with closing(opened), serving(db) as address:
        monkeypatch.setattr(logging.getLogger("uvicorn"), "handlers", [caplog.handler])
        opened += [connect(address, receive_buffer=4096) for _ in range(5)]
        for connection in opened:
            connection.sendall(request("GET /views/all_flights/changes HTTP/1.1"))
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        for number in range(20):
            db.insert("flights", [(f"{number}-{each:0500}", 1, 2) for each in range(1000)])
            time.sleep(0.06)
    assert "graceful shutdown exceeded" not in caplog.text


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_a_server_stops_in_spite_of_connections_that_wait(db: Database, half: bytes) -> None:
    opened: list[socket.socket] = []
    with closing(opened):
        with serving(db) as address:
            for _ in range(20):
                opened.append(connect(address))
                opened[-1].sendall(half)
            httpx.get(f"{address}/healthz", timeout=30)
        for connection in opened:
            read_to_end(connection)
