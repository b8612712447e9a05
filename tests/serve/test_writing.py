"""Batches and views over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from ivme.database import Database
from ivme.errors import ServeError
from ivme.query import names
from ivme.serve import writing
from ivme.serve.settings import Settings
from tests.serve.running import flights, serving


def rows(db: Database) -> list[Any]:
    return sorted(db.view("all_flights"))


def test_a_batch_is_applied_and_counted(client: httpx.Client, db: Database) -> None:
    changes = {"insert": [["DY 1", 3, 1], {"no": "DY 2", "SRC": 3, "dst": 2}], "delete": [["SK 806", 1, 3]]}
    made = client.post("/tables/flights/changes", json=changes)
    assert (200, {"applied": {"flights": {"insert": 2, "delete": 1}}, "repeated": False}) == (
        made.status_code,
        made.json(),
    )
    assert [("BA 712", 1, 2), ("DY 1", 3, 1), ("DY 2", 3, 2), ("LX 317", 1, 2)] == rows(db)


def test_a_batch_over_several_tables_is_all_or_nothing(client: httpx.Client, db: Database) -> None:
    changes = {"flights": {"insert": [["DY 1", 4, 1]]}, "airports": {"insert": [[4, "Bonn"]]}}
    made = client.post("/batch", json={"changes": changes, "source": "feed", "position": 3})
    assert 200 == made.status_code
    assert 3 == db.position("feed")
    before = rows(db)
    again = client.post("/batch", json={"changes": changes, "source": "feed", "position": 3})
    assert (422, True) == (again.status_code, "applied before" in again.json()["error"])
    broken = {"flights": {"insert": [["DY 2", 4, 1]]}, "airports": {"insert": [[4, "Cologne"]]}}
    refused = client.post("/batch", json={"changes": broken})
    assert (422, True) == (refused.status_code, "primary key" in refused.json()["error"])
    assert before == rows(db)


def test_a_request_with_a_key_is_applied_once(client: httpx.Client, db: Database) -> None:
    body = {"insert": [["DY 1", 3, 1]]}
    key = {"Idempotency-Key": "first"}
    made = [client.post("/tables/flights/changes", json=body, headers=key).json() for _ in range(3)]
    assert [False, True, True] == [each["repeated"] for each in made]
    assert 4 == len(rows(db))
    other = client.post("/tables/flights/changes", json={"insert": [["DY 2", 3, 1]]}, headers=key)
    assert (422, True) == (other.status_code, "another request" in other.json()["error"])
    assert 404 == client.post("/tables/ivme_requests/changes", json={"insert": []}).status_code


def test_a_key_of_a_request_that_failed_may_be_used_again(client: httpx.Client, db: Database) -> None:
    body, key = {"delete": [["DY 1", 3, 1]]}, {"Idempotency-Key": "again"}
    assert 422 == client.post("/tables/flights/changes", json=body, headers=key).status_code
    db.insert("flights", [("DY 1", 3, 1)])
    assert 200 == client.post("/tables/flights/changes", json=body, headers=key).status_code


def test_keys_survive_a_restart_and_the_oldest_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "KEPT_KEYS", 5)
    for start in (0, 8):
        with Database(tmp_path) as db:
            if not db.tables:
                flights(db)
            with serving(db) as address:
                for number in range(start, start + 8):
                    made = httpx.post(
                        f"{address}/tables/flights/changes",
                        json={"insert": [[f"X{number}", 1, 1]]},
                        headers={"Idempotency-Key": f"key {number}"},
                        timeout=30,
                    )
                    assert not made.json()["repeated"]
            assert 5 == db._runtime.backend.size(db._runtime.catalog.tables[names.REQUESTS].rows)
    with Database(tmp_path) as db, serving(db) as address:
        for number, repeated in ((15, True), (11, True), (10, False)):
            made = httpx.post(
                f"{address}/tables/flights/changes",
                json={"insert": [[f"X{number}", 1, 1]]},
                headers={"Idempotency-Key": f"key {number}"},
                timeout=30,
            )
            assert repeated == made.json()["repeated"], number


def test_a_table_of_another_with_the_name_of_ours_is_refused() -> None:
    with Database() as db:
        db.create_table(names.REQUESTS, {"a": "int"})
        with pytest.raises(ServeError, match="rename yours"):
            writing.Writing(db)


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b"[" * 100_000, 400, "nested too deeply"),
        (b"1" * 5000, 400, "an integer of thousands of digits"),
        (b"\xff\xfe", 400, "not JSON"),
        (b"[]", 422, "are {"),
        (b'{"update": []}', 422, "are {"),
        (b'{"insert": {}}', 422, "list of rows"),
        (b'{"insert": [1]}', 422, "row 0: a row is a list of values"),
        (b'{"insert": [["a", 1]]}', 422, "2 values; there are 3 columns"),
        (b'{"insert": [["a", 1, 2], ["b", "x", 2]]}', 422, "row 1"),
        (b'{"insert": [["a", 1.5, 2]]}', 422, "column src"),
        (b'{"insert": [["a", 1e999999999, 2]]}', 422, "row 0"),
        (b'{"insert": [["a", 1, {"b": [2]}]]}', 422, "column dst"),
        (b'{"insert": [["\\ud800", 1, 2]]}', 422, "surrogate"),
        (b'{"insert": [{"no": "a", "src": 1}]}', 422, "dst"),
        (b'{"insert": [["a", NaN, 2]]}', 400, "NaN, which is not JSON"),
    ],
)
def test_a_body_that_cannot_be_applied_is_refused(
    steady: httpx.Client, steady_db: Database, body: bytes, status: int, reason: str
) -> None:
    before = rows(steady_db)
    found = steady.post("/tables/flights/changes", content=body, headers={"Content-Type": "application/json"})
    assert status == found.status_code, found.text
    assert reason in found.json()["error"]
    assert before == rows(steady_db)


def test_a_body_of_another_type_is_refused(steady: httpx.Client) -> None:
    found = steady.post("/tables/flights/changes", content=b"{}", headers={"Content-Type": "text/plain"})
    assert (415, True) == (found.status_code, "application/json" in found.json()["error"])


def test_a_body_that_is_too_large_is_refused_however_it_is_sent() -> None:
    def chunks() -> Any:
        for _ in range(100):
            yield b" " * 100

    with Database() as db:
        flights(db)
        with serving(db, Settings(body_bytes=1000)) as address:
            for content in (b" " * 1001, chunks()):
                found = httpx.post(
                    f"{address}/batch", content=content, headers={"Content-Type": "application/json"}, timeout=30
                )
                assert (413, True) == (found.status_code, "more than 1000 bytes" in found.json()["error"])


def test_a_view_is_made_and_answers(client: httpx.Client) -> None:
    made = client.post(
        "/views", json={"name": "to", "query": "SELECT no FROM flights WHERE dst = :dst", "options": {"epsilon": 0.5}}
    )
    assert (201, {"dst": "int"}, "CQAP0") == (made.status_code, made.json()["parameters"], made.json()["class"])
    assert [["SK 806"]] == client.get("/views/to?dst=3").json()["rows"]


@pytest.mark.parametrize(
    "view",
    [
        {},
        [],
        {"name": "v"},
        {"name": 1, "query": "Q(A) = flights(A, B, C)"},
        {"name": "v", "query": "SELECT"},
        {"name": "v", "query": "SELECT x FROM nobody"},
        {"name": "search", "query": "Q(A) = flights(A, B, C)"},
        {"name": "v", "query": "Q(A) = flights(A, B, C)", "options": {"epsilon": 7}},
        {"name": "v", "query": "Q(A) = flights(A, B, C)", "options": {"nothing": 7}},
        {"name": "v", "query": "Q(A) = flights(A, B, C)", "options": []},
        {"name": "v/w", "query": "Q(A) = flights(A, B, C)"},
        {"name": "", "query": "Q(A) = flights(A, B, C)"},
    ],
)
def test_a_view_that_cannot_be_made_is_refused(steady: httpx.Client, steady_db: Database, view: Any) -> None:
    before = steady_db.views
    found = steady.post("/views", json=view)
    assert 422 == found.status_code
    assert found.json()["error"]
    assert before == steady_db.views
