"""A value that a parameter's column cannot hold is in no row, whatever the view does with the rows that it finds.

Views with LIMIT, a range or a rank raised a `DataError` for it, where all others found nothing.
Shards raised one for every view.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import DataError
from tests.sharded_databases import local_database

VIEWS = {
    "plain": "SELECT id, price FROM orders WHERE id = :id",
    "first": "SELECT id, price FROM orders WHERE id = :id ORDER BY price LIMIT 2",
    "between": "SELECT id, price FROM orders WHERE id = :id AND price > :least",
    "ranked": "SELECT id, RANK() OVER (ORDER BY price) AS place FROM orders QUALIFY id = :id",
}
TOTAL = "SELECT COUNT(*) AS n, SUM(price) AS total FROM orders WHERE id = :id AND price > :least"
UNHELD = (2.5, 2**70, 1e300, float("nan"))


@pytest.fixture(params=["embedded", "shards"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    database: Any = Database() if request.param == "embedded" else local_database(tmp_path, 2)
    database.create_table("orders", {"id": "int", "price": "int"})
    database.insert("orders", [(1, 10), (2, 20), (2, 30)])
    return database


@pytest.mark.parametrize("name", VIEWS)
def test_a_request_for_it_finds_nothing(name: str, db: Any) -> None:
    view = db.create_view(name, VIEWS[name])
    others = {"least": 0} if "least" in view.parameters else {}
    assert {1: 1, 2: 2, 7: 0} == {value: len(list(view(id=value, **others))) for value in (1, 2, 7)}
    assert [[]] * len(UNHELD) == [list(view(id=value, **others)) for value in UNHELD]


@pytest.mark.parametrize("name", VIEWS)
def test_a_value_of_another_kind_is_an_error(name: str, db: Any) -> None:
    view = db.create_view(name, VIEWS[name])
    with pytest.raises(DataError, match=f"parameter id of view {name}: not a value of type int: 'two' is a str"):
        list(view(**dict.fromkeys(view.parameters, 0) | {"id": "two"}))


def test_an_aggregate_has_its_row_of_nothing(db: Any) -> None:
    view = db.create_view("total", TOTAL)
    assert [(2, 50)] == list(view(id=2, least=0))
    assert [[(0, None)]] * len(UNHELD) == [list(view(id=value, least=0)) for value in UNHELD]


def test_the_end_of_a_range_that_the_column_cannot_hold_is_an_error(db: Any) -> None:
    """It is between values, and what lies on which side of it is not known by its code."""
    view = db.create_view("total", TOTAL)
    with pytest.raises(DataError, match=r"parameter least of view total: .*2\.5 is not a whole number"):
        list(view(id=2, least=2.5))
