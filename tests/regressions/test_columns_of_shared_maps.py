"""Two views whose inner results are one, but whose variables are in another order.

One stored (dt, constant), the other passed (constant, dt) on. Each was assembled alone; the trigger of both took the
order of the first that came for the result below them, which neither stored, and wrote the columns the other way round.
"""

from __future__ import annotations

import itertools
import random

import pytest

from ivme.database import Database

VIEWS = {
    "total": "SELECT MAX(1) AS m FROM r JOIN s ON r.a = s.a AND r.b = s.b",
    "by_a": "SELECT r.a, MAX(1) AS m FROM r JOIN s ON r.a = s.a AND r.b = s.b GROUP BY r.a",
    "by_b": "SELECT r.b, MAX(r.c) AS m FROM r JOIN s ON r.a = s.a AND r.b = s.b GROUP BY r.b",
    "by_c": "SELECT r.c, r.b, MIN(r.a) AS m FROM r JOIN s ON r.a = s.a AND r.b = s.b GROUP BY r.c, r.b",
    "by_c_alone": "SELECT r.c, MIN(r.b) AS m FROM r JOIN s ON r.a = s.a AND r.b = s.b GROUP BY r.c",
}


@pytest.mark.parametrize("names", list(itertools.permutations(VIEWS, 2)), ids=" ".join)
def test_views_that_share_results_have_their_own_columns(names: tuple[str, ...]) -> None:
    choose = random.Random(str(names))
    db = Database()
    db.create_table("r", {"a": "int", "b": "int", "c": "int"})
    db.create_table("s", {"a": "int", "b": "int"})
    for name in names:
        db.create_view(name, VIEWS[name])
        db.insert("r", [(choose.randrange(10, 13), choose.randrange(20, 23), choose.randrange(30, 33))] * 2)
        db.insert("s", [(choose.randrange(10, 13), choose.randrange(20, 23)) for _ in range(9)])
        for view in db.views:
            db.view(view).verify()


def test_grouping_sets_over_an_outer_join() -> None:
    db = Database()
    db.create_table("r", {"a": "int", "b": "string"})
    db.insert("r", [(77, "x")])
    view = db.create_view(
        "v", "SELECT t.a, MAX(1) AS m FROM (SELECT a FROM r x NATURAL RIGHT JOIN r y) AS t GROUP BY ROLLUP(t.a)"
    )
    assert {(77, 1), (None, 1)} == set(view)
