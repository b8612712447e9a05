"""Why rows are in views with ORDER BY, LIMIT and OFFSET, or why not, against sorting in Python."""

from __future__ import annotations

import random

import pytest

from ivme.database import Database
from ivme.errors import DataError, PlanError
from tests.databases import BACKENDS, make_database


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("limit", "offset"), [(3, 0), (4, 2), (None, 5), (None, 0)])
def test_the_position_is_that_of_sorting_and_the_row_is_there_between_the_ends(
    backend: str, limit: int | None, offset: int
) -> None:
    rng, db = random.Random(3), make_database(backend)
    db.create_table("r", {"id": "int", "x": "int"})
    rows = [(n, rng.randrange(4)) for n in range(12)]
    db.insert("r", rows)
    cut = "" if limit is None else f" LIMIT {limit}"
    view = db.create_view("v", f"SELECT id FROM r ORDER BY x DESC, id{cut}{f' OFFSET {offset}' if offset else ''}")
    order = sorted(rows, key=lambda row: (-row[1], row[0]))
    for position, (number, x) in enumerate(order, 1):
        there = offset < position <= (len(order) if limit is None else offset + limit)
        ask, other = (view.why, view.why_not) if there else (view.why_not, view.why)
        (found,) = ask((number,)).findings
        assert found.relation.startswith(f"position {position} of ORDER BY x DESC, id")
        assert ((number,),) == found.tuples
        (below,) = found.below
        assert (("r", ((number, x),)) if there else ("v", ())) == (below.relation, below.tuples)
        with pytest.raises(DataError, match="says why"):
            other((number,))
    (lacking,) = view.why_not((99,)).findings
    assert ("r", (), (("id", 99),)) == (lacking.relation, lacking.tuples, lacking.at)


@pytest.fixture
def db() -> Database:
    made = Database()
    made.create_table("r", {"g": "string", "x": "int"})
    made.insert("r", [("a", 1), ("a", 2), ("b", 2), ("c", 9)])
    return made


def test_a_group_in_order_has_its_partners_or_another_row(db: Database) -> None:
    view = db.create_view("v", "SELECT g, SUM(x) AS s FROM r GROUP BY g ORDER BY s DESC, g LIMIT 2")
    said = str(view.why(("a", 3))).splitlines()
    assert ["('a', 3) is in v:", "  position 2 of ORDER BY s DESC, g LIMIT 2 has ('a', 3)"] == said[:2]
    assert "v has nothing at position = 3" in str(view.why_not(("b", 2)))
    assert "v has ('a', 3) at g = 'a'" in str(view.why_not(("a", 4)))


def test_a_request_in_order_is_refused_by_name(db: Database) -> None:
    view = db.create_view("v", "SELECT g, x FROM r WHERE x > :x ORDER BY x LIMIT 2")
    with pytest.raises(PlanError, match="not a join of tables"):
        view.why(("a", 1), x=0)
