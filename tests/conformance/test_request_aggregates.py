"""Aggregates over all values of a group, evaluated at requests: they are those of a view tree over the same tables.

Values are of every type, some NULL. Half of the requests find nothing, and some groups have NULL only.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from ivme.database import Database
from ivme.view import View
from tests.aggregate_calls import SCHEMA, some_rows
from tests.databases import BACKENDS, make_database

HEADS = {
    "extremes": "MIN(t.s), MAX(t.s), MIN(t.f), MAX(t.d), MIN(t.day), COUNT(DISTINCT t.s), COUNT(*), SUM(t.d)",
    "values": "MEDIAN(t.f), ARRAY_AGG(t.i ORDER BY t.i), BIT_XOR(t.i), SUM(DISTINCT t.d), LISTAGG(t.s, ',')",
    "percentiles": (
        "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY t.i), PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY t.i DESC), "
        "MODE(t.s), MAX(t.i), AVG(t.f)"
    ),
}

BODIES = {
    "in groups": "SELECT t.b, {} FROM r JOIN t ON r.g = t.g WHERE r.x = :x GROUP BY t.b",
    "in one row": "SELECT {} FROM r JOIN t ON r.g = t.g WHERE r.x = :x",
}


def filled(backend: str, text: str) -> tuple[Database, View, View]:
    db = make_database(backend)
    db.create_table("r", {"x": "int", "g": "int"})
    db.create_table("t", SCHEMA)
    return db, db.create_view("q", text, strategy="request"), db.create_view("p", text, strategy="view-tree")


def answers(view: View) -> list[Any]:
    """One by one, and all at once, which is the same."""
    single = [sorted(view.items(x=x), key=repr) for x in range(6)]
    together = view.request_many(x=[*range(6), 2, 2]).to_pylist()
    return [single, sorted(map(repr, together))]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("head", HEADS)
def test_requests_and_view_trees_agree(head: str, body: str, backend: str) -> None:
    db, asked, kept = filled(backend, BODIES[body].format(HEADS[head]))
    draw = random.Random(7)
    rows = some_rows(draw, 60)
    db.insert("r", [(draw.randrange(3), g) for g in range(4) for _ in range(2)])
    for start in range(0, 60, 20):
        db.insert("t", rows[start : start + 20])
        assert answers(kept) == answers(asked)
    asked.verify()
    db.delete("t", rows[:50])
    assert answers(kept) == answers(asked)
    db.delete("r", list(db.table("r")))
    assert answers(kept) == answers(asked)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_that_are_being_read_stay_as_they_were(backend: str) -> None:
    db = make_database(backend)
    db.create_table("r", {"x": "int", "g": "int"})
    db.create_table("t", {"g": "int", "s": "string"})
    text = "SELECT t.g, MIN(t.s) FROM r JOIN t ON r.g = t.g WHERE r.x = :x GROUP BY t.g"
    view = db.create_view("q", text, strategy="request")
    db.insert("r", [(1, g) for g in range(300)])
    db.insert("t", [(g, f"{g} {word}") for g in range(300) for word in ("b", "a")])
    rows = view(x=1)
    first = next(rows)
    db.delete("t", list(db.table("t")))
    db.insert("t", [(g, "other") for g in range(1000)])
    assert {(g, f"{g} a") for g in range(300)} == {first, *rows}
    assert {(g, "other") for g in range(300)} == set(view(x=1))
