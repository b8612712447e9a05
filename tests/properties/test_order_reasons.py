"""Why rows are in views with ORDER BY, LIMIT and OFFSET, or why not, against sorting in Python."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import DataError
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
        below, *skipped = found.below
        assert [f"OFFSET {offset}"] * (there and offset > 0) == [each.relation for each in skipped]
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


@pytest.mark.parametrize(
    ("text", "is_asked"),
    [
        ("SELECT id, x FROM r WHERE g = :g ORDER BY x DESC, id LIMIT 2", lambda row, given: row[2] == given["g"]),
        ("SELECT id, x FROM r WHERE g = :g ORDER BY x DESC, id", lambda row, given: row[2] == given["g"]),
        (
            "SELECT id, x FROM r WHERE id >= :low AND id < :high ORDER BY x DESC, id LIMIT 2",
            lambda row, given: given["low"] <= row[0] < given["high"],
        ),
        (
            "SELECT id, x FROM r WHERE g = :g AND id >= :low ORDER BY x DESC, id LIMIT 2 OFFSET 1",
            lambda row, given: row[2] == given["g"] and row[0] >= given["low"],
        ),
    ],
)
def test_rows_of_a_request_have_the_position_that_sorting_gives_them(text: str, is_asked: Any) -> None:
    """Those in between are there, those outside are beyond the limit; others are out of the range or have no row."""
    rng, db = random.Random(5), Database()
    db.create_table("r", {"id": "int", "x": "int", "g": "int"})
    rows = [(n, rng.randrange(3), rng.randrange(2)) for n in range(24)]
    db.insert("r", rows)
    view = db.create_view("v", text)
    offset, limit = (1 if "OFFSET" in text else 0), (2 if "LIMIT" in text else 99)
    given = {name: {"g": 1, "low": 5, "high": 15}[name] for name in view.state.typed.query.parameters}
    order = sorted((row for row in rows if is_asked(row, given)), key=lambda row: (-row[1], row[0]))
    assert len(order) > 3
    for row in rows:
        place = order.index(row) + 1 if row in order else None
        there = place is not None and offset < place <= offset + limit
        ask, other = (view.why, view.why_not) if there else (view.why_not, view.why)
        (found,) = ask(row[:2], **given).findings
        if place is None:
            assert not found.tuples
            assert found.relation in ("r", "the range")
        else:
            assert found.relation.startswith(f"position {place} of ORDER BY x DESC, id")
            assert not there or found.below[0].tuples == ((row,) if len(found.below[0].tuples[0]) == 3 else (row[:2],))
        with pytest.raises(DataError, match="says why"):
            other(row[:2], **given)


def test_a_row_out_of_the_range_of_a_request_is_told_as_such(db: Database) -> None:
    view = db.create_view("v", "SELECT g, x FROM r WHERE x > :x ORDER BY x LIMIT 2")
    assert "the range has nothing at x = 2" in str(view.why_not(("a", 1), x=2))
    assert "r has ('a', 2)" in str(view.why(("a", 2), x=1))
