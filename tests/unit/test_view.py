"""A view as its user sees it."""

from __future__ import annotations

from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import DataError, PlanError, UnknownNameError


@pytest.fixture
def db() -> Database:
    made = Database()
    made.create_table("R", {"a": "int", "b": "string"})
    made.insert("R", [(1, "x"), (1, "y"), (2, "x"), (2, "x")])
    return made


def test_a_view_shows_its_name_columns_and_query(db: Database) -> None:
    view = db.create_view("v", "SELECT a AS number, b FROM R")
    assert (view.name, view.columns) == ("v", ("number", "b"))
    assert "<View v: number, b>" == repr(view)
    assert "<View at(b): a>" == str(db.create_view("at", "SELECT a FROM R WHERE b = :b"))
    assert view.explain().strategy == "view-tree"


def test_a_view_prints_its_first_rows(db: Database) -> None:
    view = db.create_view("v", "SELECT a AS number, b, a > 1 AS large FROM R WHERE a = 2")
    assert ["number  b  large", "------  -  -----", "     2  x  True", "     2  x  True", "2 rows"] == [
        line.rstrip() for line in str(view).splitlines()
    ]
    db.insert("R", [(2, f"{number:02}") for number in range(30)])
    assert str(view).endswith("more than 20 rows")
    db.truncate("R")
    assert "0 rows" in str(view)
    db.drop_view("v")
    assert "<View v: number, b, large>" == str(view)


def test_stats_say_how_large_each_map_is(db: Database) -> None:
    stats = db.create_view("v", "SELECT a, COUNT(*) AS n FROM R GROUP BY a").stats()
    assert set(stats["maps"].values()) == {2}
    assert stats["memory_bytes"] > 0
    assert stats["operations"] > 0


def test_rows_are_read_whole_by_request_and_by_row(db: Database) -> None:
    view = db.create_view("v", "SELECT a, b FROM R")
    at = db.create_view("at", "SELECT a FROM R WHERE b = :b")
    assert sorted(view) == [(1, "x"), (1, "y"), (2, "x"), (2, "x")]
    assert sorted(at(b="x")) == [(1,), (2,), (2,)]
    assert dict(at.items(b="x")) == {(1,): 1, (2,): 2}
    assert (at.count(b="x"), at.scalar(b="y")) == (3, 1)
    assert at.to_pandas(b="y").to_dict("records") == [{"a": 1}]
    assert ((2, "x") in view, (2, "nowhere") in view, "x" in view) == (True, False, False)
    assert (view.multiplicity((2, "x")), at.multiplicity((2,), b="x")) == (2, 2)


def test_a_view_with_parameters_says_which(db: Database) -> None:
    view = db.create_view("v", "SELECT a FROM R WHERE b = :name")
    calls: list[Any] = [
        lambda: view(),
        lambda: view.items(other=1),
        lambda: view.to_arrow(),
        lambda: view.count(name="x", other="y"),
        lambda: view.multiplicity((1,)),
    ]
    for call in calls:
        with pytest.raises(UnknownNameError, match="it takes name: string"):
            call()
    with pytest.raises(DataError, match="parameter name of view v"):
        view(name=3)


def test_a_feed_holds_what_came_since_it_was_last_read(db: Database) -> None:
    view = db.create_view("v", "SELECT a FROM R")
    with view.changes() as feed:
        db.insert("R", [(3, "z")])
        db.insert("R", [(4, "z"), (4, None)])
        assert list(feed) == [{(3,): 1}, {(4,): 2}]
        assert list(feed) == []
        other = view.changes()
        db.delete("R", [(3, "z")])
        assert list(feed) == list(other) == [{(3,): -1}]
    db.insert("R", [(5, "z")])
    assert list(feed) == []
    assert list(other) == [{(5,): 1}]
    other.close()
    other.close()
    assert db._runtime.catalog.views["v"].followers == 0


def test_aggregates_with_parameters_cannot_be_followed(db: Database) -> None:
    view = db.create_view("v", "SELECT COUNT(*) AS n FROM R WHERE b = :b")
    with pytest.raises(PlanError, match="groups by b instead"):
        view.changes()
    assert db._runtime.catalog.views["v"].followers == 0


def test_a_batch_that_does_not_change_the_rows_is_no_change(db: Database) -> None:
    counts = db.create_view("v", "SELECT a, COUNT(*) AS n FROM R GROUP BY a")
    distinct = db.create_view("w", "SELECT DISTINCT a FROM R")
    feeds = [counts.changes(), distinct.changes()]
    with db.batch() as batch:
        batch.delete("R", [(1, "x")])
        batch.insert("R", [(1, "another")])
    assert [list(feed) for feed in feeds] == [[], []]


def test_nothing_is_asked_of_a_view_that_was_dropped(db: Database) -> None:
    view = db.create_view("v", "SELECT a FROM R")
    rows = view.items()
    db.drop_view("v")
    calls: list[Any] = [view.count, view.to_arrow, view.changes, view.stats, view.verify, lambda: (1,) in view]
    for call in calls:
        with pytest.raises(PlanError, match="view v was dropped"):
            call()
    with pytest.raises(PlanError, match="view v was dropped"):
        next(rows)


def test_changes_are_not_asked_for_by_parameters(db: Database) -> None:
    view = db.create_view("at", "SELECT a FROM R WHERE b = :b")
    with pytest.raises(PlanError, match=r"changes\(\) of view at takes no parameters, but gives all changes"):
        view.changes(b="x")  # type: ignore[arg-type]
