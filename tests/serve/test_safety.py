"""Who may ask, how long, and what the server says about itself."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest

from ivme.database import Database
from ivme.errors import ServeError
from ivme.serve.settings import Settings
from tests.serve.running import flights, serving

TOKEN = "a token of some length"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com", ""])
def test_an_address_that_others_reach_needs_a_token(host: str) -> None:
    with pytest.raises(ServeError, match="IVME_TOKEN"):
        Settings(host=host).check()
    Settings(host=host, token=TOKEN).check()


def test_a_short_token_is_refused() -> None:
    with pytest.raises(ServeError, match="shorter than 16"):
        Settings(token="secret").check()


def test_with_a_token_everything_but_the_health_and_the_page_needs_it(db: Database) -> None:
    with serving(db, Settings(token=TOKEN)) as address, httpx.Client(base_url=address, timeout=30) as client:
        for path in (
            "/views",
            "/views/per_city",
            "/views/per_city/changes",
            "/metrics",
            "/stats",
            "/openapi.json",
        ):
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
                found = client.get(path, headers=headers)
                assert (401, "Bearer") == (found.status_code, found.headers["www-authenticate"]), path
        assert 200 == client.get("/healthz").status_code
        assert 200 == client.get("/views/per_city", headers={"Authorization": f"Bearer {TOKEN}"}).status_code


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_without_a_token_a_foreign_name_for_this_machine_is_refused(steady: httpx.Client, host: str) -> None:
    assert 403 == steady.get("/views/per_city", headers={"Host": host}).status_code


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1", "[::1]:8321", "[::1]"])
def test_the_names_of_this_machine_are_taken(steady: httpx.Client, host: str) -> None:
    assert 200 == steady.get("/views/per_city", headers={"Host": host}).status_code


def test_a_request_that_takes_too_long_is_given_up(db: Database) -> None:
    with serving(db, Settings(seconds=0.2)) as address:
        released = threading.Event()
        held = threading.Event()

        def hold() -> None:
            with db._runtime.lock:
                held.set()
                released.wait()

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait()
        found = httpx.get(f"{address}/views/per_city", timeout=30)
        quick = httpx.get(f"{address}/healthz", timeout=30)
        released.set()
        holder.join()
        assert (504, 200) == (found.status_code, quick.status_code)
        assert 200 == httpx.get(f"{address}/views/per_city", timeout=30).status_code


def test_a_failure_of_the_server_is_logged_and_says_nothing(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("inner workings")

    monkeypatch.setattr("ivme.serve.access.read_asked", broken)
    found = client.get("/views/per_city")
    assert (500, "the server failed; its log says more") == (found.status_code, found.json()["error"])
    assert "inner workings" in caplog.text


def test_the_document_has_an_endpoint_for_each_view_with_typed_parameters(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    given = {
        p["name"]: (p["required"], p["schema"].get("x-ivme-type")) for p in paths["/views/search"]["get"]["parameters"]
    }
    assert {
        "origin": (True, "string"),
        "dest": (True, "string"),
        "_limit": (False, None),
        "_cursor": (False, None),
        "_order_by": (False, None),
        "_after": (False, None),
    } == given
    assert "int" == paths["/views/departures"]["get"]["parameters"][0]["schema"]["x-ivme-type"]
    assert "/views/departures/changes" not in paths
    client.post("/views", json={"name": "later", "query": "Q(A) = airports(A, B)"})
    assert "/views/later" in client.get("/openapi.json").json()["paths"]


def test_stats_explain_and_metrics_say_what_is_there(client: httpx.Client, db: Database) -> None:
    stats = client.get("/stats").json()
    assert {"flights": 3, "airports": 3} == {table["name"]: table["rows"] for table in stats["tables"]}
    assert ["search", "per_city", "all_flights", "departures"] == [view["name"] for view in stats["views"]]
    assert stats["views"] == [
        {**view, "maps": each["maps"]} for view, each in zip(client.get("/views").json(), stats["views"], strict=True)
    ]
    assert db.view("search").explain().query_class == client.get("/views/search/explain").json()["query_class"]
    assert 404 == client.get("/views/nobody/explain").status_code
    metrics = client.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'ivme_table_rows{table="flights"} 3' in metrics.text
    assert 'ivme_requests_total{endpoint="stats",status="200"} 1' in metrics.text


def test_what_is_nowhere_is_not_found(steady: httpx.Client) -> None:
    for found, status in (
        (steady.get("/nowhere"), 404),
        (steady.get("/views/a/b"), 404),
        (steady.delete("/stats"), 405),
    ):
        assert (status, True) == (found.status_code, "there is nothing at" in found.json()["error"])


def test_a_server_that_goes_down_tells_who_follows() -> None:
    from tests.serve.running import following

    with Database() as db:
        flights(db)
        opened = serving(db)
        address = opened.__enter__()
        with httpx.Client(base_url=address, timeout=30) as client, following(client, "per_city") as events:
            next(events)
            stopping = threading.Thread(target=opened.__exit__, args=(None, None, None))
            stopping.start()
            name, _, data = next(events)
            stopping.join()
        assert ("end", "stopped: the server is going down") == (name, data["error"])


NUMBERS = ("1e-16000000", "1e16000000", "1e999999999999999999999", "9" * 100_000, "0." + "9" * 100_000)


@pytest.mark.parametrize("number", NUMBERS, ids=range(len(NUMBERS)))
def test_a_number_that_takes_minutes_to_write_out_is_bounded_first(steady: httpx.Client, number: str) -> None:
    """An epsilon of 1e-16000000 once held the server for 83 seconds."""
    query = "SELECT COUNT(*) AS n FROM flights f JOIN airports a ON f.src = a.id"
    values = (number, f'"{number}"', f'{{"flights": {number}}}')
    bodies = [f'{{"query": "{query}", "options": {{"epsilon": {value}}}}}' for value in values]
    bodies.append(f'{{"query": "{query}", "options": {{"workload": {{"updates": {number}}}}}}}')
    for body in bodies:
        found = steady.post("/explain", content=body, headers={"Content-Type": "application/json"})
        assert found.status_code in (200, 400, 422), body[:200]
    for rows in (f'[["A", {number}, 2]]', f'[{{"no": "A", "src": {number}, "dst": 2}}]', f'[["A", "{number}", 2]]'):
        found = steady.post(
            "/tables/flights/changes", content=f'{{"insert": {rows}}}', headers={"Content-Type": "application/json"}
        )
        assert found.status_code in (400, 422), rows[:200]
        assert "limit" not in found.json()["error"]


@pytest.mark.parametrize("name", ["self", "name", "query", "tables", "given", "\\ud800"], ids=ascii)
def test_an_option_that_is_none_is_no_failure(client: httpx.Client, name: str) -> None:
    for path, more in (("/views", '"name": "w", '), ("/explain", "")):
        body = f'{{{more}"query": "SELECT no FROM flights", "options": {{"{name}": 1}}}}'
        found = client.post(path, content=body, headers={"Content-Type": "application/json"})
        assert 422 == found.status_code
        assert "there is no option" in found.json()["error"] or "lone surrogate" in found.json()["error"]


@pytest.mark.parametrize(
    "body",
    [
        r'{"name": "\ud800", "query": "SELECT no FROM flights"}',
        r'{"name": "a\u0000", "query": "SELECT no FROM flights"}',
        r'{"name": "w", "query": "SELECT no AS `\ud800` FROM flights"}',
        r'{"name": "w", "query": "SELECT no FROM flights WHERE no = \u0027\udfff\u0027"}',
        '{"name": "%s", "query": "SELECT no FROM flights"}' % ("a" * 256),
        '{"name": "w", "name": "x", "query": "SELECT no FROM flights"}',
        '{"name": "w", "query": "SELECT no FROM flights WHERE no = %s"}' % ("0" * 60_000),
    ],
    ids=range(7),
)
def test_a_view_that_cannot_be_named_is_not_made(client: httpx.Client, db: Database, body: str) -> None:
    before = db.views
    found = client.post("/views", content=body, headers={"Content-Type": "application/json"})
    assert found.status_code in (400, 413, 422)
    assert before == db.views
    assert 200 == client.get("/openapi.json").status_code


def test_a_view_with_an_older_name_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are checked when views are made; a directory may hold one that was made before."""
    monkeypatch.setattr("ivme.definitions.definitions.check_name", lambda *_: None)
    monkeypatch.setattr("ivme.definitions.definitions.check_table", lambda _: None)
    with Database() as db:
        flights(db)
        db.create_table("t\ud800", {"a": "int"})
        db.create_view("v\ud800", "SELECT no FROM flights")
        db.create_view("a {b}?c", "SELECT no FROM flights")
        with serving(db) as address, httpx.Client(base_url=address, timeout=30) as client:
            paths = client.get("/openapi.json").json()["paths"]
            assert {"/views/v%5Cud800", "/views/a%20%7Bb%7D%3Fc"} <= paths.keys()
            assert 200 == client.get("/views/a%20%7Bb%7D%3Fc").status_code
            for path in ("/views", "/stats", "/metrics", "/activity", "/views/per_city"):
                assert 200 == client.get(path).status_code
            unknown = client.get("/views/nobody")
            assert (404, True) == (unknown.status_code, r"v\ud800" in unknown.json()["error"])
