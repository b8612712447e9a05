"""A view over static tables alone, with keys or computed columns: no update has a cost, and log2 of none was taken."""

from __future__ import annotations

import pytest

from ivme.database import Database

QUERIES = [
    "SELECT t1.b FROM r t0 JOIN r t1 ON t0.b = t1.b JOIN r t2 ON t0.a = t2.k WHERE t1.k = t2.k AND t2.k <> 0",
    "SELECT t0.k, COUNT(*) AS n FROM r t0, r t1, r t2 WHERE t0.a = t1.a AND t1.b = t2.b AND t2.k = t0.k GROUP BY t0.k",
]


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("favour", ["balanced", "updates", "reads"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_view_over_static_tables_is_planned(query: str, favour: str, key: str | None) -> None:
    db = Database()
    db.create_table("r", {"k": "int", "a": "float", "b": "bool"}, static=True, primary_key=key)
    db.insert("r", [(1, 1.0, True), (2, 1.0, True), (3, 2.0, False)])
    db.create_view("v", query, favour=favour)
    db.view("v").verify()
    assert len(db.view("v").rows()) == len(db.sql(query)) > 0
