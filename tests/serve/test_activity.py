"""Whoever changes the database, the server tells."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from ivme.database import Database
from ivme.errors import DataError
from tests.serve.running import flights, following, serving


def total(client: httpx.Client, name: str, wanted: int) -> int:
    """The sum of a column, as soon as the second is over in which it reaches what is wanted."""
    until = time.monotonic() + 5
    while True:
        found = sum(client.get("/activity").json()[name])
        if found >= wanted or time.monotonic() > until:
            return int(found)
        time.sleep(0.05)


@pytest.mark.parametrize("durable", [False, True])
def test_rows_and_batches_are_counted_whoever_sends_them(durable: bool, tmp_path: Path) -> None:
    with Database(*([tmp_path / "db"] if durable else [])) as db:
        flights(db)
        with serving(db) as address, httpx.Client(base_url=address, timeout=30) as client:
            db.insert("flights", [("A", 1, 2)])
            db.delete("flights", [("A", 1, 2)])
            db.insert("flights", [("B", 1, 2), ("C", 1, 2), ("D", 1, 2)])
            client.post("/tables/flights/changes", json={"insert": [["E", 1, 2]], "delete": [["B", 1, 2]]})
            with pytest.raises(DataError):
                db.delete("flights", [("nobody", 1, 2)])
            with pytest.raises(DataError):
                db.delete("flights", [("nobody", 1, 2), ("else", 1, 2)])
            client.get("/views/per_city")
            client.get("/views")
            assert (7, 4) == (total(client, "rows", 7), total(client, "batches", 4))
            assert 1 == total(client, "requests", 1)


def test_nobody_is_told_after_the_server_has_stopped() -> None:
    told: list[Any] = []
    with Database() as db:
        flights(db)
        db._runtime.observers += (lambda *each: told.append(each),)
        with serving(db):
            assert 2 == len(db._runtime.observers)
        assert 1 == len(db._runtime.observers)
        db.insert("flights", [("A", 1, 2)])
        assert [{"flights": 1}] == [rows for rows, _ in told]


def test_an_hour_refusals_memory_and_who_follows_are_told(client: httpx.Client) -> None:
    assert 404 == client.get("/views/nobody").status_code
    assert 1 <= total(client, "refused", 1)
    seen = client.get("/activity", params={"_span": "hour"}).json()
    assert (30, 120) == (seen["step"], len(seen["rows"]))
    assert 422 == client.get("/activity", params={"_span": "year"}).status_code
    assert 0 < client.get("/activity").json()["memory"][-1]
    assert {} == client.get("/stats").json()["followed"]
    with following(client, "per_city") as events:
        next(events)
        followed = client.get("/stats").json()["followed"]
        assert {"per_city": {"subscribers": 1, "changed_rows": 0}} == followed
