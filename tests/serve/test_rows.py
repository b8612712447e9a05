"""Access requests over HTTP."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import httpx
import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.serve.asking import ARROW, NDJSON
from ivme.serve.settings import Settings
from tests.serve.running import FLIGHTS, flights, serving


def test_an_access_request_is_an_endpoint_of_its_view(steady: httpx.Client) -> None:
    found = steady.get("/views/search", params={"origin": "London", "dest": "Zurich"})
    assert 200 == found.status_code
    assert ["no"] == found.json()["columns"]
    assert [["BA 712"], ["LX 317"]] == sorted(found.json()["rows"])


def test_a_request_for_what_is_not_there_has_no_rows(steady: httpx.Client) -> None:
    found = steady.get("/views/search", params={"origin": "Nowhere", "dest": "Zurich"})
    assert (200, []) == (found.status_code, found.json()["rows"])


def test_what_is_nearly_right_is_answered_with_what_to_send(client: httpx.Client) -> None:
    limited = client.get("/views/all_flights", params={"limit": 2})
    assert (422, True) == (limited.status_code, "did you mean _limit?" in limited.json()["error"])
    got = client.get("/tables/flights/changes")
    assert (405, True) == (got.status_code, got.json()["error"].endswith("; it takes POST"))
    short = client.post("/tables/flights/changes", json={"insert": [["a"]]})
    assert (422, True) == (short.status_code, "it has 1 value; there are 3 columns" in short.json()["error"])
    made = client.post("/tables", json={"name": "t", "columns": {"a": "int"}, "keep_rows": "no"})
    assert (422, True) == (made.status_code, "keep_rows of a table must be true or false" in made.json()["error"])


def test_an_aggregate_over_nothing_is_a_row(steady: httpx.Client) -> None:
    assert [[0]] == steady.get("/views/departures", params={"src": 99}).json()["rows"]


def test_a_whole_view_comes_in_the_form_that_is_asked_for(steady: httpx.Client) -> None:
    expected = sorted(FLIGHTS)
    assert expected == sorted(map(tuple, steady.get("/views/all_flights").json()["rows"]))
    lines = steady.get("/views/all_flights", headers={"Accept": NDJSON})
    assert NDJSON == lines.headers["content-type"]
    assert expected == sorted(tuple(json.loads(line).values()) for line in lines.text.splitlines())
    arrow = steady.get("/views/all_flights", headers={"Accept": ARROW})
    table = pa.ipc.open_stream(arrow.content).read_all()
    assert pa.schema([("no", pa.string()), ("src", pa.int64()), ("dst", pa.int64())]) == table.schema
    assert expected == sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert 406 == steady.get("/views/all_flights", headers={"Accept": "image/png"}).status_code


def test_pages_are_of_one_moment(client: httpx.Client, db: Database) -> None:
    db.insert("flights", [(f"XX {n}", 1, 2) for n in range(1000)])
    rows: list[Any] = []
    page = client.get("/views/all_flights", params={"_limit": 300}).json()
    db.delete("flights", [(f"XX {n}", 1, 2) for n in range(1000)])
    while True:
        rows += page["rows"]
        if page["next"] is None:
            break
        assert 300 == len(page["rows"])
        page = client.get("/views/all_flights", params={"_limit": 300, "_cursor": page["next"]}).json()
    assert sorted([*FLIGHTS, *((f"XX {n}", 1, 2) for n in range(1000))]) == sorted(map(tuple, rows))
    assert 3 == len(client.get("/views/all_flights").json()["rows"])


@pytest.mark.parametrize("form", [NDJSON, ARROW])
def test_the_next_page_of_other_forms_is_in_a_header(steady: httpx.Client, form: str) -> None:
    first = steady.get("/views/all_flights", params={"_limit": 2}, headers={"Accept": form})
    cursor = first.headers["x-next-cursor"]
    last = steady.get("/views/all_flights", params={"_limit": 2, "_cursor": cursor}, headers={"Accept": form})
    assert "x-next-cursor" not in last.headers


@pytest.mark.parametrize("cursor", ["", "x", "x.1", "..", "\u0661.\u0661"])
def test_a_cursor_that_is_none_is_refused(steady: httpx.Client, cursor: str) -> None:
    assert 410 == steady.get("/views/all_flights", params={"_cursor": cursor}).status_code


def test_a_cursor_is_of_its_view_only(steady: httpx.Client) -> None:
    cursor = steady.get("/views/all_flights", params={"_limit": 1}).json()["next"]
    assert 410 == steady.get("/views/per_city", params={"_cursor": cursor}).status_code
    assert 200 == steady.get("/views/all_flights", params={"_cursor": cursor}).status_code


@pytest.mark.parametrize(
    ("query", "status", "reason"),
    [
        ("origin=London", 422, "needs a value for dest; it takes origin: string, dest: string"),
        ("origin=London&dest=Oslo&via=Bonn", 422, "no parameter via"),
        ("origin=London&origin=Oslo&dest=Oslo", 422, "twice"),
        ("origin=%ff&dest=Oslo", 400, "UTF-8"),
        ("origin=London&dest=Oslo&_limit=0", 422, "_limit"),
        ("origin=London&dest=Oslo&_limit=x", 422, "_limit"),
    ],
)
def test_a_request_that_does_not_fit_its_view_is_refused(
    steady: httpx.Client, query: str, status: int, reason: str
) -> None:
    found = steady.get(f"/views/search?{query}")
    assert status == found.status_code
    assert reason in found.json()["error"]


def test_a_view_that_is_not_there_is_not_found(steady: httpx.Client) -> None:
    found = steady.get("/views/nobody")
    assert 404 == found.status_code
    assert "there is no view nobody; there are: search" in found.json()["error"]


def test_more_rows_than_are_allowed_are_refused() -> None:
    with Database() as db:
        flights(db)
        with serving(db, Settings(rows=2)) as address:
            found = httpx.get(f"{address}/views/all_flights", timeout=30)
            assert (413, True) == (found.status_code, "more than 2 rows" in found.json()["error"])
            assert 200 == httpx.get(f"{address}/views/search?origin=London&dest=Zurich", timeout=30).status_code


def test_values_of_every_type_go_in_and_out() -> None:
    schema = {
        "i": "int",
        "f": "float",
        "d": "decimal(30, 2)",
        "s": "string",
        "b": "bool",
        "day": "date",
        "at": "timestamp",
        "raw": "binary",
    }
    row = (
        2**62,
        float("inf"),
        Decimal("1234567890123456789012345678.90"),
        "ä\0",
        True,
        datetime.date(2024, 2, 29),
        datetime.datetime(2024, 2, 29, 1, 2, 3, 4),
        b"\x00\xff",
    )
    wire = [
        2**62,
        "Infinity",
        "1234567890123456789012345678.90",
        "ä\0",
        True,
        "2024-02-29",
        "2024-02-29T01:02:03.000004",
        "AP8=",
    ]
    with Database() as db:
        db.create_table("R", schema)
        for name in schema:
            db.create_view(f"by_{name}", f"SELECT i, f, d, s, b, day, at, raw FROM R WHERE {name} = :{name}")
        with serving(db) as address, httpx.Client(base_url=address, timeout=30) as client:
            changed = client.post("/tables/R/changes", json={"insert": [wire]})
            assert 200 == changed.status_code, changed.text
            for name, value in zip(schema, wire, strict=True):
                text = str(value).lower() if isinstance(value, bool) else value
                found = client.get(f"/views/by_{name}", params={name: str(text)})
                assert [wire] == found.json()["rows"], name
                refused = client.get(f"/views/by_{name}", params={name: "?"})
                assert (200 if name == "s" else 422) == refused.status_code, name
        assert [row] == list(db.view("by_i")(i=2**62))


def test_pages_in_an_order_go_on_behind_a_row_while_rows_come_and_go(client: httpx.Client, db: Database) -> None:
    db.insert("flights", [(f"XX {n:04}", n % 7, 2) for n in range(100)])
    expected = sorted((row for row in db.view("all_flights")), key=lambda row: (-row[1], row[0]))
    rows: list[Any] = []
    asked = {"_order_by": "-src,no", "_limit": "30"}
    page = client.get("/views/all_flights", params=asked).json()
    while True:
        rows += page["rows"]
        if page["next"] is None:
            break
        first, last = rows[0], rows[-1]
        db.insert("flights", [("AA 0", 6, 2)])
        assert last == json.loads(page["next"])
        db.delete("flights", [("AA 0", 6, 2)] + ([] if len(rows) > 30 else [tuple(last), tuple(first)]))
        page = client.get("/views/all_flights", params={**asked, "_after": page["next"]}).json()
    assert expected == [tuple(row) for row in rows]


@pytest.mark.parametrize(
    "query",
    ["_after=[1]", "_order_by=none", "_order_by=no&_cursor=x.1", "_order_by=no&_after=[1]", "_order_by=no&_after=x"],
)
def test_a_page_in_no_order_is_refused(steady: httpx.Client, query: str) -> None:
    found = steady.get(f"/views/all_flights?{query}")
    assert 400 <= found.status_code < 500
    assert found.json()["error"]


def test_ordered_pages_come_in_all_forms(steady: httpx.Client) -> None:
    found = steady.get("/views/all_flights", params={"_order_by": "-no", "_limit": 2}, headers={"Accept": ARROW})
    table = pa.ipc.open_stream(found.content).read_all()
    assert sorted((row[0] for row in FLIGHTS), reverse=True)[:2] == table.column("no").to_pylist()
    assert 3 == len(json.loads(found.headers["x-next-cursor"]))
