"""SQL, tables and other forms of answers over HTTP, and the client of Python."""

from __future__ import annotations

import asyncio
import csv
import io
import threading
import time
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pandas
import pyarrow as pa
import pyarrow.parquet
import pytest

import ivme
from ivme.client.connection import RemoteDatabase, RemoteError
from ivme.database import Database
from ivme.errors import DataError, IvmeError, UnknownNameError
from ivme.serve.settings import Settings
from tests.serve.running import serving

TOKEN, READER = "a token of twenty-four letters", "another one, only for reading"
_SCRIPT = """
    CREATE TABLE items (id BIGINT PRIMARY KEY, name STRING, price DECIMAL(8, 2), day DATE);
    CREATE VIEW dear AS SELECT name, price FROM items WHERE price > 5;
    CREATE VIEW by_name AS SELECT id FROM items WHERE name = :name;
    INSERT INTO items VALUES (1, 'pen', 2.50, NULL), (2, 'ink', 8, DATE '2024-05-01');
"""


@pytest.fixture
def db() -> Iterator[Database]:
    with Database() as made:
        made.sql(_SCRIPT)
        yield made


@pytest.fixture
def address(db: Database) -> Iterator[str]:
    with serving(db, Settings(token=TOKEN, read_token=READER)) as made:
        yield made


def _client(address: str, token: str = TOKEN) -> httpx.Client:
    return httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=60)


def test_statements_are_run_and_answered_in_every_form(address: str) -> None:
    with _client(address) as client:
        asked: dict[str, Any] = {"sql": "SELECT id, name FROM items WHERE id >= :least", "parameters": {"least": 2}}
        assert [[2, "ink"]] == client.post("/sql", json=asked).json()["rows"]
        found = client.post("/sql", json=asked, headers={"Accept": "text/csv"})
        assert [["id", "name"], ["2", "ink"]] == list(csv.reader(io.StringIO(found.text)))
        found = client.post("/sql", json=asked, headers={"Accept": "application/vnd.apache.parquet"})
        assert [{"id": 2, "name": "ink"}] == pa.parquet.read_table(io.BytesIO(found.content)).to_pylist()
        found = client.get("/views/dear", headers={"Accept": "text/csv"})
        assert ("name,price", "ink,8.00") == tuple(found.text.replace('"', "").split())
        told = client.post("/sql", json={"sql": "INSERT INTO items VALUES (3, 'cap', 9, NULL)"}).json()
        assert {"message": "1 row inserted", "count": 1} == told
        day = {"type": "date", "value": "2024-05-01"}
        asked = {"sql": "SELECT id FROM items WHERE day = :day", "parameters": {"day": day}}
        assert [[2]] == client.post("/sql", json=asked).json()["rows"]
        first = {"sql": "SELECT id FROM items ORDER BY id"}
        assert [[1], [2]] == client.post("/sql", json=first, params={"_limit": 2}).json()["rows"]
        assert 422 == client.post("/sql", json=first, params={"_limit": 0}).status_code


def test_tables_are_listed_read_and_dropped(address: str, db: Database) -> None:
    with _client(address) as client:
        (items,) = client.get("/tables").json()
        assert ("items", ["id"], 2) == (items["name"], items["primary_key"], items["rows"])
        assert 1 == len(client.get("/tables/items", params={"_limit": 1}).json()["rows"])
        assert 422 == client.get("/tables/items", params={"_limit": 0}).status_code
        assert 404 == client.get("/tables/none").status_code
        assert 422 == client.delete("/tables/items").status_code
        assert 200 == client.delete("/views/dear").status_code
        assert 404 == client.delete("/views/dear").status_code
        assert 200 == client.delete("/views/by_name").status_code
        assert 200 == client.delete("/tables/items").status_code
    assert ((), ()) == (db.tables, db.views)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"sql": "SELEC 1"}, 422),
        ({"sql": "SELECT nothing FROM items"}, 422),
        ({"sql": "COPY items FROM '/etc/passwd'"}, 422),
        ({"sql": "BEGIN; DELETE FROM items"}, 422),
        ({"sql": "SELECT 1 AS x", "parameters": {"y": 1}}, 422),
        ({"sql": "SELECT id FROM items WHERE id = :x", "parameters": {"x": {"type": "date"}}}, 422),
        ({"sql": "SELECT id FROM items WHERE id = :x", "parameters": {"x": {"type": "nope", "value": "1"}}}, 422),
        ({"sql": 3}, 422),
        ({"text": "SELECT 1"}, 422),
        ([], 422),
        ({"sql": "SELECT 1 AS x " + " " * 300_000}, 413),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_changed(address: str, db: Database, body: Any, status: int) -> None:
    with _client(address) as client:
        found = client.post("/sql", json=body)
    assert status == found.status_code, found.text
    assert found.json()["error"]
    assert 2 == len(db.table("items"))


def test_a_token_for_reading_reads_and_changes_nothing(address: str, db: Database) -> None:
    with _client(address, READER) as client:
        assert 200 == client.get("/views/dear").status_code
        assert 200 == client.post("/sql", json={"sql": "SELECT id FROM items"}).status_code
        assert 200 == client.post("/explain", json={"query": "SELECT id FROM items"}).status_code
        for text in ("DELETE FROM items", "DROP VIEW dear", "CREATE TABLE x (a BIGINT)"):
            assert 403 == client.post("/sql", json={"sql": text}).status_code
        assert 403 == client.post("/tables/items/changes", json={"delete": []}).status_code
        assert 403 == client.post("/views", json={"name": "v", "query": "SELECT id FROM items"}).status_code
        assert 403 == client.delete("/views/dear").status_code
    with _client(address, "neither of the two tokens") as client:
        assert 401 == client.post("/sql", json={"sql": "SELECT 1 AS x"}).status_code
    assert (("dear", "by_name"), 2) == (db.views, len(db.table("items")))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_query_that_takes_too_long_is_ended(db: Database) -> None:
    db.create_table("big", {"a": "int"})
    db.insert("big", [(n,) for n in range(3000)])
    slow = "SELECT COUNT(*) AS n FROM big x, big y, big z WHERE x.a + y.a + z.a > 5 AND x.a * y.a < z.a + 7"
    with serving(db, Settings(seconds=0.5, rows=100)) as address, httpx.Client(base_url=address, timeout=60) as client:
        assert 504 == client.post("/sql", json={"sql": slow}).status_code
        assert 413 == client.post("/sql", json={"sql": "SELECT a FROM big"}).status_code
        assert [[3000]] == client.post("/sql", json={"sql": "SELECT COUNT(*) AS n FROM big"}).json()["rows"]


# The client


def test_the_client_has_the_methods_of_a_database(address: str, db: Database) -> None:
    with ivme.connect(address, token=TOKEN) as remote:
        assert (("items",), ("dear", "by_name")) == (remote.tables, remote.views)
        remote.insert("items", [(3, "cap", Decimal("9.75"), date(2024, 2, 29)), (4, None, None, None)])
        remote.insert("items", pandas.DataFrame({"id": [5], "name": ["tip"], "price": [None], "day": [None]}))
        assert set(db.table("items")) == set(remote.sql("SELECT * FROM items"))
        assert {("ink", Decimal("8.00")), ("cap", Decimal("9.75"))} == set(remote.view("dear"))
        assert [(3,)] == list(remote.view("by_name")(name="cap"))
        assert 2 == remote.view("dear").to_polars().height == len(remote.view("dear").to_pandas())
        found = remote.sql(
            "SELECT id FROM items WHERE day = :day AND price = :p", day=date(2024, 2, 29), p=Decimal("9.75")
        )
        assert [(3,)] == found.rows()
        assert [(2,), (3,)] == remote.sql("SELECT id FROM items WHERE id IN (:ids) ORDER BY id", ids=[2, 3]).rows()
        remote.update("items", set={"price": "price + :more"}, where="id = :id", more=1, id=1)
        remote.delete_where("items", "id > 3")
        remote.delete("items", [(3, "cap", Decimal("9.75"), date(2024, 2, 29))])
        view = remote.create_view("all_ids", "SELECT id FROM items")
        assert {(1,), (2,)} == set(view)
        assert "strategy" in view.explain()
        remote.drop_view("all_ids")
        with remote.batch("source", 4) as batch:
            batch.insert("items", [{"id": 9, "name": "x", "price": "1", "day": None}])
        assert 4 == db.position("source")
        remote.truncate("items")
    assert [] == list(db.table("items"))


def test_values_of_parameters_keep_their_types(address: str, db: Database) -> None:
    db.sql("CREATE TABLE kinds (t TIMESTAMP, f DOUBLE, b BINARY, s STRING)")
    moment = datetime(2024, 2, 29, 12, 30, 1, 5)
    with ivme.connect(address, token=TOKEN) as remote:
        values: dict[str, Any] = {"t": moment, "f": 1e-7, "b": b"\0\xff", "s": "it's"}
        remote.sql("INSERT INTO kinds VALUES (:t, :f, :b, :s)", **values)
        assert [(moment, 1e-7, b"\0\xff", "it's")] == remote.sql("SELECT * FROM kinds").rows()
        with pytest.raises(DataError, match="a parameter is"):
            remote.sql("SELECT 1 AS x WHERE :x", x=object())


def test_errors_are_those_of_ivme_with_the_message_of_the_server(address: str) -> None:
    with pytest.raises(RemoteError, match=r"ivme\.connect\(url, token="):
        ivme.connect(address)
    with pytest.raises(RemoteError, match="cannot be reached: no server listens there"):
        ivme.connect("http://127.0.0.1:9")
    with pytest.raises(RemoteError, match="not the address"):
        ivme.connect("ftp://x")
    with pytest.raises(RemoteError, match="is a directory: open it by"):
        ivme.connect(str(Path(__file__).parent))
    with ivme.connect(address, token=TOKEN) as remote:
        with pytest.raises(UnknownNameError, match="there is no view nothing"):
            remote.view("nothing")
        with pytest.raises(DataError, match="line 1"):
            remote.sql("SELECT nothing FROM items")
        with pytest.raises(IvmeError, match="primary key"):
            remote.insert("items", [(1, "again", None, None)])


def test_changes_are_followed_over_http_until_the_view_is_dropped(address: str, db: Database) -> None:
    with ivme.connect(address, token=TOKEN) as remote:
        got: list[dict[Any, int]] = []
        feed = remote.view("dear").changes()
        reader = threading.Thread(target=lambda: got.extend(feed))
        reader.start()
        remote.insert("items", [(7, "oak", "70", None)])
        while not got:
            reader.join(0.01)
            assert reader.is_alive()
        remote.drop_view("dear")
        reader.join(30)
    assert [{("oak", Decimal("70.00")): 1}] == got
    assert isinstance(remote, RemoteDatabase)
    assert ("by_name",) == db.views


def test_changes_that_are_not_followed_any_more_are_closed_once_or_twice(address: str) -> None:
    with ivme.connect(address, token=TOKEN) as remote:
        feed = remote.view("dear").changes()
        waiting = threading.Thread(target=lambda: list(feed))
        waiting.start()
        feed.close()
        waiting.join(30)
        assert not waiting.is_alive()
        feed.close()
        assert [] == list(feed)
        remote.view("dear").changes().close()


# The client for event loops


def test_a_client_for_event_loops_has_the_same_methods(address: str, db: Database) -> None:
    async def use() -> None:
        async with await ivme.connect_async(address, token=TOKEN) as remote:
            assert (("items",), ("dear", "by_name")) == (await remote.tables(), await remote.views())
            await asyncio.gather(*(remote.insert("items", [(n, "many", "9", None)]) for n in range(10, 30)))
            assert 22 == (await remote.sql("SELECT COUNT(*) AS n FROM items")).scalar()
            await remote.delete_where("items", "id >= :n", n=10)
            view = await remote.create_view("all_ids", "SELECT id FROM items")
            assert {(1,), (2,)} == {row async for row in view} == set(await view.rows())
            assert 2 == (await view.to_arrow()).num_rows
            assert "strategy" in await view.explain()
            assert "maps" in await view.stats()
            assert {} == await remote.broken_views()
            by_name = await remote.view("by_name")
            assert [(2,)] == await by_name.rows(name="ink")
            await remote.update("items", set={"price": "9"}, where="id = 1")
            async with remote.batch("source", 5) as batch:
                batch.delete("items", set(db.table("items")))
            await remote.drop_view("all_ids")
            with pytest.raises(DataError, match="line 1"):
                await remote.sql("SELECT nothing FROM items")
            assert 0 == (await remote.sql("SELECT COUNT(*) AS n FROM items")).scalar()

    asyncio.run(use())


def test_tables_are_changed_in_an_event_loop(address: str) -> None:
    async def use() -> None:
        async with await ivme.connect_async(address, token=TOKEN) as remote:
            await remote.create_table("notes", {"id": "int", "text": "string"}, primary_key="id")
            await remote.insert("notes", [(1, "one")])
            await remote.add_column("notes", "n", "int", 7)
            await remote.rename_column("notes", "text", "words")
            await remote.rename_table("notes", "told")
            assert [{"id": 1, "words": "one", "n": 7}] == (await remote.contents("told"))[0].to_pylist()
            await remote.drop_column("told", "words")
            view = await remote.create_view("ns", "SELECT n FROM told")
            assert [7] == list((await view.to_pandas())["n"]) == list((await view.to_polars())["n"])

    asyncio.run(use())


def test_changes_are_followed_in_an_event_loop_until_nobody_waits(address: str) -> None:
    got: list[dict[Any, int]] = []

    async def use() -> None:
        async with await ivme.connect_async(address, token=TOKEN) as remote:
            view = await remote.view("dear")

            async def follow() -> None:
                async for change in view.changes():
                    got.append(change)  # noqa: PERF401  as it comes

            task = asyncio.create_task(follow())
            while not got:
                await remote.insert("items", [(len(got) + int(time.monotonic() * 1000), "oak", "70", None)])
                await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(use())  # which waits for its threads
    assert got[0] == {("oak", Decimal("70.00")): 1}
