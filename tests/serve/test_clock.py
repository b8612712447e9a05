"""The clock over every door, and the tables that ivme makes for itself, which no list has."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import httpx
import psycopg
import pytest

import ivme
from ivme.database import Database
from ivme.errors import DataError, QueryError
from ivme.serve.server import Server, running
from ivme.serve.settings import Settings

NOON = datetime(2026, 3, 9, 12)
RECENT = "SELECT id FROM clicks WHERE at > NOW() - INTERVAL '1' HOUR"


@pytest.fixture
def db() -> Iterator[Database]:
    with Database() as made:
        made.sql("CREATE TABLE clicks (id BIGINT, at TIMESTAMP)")
        made.create_view("recent", RECENT)
        made.insert("clicks", [(n, NOON + timedelta(minutes=20 * n)) for n in range(6)])
        yield made


@pytest.fixture
def server(db: Database) -> Iterator[Server]:
    with running(db, Settings(port=0, pg_port=0)) as made:
        yield made


def _address(server: Server) -> str:
    return f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"


def _recent(db: Database) -> list[Any]:
    return sorted(id_ for (id_,) in db.view("recent"))


def test_the_clock_is_advanced_by_sql_http_the_client_and_postgresqls_clients(db: Database, server: Server) -> None:
    db.sql("ADVANCE CLOCK TO TIMESTAMP '2026-03-09 12:30:00'")
    assert [0, 1, 2, 3, 4, 5] == _recent(db)
    db.sql("ADVANCE CLOCK TO :now", now=NOON + timedelta(hours=1))
    assert ([1, 2, 3, 4, 5], NOON + timedelta(hours=1)) == (_recent(db), db.sql("SHOW CLOCK").scalar())
    with httpx.Client(base_url=_address(server), timeout=30) as client:
        assert {"now": "2026-03-09T13:20:00"} == client.post("/clock", json={"now": "2026-03-09T13:20:00"}).json()
        for body in ({"now": "2026-03-09T13:00:00"}, {"now": 3}, {"now": "soon"}, {}):
            assert 422 == client.post("/clock", json=body).status_code
        assert {"now": "2026-03-09T13:20:00"} == client.get("/clock").json()
    assert [2, 3, 4, 5] == _recent(db)
    with ivme.connect(_address(server)) as remote:
        remote.advance((NOON + timedelta(minutes=100)).replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=5))))
        assert NOON + timedelta(minutes=100) == remote.now
        with pytest.raises(DataError, match="does not go back"):
            remote.advance(NOON)
    assert [3, 4, 5] == _recent(db)

    async def advance() -> datetime | None:
        async with await ivme.connect_async(_address(server)) as remote:
            await remote.advance(NOON + timedelta(minutes=120))
            return await remote.now()

    assert NOON + timedelta(minutes=120) == asyncio.run(advance())
    assert [4, 5] == _recent(db)
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, dbname="ivme", autocommit=True) as connection:
        connection.execute("ADVANCE CLOCK TO %s", [NOON + timedelta(minutes=140)])
        assert [(5,)] == connection.execute("SELECT id FROM recent").fetchall()
        with pytest.raises(psycopg.Error, match="does not go back"):
            connection.execute("ADVANCE CLOCK TO TIMESTAMP '1999-01-01 00:00:00'")


def test_a_moment_that_is_none_is_refused_at_its_place(db: Database) -> None:
    for text in ("ADVANCE CLOCK", "ADVANCE TO TIMESTAMP '2026-01-01'", "ADVANCE CLOCK TO 3", "ADVANCE CLOCK TO id"):
        with pytest.raises(QueryError):
            db.sql(text)
    with pytest.raises(DataError, match="moved to a datetime"):
        db.sql("ADVANCE CLOCK TO NULL")
    assert datetime(1970, 1, 1) == db.now


def test_no_list_has_the_tables_that_ivme_makes_for_itself(db: Database, server: Server) -> None:
    with httpx.Client(base_url=_address(server), timeout=30) as client:
        changes = {"insert": [[9, None]]}
        client.post("/tables/clicks/changes", json=changes, headers={"Idempotency-Key": "k"}).raise_for_status()
        assert {"ivme_clock", "ivme_requests"} < set(db.definitions.catalog.tables)
        for path in ("/tables", "/views", "/stats", "/openapi.json", "/metrics"):
            assert "ivme_clock" not in client.get(path).text, path
            assert "ivme_requests{" not in client.get(path).text, path
        assert ["clicks"] == client.get("/views").json()[0]["reads"]
        assert 200 == client.post("/explain", json={"query": RECENT}).status_code
    assert ("clicks",) == db.tables
    assert ["clicks"] == [row[0] for row in db.sql("SHOW TABLES")]
    assert "ivme_clock" not in repr(db)
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, dbname="ivme") as connection:
        listed = connection.execute("SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'public'").fetchall()
        assert [("clicks",)] == listed
    assert [(datetime(1970, 1, 1),)] == list(db.table("ivme_clock"))


def test_changes_of_tables_are_counted_and_upserts_and_replacements_go_over_http(server: Server, db: Database) -> None:
    with ivme.connect(_address(server)) as remote:
        remote.create_table("stock", {"item": "string", "n": "int", "price": "decimal(8, 2)"}, primary_key="item")
        assert ("item",) == db.relation("stock").primary_key
        remote.insert("stock", [("pen", 1, "2.50"), ("ink", 2, None)])
        remote.upsert("stock", [{"item": "pen", "n": 5, "price": None}])
        assert [("ink", 2, None), ("pen", 5, None)] == sorted(db.table("stock"))
        remote.replace("stock", [("pen", 5, None), ("cap", 1, None)])
        assert [("cap", 1, None), ("pen", 5, None)] == sorted(db.table("stock"))
        remote.add_column("stock", "place", "string", "shelf")
        remote.rename_column("stock", "place", "where")
        remote.rename_table("stock", "goods")
        assert [("cap", 1, None, "shelf"), ("pen", 5, None, "shelf")] == sorted(db.table("goods"))
        db.sql("UPDATE goods SET n = n + 1")
        stats = httpx.get(f"{_address(server)}/stats", timeout=30).json()
        changed = {each["name"]: each["changed_rows"] for each in stats["tables"]}
        assert {"clicks": 0, "goods": 4} == changed, "a row that changes goes and comes"
        with remote.view("recent").changes() as feed:
            db.insert("clicks", [(7, datetime(2027, 1, 1))])
            assert {(7,): 1} == next(feed)
