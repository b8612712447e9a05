"""A pipeline's database over shards behind HTTP: rows, pages, changes, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from ivme.errors import ServeError
from ivme.serve.server import make_server, serving
from ivme.serve.settings import Settings
from ivme.shards.state import ShardedState
from tests.serve.running import following
from tests.sharded_databases import local_database

OWNER = "this server belongs to the pipeline shop"


@pytest.fixture
def state(tmp_path: Path) -> Iterator[ShardedState]:
    found = ShardedState(local_database(tmp_path, 3), (), "pipeline")
    found.create_table("sales", {"item": "string", "price": "int"})
    found.create_view("totals", "SELECT item, COUNT(*) AS n, SUM(price) AS total FROM sales GROUP BY item")
    found.create_view("of_item", "SELECT price FROM sales WHERE item = :item")
    with found.batch("pipeline", 0) as batch:
        batch.apply("sales", [(f"item {i % 10}", i) for i in range(100)], 1)
    yield found
    found.close()


@pytest.fixture
def client(state: ShardedState) -> Iterator[httpx.Client]:
    with serving(state, Settings(port=0, owner=OWNER)) as address, httpx.Client(base_url=address, timeout=30) as made:
        yield made


def test_rows_come_from_the_shards_in_every_form(client: httpx.Client) -> None:
    found = client.get("/views/of_item", params={"item": "item 3"}).json()
    assert (["price"], [[i] for i in range(3, 100, 10)]) == (found["columns"], sorted(found["rows"]))
    assert [] == client.get("/views/of_item", params={"item": "nothing"}).json()["rows"]
    ordered = client.get("/views/totals", params={"_order_by": "-total", "_limit": 2}).json()
    assert [["item 9", 10, 540], ["item 8", 10, 530]] == ordered["rows"]
    behind = client.get("/views/totals", params={"_order_by": "-total", "_limit": 2, "_after": ordered["next"]}).json()
    assert [["item 7", 10, 520], ["item 6", 10, 510]] == behind["rows"]
    first = client.get("/views/totals", params={"_limit": 6}).json()
    rest = client.get("/views/totals", params={"_cursor": first["next"]}).json()
    assert sorted(f"item {i}" for i in range(10)) == sorted(row[0] for row in first["rows"] + rest["rows"])
    arrow = client.get("/views/totals", headers={"accept": "application/vnd.apache.arrow.stream"})
    assert 4950 == sum(pa.ipc.open_stream(arrow.content).read_all().column("total").to_pylist())


def test_changes_are_sent_behind_the_rows(client: httpx.Client, state: ShardedState) -> None:
    with httpx.Client(base_url=client.base_url, timeout=30) as other, following(other, "totals") as events:
        _, _, snapshot = next(events)
        assert 10 == len(snapshot["rows"])
        with state.batch("pipeline", 1) as batch:
            batch.apply("sales", [("item 3", 7), ("new", 1)], 1)
        _, _, change = next(events)
        assert [["item 3", 10, 480], -1] in change["changes"]
        assert [["item 3", 11, 487], 1] in change["changes"]
        assert 3 == len(change["changes"])


def test_what_is_known_of_the_views_is_told(client: httpx.Client) -> None:
    described = {view["name"]: view for view in client.get("/views").json()}
    assert {"item": "string"} == described["of_item"]["parameters"]
    assert "over 3 shards" in client.get("/views/totals/explain").text
    stats = client.get("/stats").json()
    assert ({"pipeline": 0}, 3) == (stats["sources"], len(stats["shards"]))
    assert "/views/of_item" in client.get("/openapi.json").json()["paths"]
    assert "ivme_requests_total" in client.get("/metrics").text
    assert {"now": None} == client.get("/clock").json()
    assert 200 == client.get("/healthz").status_code


def test_what_shards_do_not_serve_is_refused_in_words(client: httpx.Client, state: ShardedState) -> None:
    for path in ("/batch", "/sql", "/views", "/tables/sales/changes"):
        refused = client.post(path, json={})
        assert (403, OWNER) == (refused.status_code, refused.json()["error"])
    missing = client.get("/tables/sales")
    assert (404, True) == (missing.status_code, "of a database over shards" in missing.json()["error"])
    assert 404 == client.get("/views/unknown").status_code
    assert 422 == client.get("/views/of_item").status_code
    with pytest.raises(ServeError, match="PostgreSQL's protocol runs statements"):
        make_server(state, Settings(port=0, pg_port=0))


def test_an_answer_has_no_more_rows_than_are_allowed(state: ShardedState) -> None:
    with serving(state, Settings(port=0, rows=5)) as address:
        found = httpx.get(f"{address}/views/totals", headers={"accept": "application/x-ndjson"})
        assert (413, True) == (found.status_code, "more than 5 rows" in found.json()["error"])


def test_a_token_sees_what_it_may(state: ShardedState) -> None:
    settings = Settings(port=0, token="a secret of some length")
    with serving(state, settings) as address:
        assert 401 == httpx.get(f"{address}/views").status_code
        headers: Any = {"authorization": "Bearer a secret of some length"}
        assert 2 == len(httpx.get(f"{address}/views", headers=headers).json())
