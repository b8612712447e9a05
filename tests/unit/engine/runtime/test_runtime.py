"""The runtime: groups that come and go, checks that switch, short ways that are forgotten when they must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ivme.errors import DataError, PlanError, UnknownNameError
from tests.counting import COUNTING
from tests.databases import BACKENDS, make_database


@pytest.fixture(params=BACKENDS)
def db(request: Any) -> Any:
    made = make_database(request.param)
    made.create_table("R", {"a": "int", "b": "int"})
    return made


def test_views_with_equal_payloads_are_one_group_that_goes_with_the_last(db: Any) -> None:
    groups = db._runtime.catalog.shared
    db.create_view("v", "SELECT a FROM R")
    db.create_view("w", "SELECT b, COUNT(*) AS n FROM R GROUP BY b")
    db.create_view("s", "SELECT a, SUM(b) AS s FROM R GROUP BY a")
    assert sorted(groups) == [(), ("i64", "i128")]
    db.drop_view("s")
    db.drop_view("v")
    assert sorted(groups) == [()]
    db.drop_view("w")
    assert groups == {}
    db.create_view("v", "SELECT a FROM R")
    db.insert("R", [(1, 2)])
    assert list(db.view("v")) == [(1,)]


@pytest.mark.parametrize("strategy", COUNTING)
def test_following_and_no_longer_leaves_the_maps_as_they_were(db: Any, strategy: str) -> None:
    text = "SELECT x.a, COUNT(*) AS n FROM R x JOIN R y ON x.b = y.a GROUP BY x.a"
    view = db.create_view("v", text, strategy=strategy)
    db.insert("R", [(1, 2), (2, 2)])
    before = set(view.stats()["maps"])
    with view.changes():
        db.insert("R", [(3, 1)])
    assert set(view.stats()["maps"]) == before
    assert sorted(view) == [(1, 1), (2, 1), (3, 1)]
    view.verify()


def test_single_rows_reach_views_that_came_or_were_followed_after_the_first(db: Any) -> None:
    db.insert("R", [(1, 1)])
    view = db.create_view("v", "SELECT a FROM R")
    db.insert("R", [(2, 2)])
    feed = view.changes()
    db.insert("R", [(3, 3)])
    lazy = db.create_view("lazy", "SELECT x.a FROM R x JOIN R y ON x.a = y.a", strategy="recompute")
    assert sorted(lazy) == [(1,), (2,), (3,)]
    feed.close()
    db.delete("R", [(1, 1)])
    assert list(feed) == [{(3,): 1}]
    assert sorted(lazy) == sorted(view) == [(2,), (3,)]
    with pytest.raises(DataError, match="not there"):
        db.delete("R", [(1, 1)])


def test_single_rows_respect_what_a_table_promises() -> None:
    db = make_database("native")
    db.create_table("K", {"k": "int", "x": "int"}, primary_key="k")
    db.create_table("A", {"a": "int"}, append_only=True)
    db.insert("K", [(1, 1)])
    with pytest.raises(DataError, match="primary key"):
        db.insert("K", [(1, 2)])
    db.insert("A", [(1,)])
    with pytest.raises(DataError, match="append-only"):
        db.delete("A", [(1,)])
    assert [db._runtime.backend.size(f"table {name}") for name in "KA"] == [1, 1]


def test_a_few_rows_of_several_tables_take_the_short_way_all_or_nothing() -> None:
    db = make_database("native")
    for name in "RS":
        db.create_table(name, {"a": "int", "b": "int"}, primary_key="b")
    view = db.create_view("v", "SELECT COUNT(*) AS n FROM R JOIN S ON R.a = S.a")
    with db.batch() as batch:
        batch.insert("R", [(1, 1), (1, 2)])
        batch.insert("S", [(1, 1)])
        assert batch._few is not None
        assert len(batch._few) == 3
    assert view.scalar() == 2
    backend: Any = db._runtime.backend
    before = backend.kernel.digest()
    for bad in ([(1, 2)], "two rows of table S"), ([(2, 2), (2, 2)], "two rows of table S"), ([(7, "x")], "column b"):
        with pytest.raises(DataError, match=bad[1]):
            change_both(db, bad[0])
        assert backend.kernel.digest() == before
    with pytest.raises(PlanError, match="the batch is over"):
        batch.insert("R", [(5, 5)])


def test_a_batch_of_a_few_rows_outlives_no_table() -> None:
    db = make_database("native")
    db.create_table("R", {"a": "int"})
    batch = db.batch().begin()
    batch.insert("R", [(1,)])
    db.drop_table("R")
    with pytest.raises(UnknownNameError, match="there is no table R"):
        batch.__exit__(None, None, None)


def test_a_view_is_not_changed_as_if_it_were_a_table() -> None:
    db = make_database("native")
    db.create_table("R", {"a": "int"})
    view = db.create_view("v", "SELECT a FROM R")
    above = db.create_view("above", "SELECT a FROM v")
    db.insert("R", [(1,)])
    for name in ("v", "V", "above"):
        for act in (db.insert, db.delete):
            with pytest.raises(UnknownNameError, match="is a view"):
                act(name, [(1,)])
    assert list(view) == list(above) == [(1,)]


def test_single_rows_are_passed_on_to_views_of_views_and_those_who_follow(db: Any) -> None:
    sums = db.create_view("sums", "SELECT a, SUM(b) AS s FROM R GROUP BY a")
    large = db.create_view("large", "SELECT a, s FROM sums WHERE s > 2")
    most = db.create_view("most", "SELECT MAX(s) AS m FROM large")
    feeds = [view.changes() for view in (sums, large, most)]
    db.insert("R", [(1, 2)])
    with db.batch() as batch:
        batch.insert("R", [(1, 1)])
        batch.insert("R", [(2, 9)])
    db.delete("R", [(2, 9)])
    assert [list(feed) for feed in feeds] == [
        [{(1, 2): 1}, {(1, 2): -1, (1, 3): 1, (2, 9): 1}, {(2, 9): -1}],
        [{(1, 3): 1, (2, 9): 1}, {(2, 9): -1}],
        [{(None,): -1, (9,): 1}, {(9,): -1, (3,): 1}],
    ]
    with pytest.raises(DataError, match="does not fit"):
        db.insert("R", [(1, 2**63 - 2)])
    assert [list(view) for view in (sums, large, most)] == [[(1, 3)], [(1, 3)], [(3,)]]
    assert not any(list(feed) for feed in feeds)


def change_both(db: Any, last: list[Any]) -> None:
    with db.batch() as batch:
        batch.delete("R", [(1, 1)])
        batch.insert("S", [(1, 2)])
        batch.insert("S", last)


def test_a_few_rows_are_judged_by_their_net_weights() -> None:
    db = make_database("native")
    db.create_table("R", {"a": "int", "b": "int"}, primary_key="a")
    view = db.create_view("v", "SELECT b FROM R")
    with db.batch() as batch:
        batch.delete("R", [(1, 1)])
        batch.insert("R", [(1, 1), (2, 1)])
    assert list(view.items()) == [((1,), 1)]
    with db.batch() as batch:
        batch.insert("R", [(2, 5)])
        batch.delete("R", [(2, 1)])
    assert list(view) == [(5,)]


def test_a_few_rows_reach_views_that_came_while_the_batch_was_open() -> None:
    db = make_database("native")
    db.create_table("R", {"a": "int"})
    with db.batch() as batch:
        batch.insert("R", [(1,)])
        view = db.create_view("v", "SELECT a FROM R")
        feed = view.changes()
        batch.insert("R", [(2,)])
    assert sorted(view) == [(1,), (2,)]
    assert list(feed) == [{(1,): 1, (2,): 1}]


def test_a_failing_batch_leaves_the_kernel_as_it_was() -> None:
    db = make_database("native")
    db.create_table("R", {"a": "int", "b": "int"})
    db.create_view("v", "SELECT x.a, SUM(y.b) AS s FROM R x JOIN R y ON x.b = y.a GROUP BY x.a")
    db.insert("R", [(i, i + 1) for i in range(50)])
    kernel = db._runtime.backend.kernel  # type: ignore[attr-defined]
    before = kernel.digest()
    for rows, weights in ([(1, 2), (99, 99)], [1, -1]), ([(5, 6), (0, 1), (1, 2)], [1, 2**40, 2**40]):
        with pytest.raises(DataError):
            db.apply("R", rows, weights)
        assert kernel.digest() == before
    kernel.verify()


def test_the_clipped_part_of_a_change_is_what_can_be_taken_away(db: Any) -> None:
    db.apply("R", [(1, 1), (2, 2)], [2, 1])
    with db.batch() as batch:
        batch.delete("R", [(1, 1)] * 3 + [(3, 3)], strict=False)
        batch.insert("R", [(4, 4)])
    columns, counts = db._runtime.backend.scan("table R")
    rows = zip(*(column.tolist() for column in columns), counts.tolist(), strict=True)
    assert sorted(rows) == [(2, 2, 1), (4, 4, 1)]
    assert counts.dtype == np.int64
