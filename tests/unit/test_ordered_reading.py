"""Reading views by an order: pages, positions, slices, samples, len and bool."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import DataError, UnknownNameError

QUERIES = {
    "rows": "SELECT a, b, s FROM r",
    "an order": "SELECT a, b, s FROM r ORDER BY b DESC, a",
    "a limit": "SELECT a, b, s FROM r ORDER BY b DESC, a LIMIT 30 OFFSET 2",
    "first rows of groups": "SELECT a, b, s FROM r QUALIFY ROW_NUMBER() OVER (PARTITION BY b ORDER BY a) <= 3",
    "ranks": "SELECT a, b, s, ROW_NUMBER() OVER (PARTITION BY b ORDER BY a, s) AS n FROM r",
    "groups": "SELECT b, COUNT(*) AS a, MIN(s) AS s FROM r GROUP BY b",
}


@pytest.fixture(scope="module")
def db() -> Database:
    rng, made = random.Random(5), Database()
    made.create_table("r", {"a": "int", "b": "int", "s": "string"})
    rows = [(rng.randrange(9), rng.choice([1, 2, None]), rng.choice(["x", "y", None])) for _ in range(60)]
    for number, text in enumerate(QUERIES.values()):
        made.create_view(f"v{number}", text)
    made.insert("r", rows)
    return made


@pytest.fixture(params=range(len(QUERIES)), ids=list(QUERIES))
def view(db: Database, request: pytest.FixtureRequest) -> Any:
    return db.view(f"v{request.param}")


def _key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((value is not None, value if value is not None else 0) for value in row)


def test_positions_and_slices_are_those_of_the_list_of_rows(view: Any) -> None:
    rows = view[:]
    assert Counter(rows) == Counter(list(view))
    assert len(rows) == len(view) == view.count()
    assert bool(view)
    assert [rows[i] for i in (0, 2, -1)] == [view[i] for i in (0, 2, -1)]
    assert (rows[2:5], rows[-2:], rows[7:3], rows[1:500]) == (view[2:5], view[-2:], view[7:3], view[1:500])
    with pytest.raises(IndexError, match="no row"):
        view[len(rows)]
    with pytest.raises(DataError, match="no step"):
        view[::2]


def test_a_view_with_an_order_has_positions_in_it(db: Database) -> None:
    for name in ("v1", "v2"):
        assert list(db.view(name)) == db.view(name)[:] == db.view(name).rows()


def test_rows_come_in_the_order_that_is_asked_for(view: Any) -> None:
    column = view.columns.index("a")
    expected = sorted(sorted(view, key=_key), key=lambda row: row[column], reverse=True)
    assert expected == view.rows(order_by="-a")
    assert expected[:1] == view.rows(order_by=["-a"], limit=1)[:1]


@pytest.mark.parametrize("order_by", [None, ["b", "-a"], ["-b"], "s"])
def test_pages_after_the_last_row_have_each_row_as_often_as_the_view(view: Any, order_by: Any) -> None:
    whole, found, after = view.rows(order_by=order_by), [], None
    while page := view.rows(order_by=order_by, limit=7, after=after):
        found += page
        after = page[-1]
    assert Counter(whole) == Counter(found)
    assert view.rows(order_by=order_by) == found


def test_a_sample_is_of_the_rows_and_the_same_for_a_seed(view: Any) -> None:
    drawn = view.sample(4, seed=3)
    assert len(drawn) == min(4, len(view))
    assert not Counter(drawn) - Counter(list(view))
    assert drawn == view.sample(4, seed=3)
    assert Counter(view.sample(1000)) == Counter(list(view))


def test_samples_are_uniform() -> None:
    db = Database()
    db.create_table("r", {"a": "int"})
    view = db.create_view("v", "SELECT a FROM r ORDER BY a LIMIT 10")
    db.insert("r", [(n,) for n in range(12)])
    counted = Counter(row for seed in range(500) for row in view.sample(3, seed=seed))
    assert set(counted) == {(n,) for n in range(10)}
    assert all(100 < count < 200 for count in counted.values())


def test_an_empty_view_is_false_and_one_with_parameters_is_not() -> None:
    db = Database()
    db.create_table("r", {"a": "int"})
    plain, asked = db.create_view("v", "SELECT a FROM r"), db.create_view("w", "SELECT a FROM r WHERE a = :a")
    assert not plain
    assert len(plain) == 0
    assert asked
    db.insert("r", [(1,), (1,)])
    assert (2, [(1,), (1,)], [(1,), (1,)]) == (len(plain), plain.rows(limit=1), asked.rows(a=1))


def test_a_row_that_is_gone_has_no_place_in_the_order_of_the_view(db: Database) -> None:
    with pytest.raises(DataError, match="give order_by"):
        db.view("v1").rows(after=(77, 7, "z"))
    assert db.view("v0").rows(after=(77, 7, "z")) == []


def test_bad_orders_and_pages_are_refused(db: Database) -> None:
    view = db.view("v0")
    with pytest.raises(UnknownNameError, match="no column 'z'"):
        view.rows(order_by="-z")
    for bad in ({"limit": -1}, {"offset": "x"}, {"after": (1,)}, {"after": ("x", 1, "y")}):
        with pytest.raises(DataError):
            view.rows(**bad)
