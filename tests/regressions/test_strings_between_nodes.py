"""Ordered maps compare with rows that are gone, whose strings must not be taken back."""

from __future__ import annotations

import pytest

from ivme.database import Database
from ivme.engine.runtime.reclaim import reclaim

VIEWS = {
    "pairs by an inequality": "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.note = b.note AND a.id < b.id",
    "the first rows": "SELECT id, note FROM t ORDER BY note LIMIT 3",
    "ranks": "SELECT id, RANK() OVER (ORDER BY note) AS place FROM t",
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=list(VIEWS))
def test_an_ordered_map_is_right_after_strings_were_taken_back(view: str) -> None:
    db = Database()
    db.create_table("t", {"id": "int", "note": "string"}, primary_key="id")
    db.create_view("v", view)
    for turn in range(4):
        rows = [(turn * 1000 + number, f"{turn} {number * 7919 % 997} note") for number in range(600)]
        db.insert("t", rows)
        db.delete("t", rows[::2])
        db.delete("t", rows[1::4])
        with db._runtime.catalog.lock:
            reclaim(db._runtime.catalog, now=True)
        db.insert("t", [(-turn * 1000 - number - 1, f"{number} other {turn}") for number in range(500)])
        db.view("v").verify()
    db.delete("t", list(db.table("t"))[::2])
    db.view("v").verify()
    db.close()
