"""Arrays and structs over HTTP: lists and objects, both ways."""

from __future__ import annotations

import json

import httpx

from ivme.database import Database
from ivme.serve.asking import NDJSON
from tests.serve.running import serving

SCHEMA = {"id": "int", "tags": "array<string>", "place": "struct<x decimal(9, 2), d date>"}


def test_arrays_are_lists_and_structs_are_objects() -> None:
    with Database() as db:
        db.create_table("r", SCHEMA)
        db.create_view("v", "SELECT id, tags, place FROM r ORDER BY id")
        db.create_view("asked", "SELECT id FROM r WHERE tags = :tags")
        with serving(db) as address, httpx.Client(base_url=address, timeout=30) as client:
            rows = [[1, ["a", None], {"x": "1.50", "d": "2024-02-29"}], [2, [], None], [3, None, ["2.00", None]]]
            sent = client.post("/tables/r/changes", json={"insert": rows})
            assert 200 == sent.status_code, sent.text
            found = client.get("/views/v").json()["rows"]
            assert [*rows[:2], [3, None, {"x": "2.00", "d": None}]] == found
            lines = client.get("/views/v", headers={"Accept": NDJSON}).text.splitlines()
            assert {"x": "1.50", "d": "2024-02-29"} == json.loads(lines[0])["place"]
            assert [[1]] == client.get("/views/asked", params={"tags": '["a", null]'}).json()["rows"]
            assert 422 == client.get("/views/asked", params={"tags": "a"}).status_code
            assert 422 == client.post("/tables/r/changes", json={"insert": [[4, "a", None]]}).status_code
            schema = client.get("/openapi.json").text
            assert "array<string>" in schema
