"""Requests that nobody means well with: each has a well-formed answer that is no failure, and changes nothing unless it
says so. `IVME_REQUESTS` says how many are made up."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from ivme.database import Database
from tests.serve.raw import Answer, connect, read_from, request
from tests.serve.running import flights, serving

DIGITS = "9" * 100_000
TEXTS = (
    "null", "true", "0", "-1", "1.5", "1e400", "1e-16000000", "1e16000000", "1e99999999999999999999", "-0.0", "NaN",
    "-Infinity", DIGITS, f"0.{DIGITS}", '""', '"x"', r'"\ud800"', r'"\udc00\ud800"', r'"\u0000"', r'"\n"', '"\ufeff"',
    f'"{"a" * 300}"', r'"\ud83d\ude00"', '"NaN"', '"1e16000000"', '"2024-13-45"', "[]", "{}", "[[]]", "[{}]", "[null]",
    "[" * 5000, "[" * 400 + "]" * 400, '{"a":' * 5000, '{"a":' * 400 + "1" + "}" * 400, '{"a": 1, "a": 2}', "tru", "",
    '["a", 1, 2]', '[["a", 1, 2]]', '{"no": "a", "src": 1, "dst": 2}', '{"no": "a", "NO": "b", "src": 1, "dst": 2}',
    '{"no": "a", "no": "b", "src": 1, "dst": 2}', '{"flights": {"insert": [["a", 1, 2]]}}', '{"ivme_requests": {}}',
    '{"flights": {"insert": [["a", 1, 2]], "insert": []}}', '{"flights": {"delete": [["a", 1, 2]]}}',
    '"SELECT no FROM flights"', '"SELECT no FROM flights WHERE src = :p"', '"Q(A) = flights(A, B, C)"', '"flights"',
    r'"SELECT no AS `\ud800` FROM flights"', r'"SELECT no AS `\n` FROM flights"', '"SELECT 1e16000000 FROM flights"',
    f'"SELECT no FROM flights WHERE {"(" * 1000}src = 1{")" * 1000}"', '"' + "/**/" * 40 + 'x"',
    f'"SELECT CAST(no AS DECIMAL({"9" * 5000}, 2)) AS x FROM flights"',
)  # fmt: skip
OPTIONS = (
    "strategy", "epsilon", "append_only", "static", "semantics", "space", "rebalance", "workload", "graph", "self",
    "name", "query", "tables", "", r"\ud800",
)  # fmt: skip
COUNT = "SELECT COUNT(*) AS n FROM flights f JOIN airports a ON f.src = a.id"
BODIES = (
    ("/tables/flights/changes", ("%s", '{"insert": %s}', '{"delete": [%s]}', '{"insert": [["a", %s, 2]]}')),
    ("/tables/flights/changes", ('{"insert": [["b", 1, 2], [%s, 1, 2]]}', '{"insert": [["b", 1, 2]], "delete": %s}')),
    ("/tables/%%ED%%A0%%80/changes", ('{"insert": %s}',)),
    ("/batch", ("%s", '{"changes": %s}', '{"changes": {}, "source": %s, "position": 7}')),
    ("/batch", ('{"changes": {"flights": %s}}', '{"changes": {}, "source": "s", "position": %s}')),
    ("/views", ("%s", '{"name": %s, "query": "SELECT no FROM flights"}', '{"name": "w", "query": %s}')),
    ("/views", (f'{{"name": "w", "query": "{COUNT}", "options": %s}}',)),
    ("/views", tuple(f'{{"name": "w", "query": "{COUNT}", "options": {{"{name}": %s}}}}' for name in OPTIONS)),
    ("/explain", ("%s", '{"query": %s}', f'{{"query": "{COUNT}", "options": %s}}')),
    ("/explain", tuple(f'{{"query": "{COUNT}", "options": {{"{name}": %s}}}}' for name in OPTIONS)),
)
PATHS = (
    "*", "/", "//", "/views/", "/views//changes", "/views/%00", "/views/%ED%A0%80", "/views/%FF", "/views/per_city?%",
    "/views/per_city?_limit=0", "/views/per_city?_limit=" + "9" * 5000, "/views/per_city?_limit=1_0",
    "/views/per_city?_limit=%D9%A1", "/views/per_city?_cursor=.", "/views/per_city?_cursor=a.%B2",
    "/views/departures?src=1e16000000", "/views/departures?src=" + "9" * 30_000, "/views/departures?src=1_0",
    "/views/departures?src=%201", "/views/departures?src=%ED%A0%80", "/views/departures?src=1&src=1",
    "/views/departures?" + "a=b&" * 300, "/views/search?origin=%00&dest=%ED%A0%80", "http://localhost/views/per_city",
    "http://localhost", "ftp://x/views", "localhost:80", "/../../etc/passwd", "/page/../app.py", "/page/%2e%2e%2fapp",
    "/views/" + "a" * 50_000, "/stats?_maps=maybe", "/%ED%A0%80", "/views/per city", "/openapi.json?x", "/metrics",
    "/views/per_city/", "/views/per_city/changes/", "/views/nobody/changes", "/views/per_city/changes?_rows=1",
)  # fmt: skip
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "FOO", "")
VERSIONS = ("HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "", "HTTP/1.1 x")
HEADERS = (
    "Connection: close", "Connection: upgrade\r\nUpgrade: websocket", "Content-Length: -1", "Content-Length: 1x",
    "Content-Length: 0\r\nContent-Length: 5", "Content-Length: 5\r\nTransfer-Encoding: chunked", "Accept: text/html",
    "Transfer-Encoding: gzip", "Accept: application/x-ndjson", "Accept: \xff\xfe", "Authorization: \xff\xfe",
    "Last-Event-ID: \xff-\xb2", "Idempotency-Key: ", "Idempotency-Key: " + "k" * 300, "Content-Type: text/plain",
    "Content-Type: \xff", "\r\n".join(["X: y"] * 1000), "X\x00: y", ": y", "X y", "Host: evil.example", " folded: x",
    "Cookie: " + "c" * 50_000, "Content-Encoding: gzip", "Range: bytes=0-1",
)  # fmt: skip
CHUNKS = (
    b"-1\r\n",
    b"FFFFFFFFFFFFFFFFF\r\n",
    b"zz\r\n",
    b"5;" + b"x" * 50_000 + b"\r\nabcde\r\n0\r\n\r\n",
    b"0\r\n\r\n",
)
JSON = "Content-Type: application/json"


def odd_bodies(chance: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    """Requests to change or explain something, with a value that does not belong where it stands."""
    for _ in range(count):
        path, forms = chance.choice(BODIES)
        body = chance.choice(forms) % chance.choice(TEXTS)
        if chance.random() < 0.1:
            body = body[: chance.randrange(len(body) + 1)]
        line = f"POST {path.replace('%%', '%')} HTTP/1.1"
        yield line, request(line, JSON, body=body.encode("utf-8", "surrogatepass") or b" ")


def odd_lines(chance: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    """Requests whose method, address, version or headers are odd."""
    for _ in range(count):
        line = f"{chance.choice(METHODS)} {chance.choice(PATHS)} {chance.choice(VERSIONS)}".rstrip()
        headers = chance.sample(HEADERS, chance.choice((0, 0, 1, 2)))
        if chance.random() < 0.1:
            yield line, request(line, JSON, "Transfer-Encoding: chunked", body=chance.choice(CHUNKS))
        else:
            yield line, request(line, *headers, "Connection: close")


def state(db: Database) -> Any:
    rows = {name: sorted(map(repr, db.contents(name)[0].to_pylist())) for name in db.tables}
    return db.tables, db.views, rows, db._runtime.catalog.positions.all()


def answered(address: str, line: str, sent: bytes) -> Answer:
    with connect(address) as connection:
        with suppress(ConnectionError):  # it is refused before it is read to its end, and the answer is there
            connection.sendall(sent)
        with connection.makefile("rb") as stream:
            return read_from(stream, line.split(" ")[0])


@pytest.mark.parametrize(
    "count", [int(os.environ.get("IVME_REQUESTS", "300")), pytest.param(10_000, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("odd", [odd_bodies, odd_lines])
def test_every_odd_request_has_an_answer_and_leaves_no_trace(odd: Any, count: int) -> None:
    seed = int(os.environ.get("IVME_SEED", "1"))
    with Database() as db:
        flights(db)
        with serving(db) as address:
            before = state(db)
            for line, sent in odd(random.Random(seed), count):
                status, headers, body = answered(address, line, sent)
                assert 200 <= status < 300 or 400 <= status < 500, (line, sent[:500], body)
                if headers.get("content-type") == "application/json" and body:
                    found = json.loads(body)
                    assert status < 400 or found["error"]
                if status >= 400:
                    assert before == state(db), (line, sent[:500], body)
                before = state(db)
            document = httpx.get(f"{address}/openapi.json", timeout=30)
            assert {f"/views/{quote(view, safe='')}" for view in db.views} <= document.json()["paths"].keys()
            for view in db.views:
                db.view(view).verify()


def test_requests_in_one_piece_are_answered_in_order(client: httpx.Client) -> None:
    address = str(client.base_url)
    with connect(address) as connection:
        lines = [f"GET /views/departures?src={number} HTTP/1.1" for number in (1, 2, 1, 9)]
        connection.sendall(b"".join(map(request, lines)))
        with connection.makefile("rb") as stream:
            found = [json.loads(read_from(stream)[2])["rows"] for _ in lines]
    assert [[[3]], [[0]], [[3]], [[0]]] == found


def test_what_follows_a_request_and_is_none_does_not_get_into_its_answer(client: httpx.Client) -> None:
    with connect(str(client.base_url)) as connection:
        connection.sendall(request("GET /views/per_city/changes HTTP/1.1"))
        begun = connection.recv(1000)
        connection.sendall(b"\x00\x01 this is none\r\n\r\n")
        while piece := connection.recv(1000):
            begun += piece
    assert 1 == begun.count(b"HTTP/1.1 ")
