"""Changes of views as server-sent events."""

from __future__ import annotations

import socket
from collections import Counter
from typing import Any
from urllib.parse import urlparse

import httpx
import pytest

from ivme.database import Database
from ivme.serve.feed import ChangeFeed
from ivme.serve.settings import Settings
from tests.serve.running import flights, following, serving


def add(total: Counter[Any], pairs: list[Any]) -> None:
    for row, weight in pairs:
        total[tuple(row)] += weight
        if not total[tuple(row)]:
            del total[tuple(row)]


def test_a_snapshot_comes_first_and_then_changes(client: httpx.Client, db: Database) -> None:
    with following(client, "per_city") as events:
        name, first, data = next(events)
        assert ("snapshot", ["city", "n"], [[["London", 3], 1]], False) == (
            name,
            data["columns"],
            data["rows"],
            data["more"],
        )
        db.insert("flights", [("DY 1", 3, 1)])
        name, second, data = next(events)
        assert ("change", [[["Oslo", 1], 1]]) == (name, data["changes"])
        assert first != second


def test_a_large_snapshot_comes_in_parts(client: httpx.Client, db: Database) -> None:
    db.insert("flights", [(f"XX {n}", 1, 2) for n in range(12_000)])
    total: Counter[Any] = Counter()
    with following(client, "all_flights") as events:
        parts = 0
        more = True
        while more:
            name, _, data = next(events)
            assert "snapshot" == name
            add(total, data["rows"])
            more, parts = data["more"], parts + 1
    assert (3, Counter(db.view("all_flights"))) == (parts, total)


def test_who_comes_back_gets_what_it_missed(client: httpx.Client, db: Database) -> None:
    with following(client, "all_flights") as events:
        next(events)
        db.insert("flights", [("DY 1", 3, 1)])
        _, position, _ = next(events)
    db.insert("flights", [("DY 2", 3, 1)])
    db.delete("flights", [("DY 1", 3, 1)])
    for known in ({"headers": {"Last-Event-ID": position}}, {"params": {"_after": position}}):
        total: Counter[Any] = Counter()
        with following(client, "all_flights", **known) as events:
            while len(total) < 2:
                name, _, data = next(events)
                assert "change" == name
                add(total, data["changes"])
        assert Counter({("DY 2", 3, 1): 1, ("DY 1", 3, 1): -1}) == total


@pytest.mark.parametrize("position", ["", "x", "x-1", "-", "-1", "\u0661"])
def test_who_comes_back_from_nowhere_starts_again(steady: httpx.Client, position: str) -> None:
    with following(steady, "all_flights", params={"_after": position}) as events:
        assert "snapshot" == next(events)[0]


def test_what_is_not_kept_any_more_is_sent_as_a_new_snapshot() -> None:
    with Database() as db:
        flights(db)
        with serving(db, Settings(backlog=10)) as address, httpx.Client(base_url=address, timeout=30) as client:
            with following(client, "all_flights") as events:
                _, position, _ = next(events)
                for number in range(4):
                    db.insert("flights", [(f"XX {number} {n}", 1, 2) for n in range(5)])
                    next(events)
            with following(client, "all_flights", params={"_after": position}) as events:
                name, _, data = next(events)
                assert ("snapshot", 23) == (name, len(data["rows"]))


def test_changes_without_rows_begin_at_the_position(client: httpx.Client, db: Database) -> None:
    with following(client, "all_flights", params={"_rows": "false"}) as events:
        assert next(events)[2]["rows"] is None
        db.insert("flights", [("DY 1", 3, 1)])
        assert [[["DY 1", 3, 1], 1]] == next(events)[2]["changes"]


def test_a_view_with_parameters_is_followed_whole_or_for_one_request(client: httpx.Client, db: Database) -> None:
    one = {"origin": "London", "dest": "Zurich"}
    with following(client, "search") as whole, following(client, "search", params=one) as few:
        _, _, data = next(whole)
        assert (["origin", "dest", "no"], None) == (data["columns"], data["rows"])
        _, _, data = next(few)
        assert (["no"], [[["BA 712"], 1], [["LX 317"], 1]]) == (data["columns"], sorted(data["rows"]))
        db.insert("flights", [("DY 1", 3, 1), ("LX 1", 1, 2)])
        assert [[["London", "Zurich", "LX 1"], 1], [["Oslo", "London", "DY 1"], 1]] == sorted(next(whole)[2]["changes"])
        assert [[["LX 1"], 1]] == next(few)[2]["changes"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/views/nobody/changes", 404),
        ("/views/departures/changes", 422),
        ("/views/search/changes?origin=London", 422),
        ("/views/search/changes?via=London", 422),
        ("/views/per_city/changes?_rows=perhaps", 422),
    ],
)
def test_what_cannot_be_followed_is_refused(steady: httpx.Client, path: str, status: int) -> None:
    found = steady.get(path)
    assert status == found.status_code
    assert found.json()["error"]


def test_who_follows_a_view_that_is_dropped_is_told(client: httpx.Client, db: Database) -> None:
    with following(client, "per_city") as events:
        next(events)
        db.drop_view("per_city")
        name, _, data = next(events)
        assert ("end", "gone: view per_city was dropped") == (name, data["error"])
        assert [] == list(events)


def test_who_does_not_read_is_dropped_with_a_message_and_blocks_nobody() -> None:
    with Database() as db:
        flights(db)
        with serving(db, Settings(backlog=2000, frame=0.01, seconds=600)) as address:
            where = urlparse(address)
            slow = socket.create_connection((where.hostname, where.port), timeout=60)
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
            slow.sendall(b"GET /views/all_flights/changes HTTP/1.1\r\nHost: localhost\r\n\r\n")
            total: Counter[Any] = Counter()
            with (
                httpx.Client(base_url=address, timeout=60) as client,
                following(client, "all_flights") as events,
            ):
                add(total, next(events)[2]["rows"])
                for number in range(60):
                    rows = [(f"{number} {n} {'x' * 1000}", 1, 2) for n in range(200)]
                    db.insert("flights", rows)
                    while total.total() < 3 + 200 * (number + 1):
                        add(total, next(events)[2]["changes"])
                assert Counter(db.view("all_flights")) == total
                metrics = client.get("/metrics").text
            assert "ivme_dropped_subscribers_total 1" in metrics
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**22)
            received = b""
            while not received.endswith(b"0\r\n\r\n"):
                part = slow.recv(2**16)
                assert part, received[-300:]
                received = (received + part)[-2000:]
            assert b"event: end" in received
            assert b"more than 2000 changed rows were waiting" in received
            slow.close()


def test_a_feed_that_nobody_follows_is_given_up(db: Database) -> None:
    with (
        serving(db, Settings(frame=0.01, linger=0.05)) as address,
        httpx.Client(base_url=address, timeout=30) as client,
    ):
        with following(client, "per_city") as events:
            next(events)
            assert 1 == db._runtime.catalog.views["per_city"].followers
        while db._runtime.catalog.views["per_city"].followers:
            assert 200 == client.get("/healthz").status_code
        with following(client, "per_city") as events:
            assert "snapshot" == next(events)[0]


def test_a_feed_that_fails_tells_its_subscribers_and_the_others_go_on(
    client: httpx.Client, db: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    flush = ChangeFeed.flush

    def broken(feed: ChangeFeed) -> int:
        if feed.view.name == "per_city" and feed.position:
            raise RuntimeError("broken feed")
        return flush(feed)

    with following(client, "per_city") as failing, following(client, "all_flights") as others:
        next(failing), next(others)
        monkeypatch.setattr(ChangeFeed, "flush", broken)
        db.insert("flights", [("DY 1", 3, 1)])
        assert ["change", "end"] == [next(failing)[0], next(failing)[0]]
        assert "change" == next(others)[0]
        db.insert("flights", [("DY 2", 3, 1)])
        assert "change" == next(others)[0]
    assert "broken feed" in caplog.text


def test_a_snapshot_may_have_only_the_first_rows_and_counts_all(db: Database, client: httpx.Client) -> None:
    db.insert("flights", [("LX 317", 1, 2)])
    with following(client, "all_flights", params={"_limit": 2}) as events:
        name, _, content = next(events)
        assert ("snapshot", 2, 4, False) == (name, len(content["rows"]), content["total"], content["whole"])
        db.insert("flights", [("NEW", 3, 1)])
        name, _, content = next(events)
        assert ("change", [[["NEW", 3, 1], 1]]) == (name, content["changes"])
    with following(client, "all_flights", params={"_limit": 4}) as events:
        content = next(events)[2]
        assert (4, 5, True) == (len(content["rows"]), content["total"], content["whole"])
    with following(client, "all_flights") as events:
        assert "total" not in next(events)[2]
    assert 422 == client.get("/views/all_flights/changes", params={"_limit": 0}).status_code


def test_a_view_is_described_with_its_text_its_cost_and_what_it_reads(client: httpx.Client) -> None:
    found = {each["name"]: each for each in client.get("/views").json()}["per_city"]
    assert found["query"].startswith("SELECT a.city, COUNT(*)")
    assert ["airports", "flights"] == sorted(found["reads"])
    assert "An update costs a few look-ups" in found["cost"]
