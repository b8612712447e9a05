"""A server that runs in a thread, and clients of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import httpx

from ivme.database import Database
from ivme.serve import server
from ivme.serve.settings import Settings

FLIGHTS = [("LX 317", 1, 2), ("BA 712", 1, 2), ("SK 806", 1, 3)]


def flights(db: Database) -> Database:
    """Flights and airports, with a view of each kind."""
    db.create_table("flights", {"no": "string", "src": "int", "dst": "int"})
    db.create_table("airports", {"id": "int", "city": "string"}, primary_key="id")
    db.create_view(
        "search",
        "SELECT f.no FROM flights f JOIN airports a ON f.src = a.id JOIN airports b ON f.dst = b.id "
        "WHERE a.city = :origin AND b.city = :dest",
    )
    db.create_view(
        "per_city", "SELECT a.city, COUNT(*) AS n FROM flights f JOIN airports a ON f.src = a.id GROUP BY a.city"
    )
    db.create_view("all_flights", "SELECT no, src, dst FROM flights")
    db.create_view("departures", "SELECT COUNT(*) AS n FROM flights f WHERE f.src = :src")
    db.insert("airports", [(1, "London"), (2, "Zurich"), (3, "Oslo")])
    db.insert("flights", FLIGHTS)
    return db


def serving(db: Database, settings: Settings | None = None) -> AbstractContextManager[str]:
    """The address of a server that runs until the block ends."""
    return server.serving(db, replace(settings or Settings(), port=0))


class Events:
    """The events of a stream, one by one."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.iter_lines()

    def __next__(self) -> tuple[str, str, Any]:
        """The next event's name, id and data."""
        fields: dict[str, str] = {}
        for line in self._lines:
            name, _, value = line.partition(": ")
            if name == "" or line.startswith(":"):
                continue
            fields[name] = value
            if name == "data":
                return fields["event"], fields.get("id", ""), json.loads(value)
        raise StopIteration

    def __iter__(self) -> Iterator[tuple[str, str, Any]]:
        return self


@contextmanager
def following(client: httpx.Client, view: str, **options: Any) -> Iterator[Events]:
    with client.stream("GET", f"/views/{view}/changes", **options) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"] == "text/event-stream"
        yield Events(response)
