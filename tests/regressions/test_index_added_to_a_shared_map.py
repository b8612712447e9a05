"""Two views share a map, and the second adds an index to it: a batch that joins a table with itself reads it, too."""

from __future__ import annotations

import pytest

from tests.databases import BACKENDS, make_database


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_index_that_a_second_view_added_is_there_in_a_batch(backend: str) -> None:
    db = make_database(backend)
    db.create_table("r", {"a": "int", "b": "int", "c": "int"})
    db.create_view("pairs", "SELECT COUNT(*) AS n FROM r t0 JOIN r t1 USING (a, b)")
    triangles = "FROM r t0, r t1, r t2 WHERE t0.a = t1.b AND t1.a = t2.b AND t2.a = t0.b"
    db.create_view("marks", f"SELECT COUNT(DISTINCT t1.c + 1) AS n {triangles}")
    db.insert("r", [(1, 2, 0)])

    db.apply("r", [(2, 3, 5), (3, 1, 6)], [1, 1])

    assert [(3,)] == list(db.view("pairs"))
    assert [(3,)] == list(db.view("marks"))
