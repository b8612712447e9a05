"""What a database promises about batches, requests and cursors, on both backends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest

from ivme.database import Database
from ivme.errors import DataError, PlanError, UnknownNameError, VerificationError
from tests.counting import COUNTING
from tests.databases import in_one_batch, make_database, rows_of, table_rows

TRIANGLE = "SELECT x.a, y.a AS b, z.a AS c FROM E x JOIN E y ON x.b = y.a JOIN E z ON y.b = z.a AND z.b = x.a"


# Batches


def test_strictness_is_judged_on_net_weights(db: Database) -> None:
    db.create_table("R", {"a": "int"})
    view = db.create_view("v", "SELECT a FROM R")
    with db.batch() as batch:
        batch.delete("R", [(1,)])
        batch.insert("R", [(1,), (1,)])
        batch.insert("R", [(2,)])
        batch.delete("R", [(2,)])
    assert dict(view.items()) == {(1,): 1}


def test_a_delete_of_what_is_not_there_names_the_row_and_changes_nothing(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "string"})
    db.create_table("S", {"a": "int"})
    view = db.create_view("v", "SELECT R.b FROM R JOIN S ON R.a = S.a")
    changes = view.changes()
    db.insert("R", [(1, "x")])
    db.insert("S", [(1,)])
    before = list(view)
    list(changes)
    with pytest.raises(DataError, match=r"\(1, 'nowhere'\) from table R"):
        in_one_batch(db, ("insert", "S", [(1,), (2,)]), ("delete", "R", [(1, "x"), (1, "nowhere")]))
    with pytest.raises(DataError, match=r"\(1, 'x'\) from table R"):
        db.apply("R", [(1, "x")], -2)
    assert list(view) == before
    assert list(changes) == []
    assert table_rows(db, "S") == {(1,): 1}
    view.verify()


def test_deletes_that_are_not_strict_ignore_what_is_not_there(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "string"})
    view = db.create_view("v", "SELECT a, b FROM R")
    db.insert("R", [(1, "x"), (2, "y")])
    db.delete("R", [(1, "x"), (1, "x"), (3, "z")], strict=False)
    assert list(view) == [(2, "y")]
    db.delete("R", [(9, "z")], strict=False)
    assert list(view) == [(2, "y")]


def test_one_batch_inserts_and_deletes_all_edges_of_a_triangle_in_a_self_join(db: Database) -> None:
    db.create_table("E", {"a": "int", "b": "int"})
    views = [db.create_view(f"v{i}", TRIANGLE, strategy=strategy) for i, strategy in enumerate(COUNTING)]
    edges = [(1, 2), (2, 3), (3, 1)]
    db.insert("E", edges)
    for view in views:
        assert rows_of(view) == [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
    with db.batch() as batch:
        batch.delete("E", edges)
        batch.insert("E", [(7, 7)])
    for view in views:
        assert list(view) == [(7, 7, 7)]
    db.delete("E", [(7, 7)])
    for view in views:
        assert list(view) == []


def test_insert_then_delete_is_the_identity(db: Database) -> None:
    db.create_table("E", {"a": "int", "b": "int"})
    texts = [TRIANGLE, "SELECT a, MIN(b) AS l, SUM(b) AS s FROM E GROUP BY a", "SELECT DISTINCT b FROM E"]
    views = [db.create_view(f"v{i}", text) for i, text in enumerate(texts)]
    edges = [(i, (i * 7) % 5) for i in range(20)]
    db.insert("E", edges)
    assert all(view.count() for view in views)
    db.delete("E", edges)
    for view in views:
        assert list(view) == []
        assert set(view.stats()["maps"].values()) == {0}


def test_a_batch_equals_its_single_steps(db: Database) -> None:
    other = make_database("native")
    for each in (db, other):
        each.create_table("E", {"a": "int", "b": "int"})
        each.create_view("t", TRIANGLE)
        each.create_view("g", "SELECT a, COUNT(*) AS n, MAX(b) AS h FROM E GROUP BY a")
        each.insert("E", [(1, 2), (2, 2)])
    steps = [((2, 3), 1), ((3, 1), 2), ((1, 2), -1), ((1, 2), 1), ((2, 2), -1), ((1, 1), 1)]
    with db.batch() as batch:
        for row, weight in steps:
            batch.apply("E", [row], weight)
    for row, weight in steps:
        other.apply("E", [row], [weight])
    for name in ("t", "g"):
        assert rows_of(db.view(name)) == rows_of(other.view(name))


def test_a_batch_that_is_left_with_an_error_changes_nothing_and_is_over(db: Database) -> None:
    db.create_table("R", {"a": "int"})
    batch = db.batch()
    with suppress(ZeroDivisionError), batch:
        batch.insert("R", [(1,)])
        raise ZeroDivisionError
    assert table_rows(db, "R") == {}
    with pytest.raises(PlanError, match="over"):
        batch.insert("R", [(1,)])


def test_a_batch_that_nobody_entered_refuses_changes(db: Database) -> None:
    """They would never be applied, and be lost without a word."""
    db.create_table("R", {"a": "int"})
    batch = db.batch()
    changes: list[Callable[[], None]] = [
        lambda: batch.insert("R", [(1,)]),
        lambda: batch.upsert("R", [(1,)]),
        lambda: batch.truncate("R"),
    ]
    for change in changes:
        with pytest.raises(PlanError, match=r"write `with db.batch\(\) as batch:`"):
            change()
    with batch:
        batch.insert("R", [(1,)])
    assert table_rows(db, "R") == {(1,): 1}


def test_a_row_of_multiplicity_m_comes_m_times(db: Database) -> None:
    db.create_table("R", {"a": "int"})
    db.create_table("S", {"a": "int"})
    view = db.create_view("v", "SELECT R.a FROM R JOIN S ON R.a = S.a")
    db.apply("R", [(1,), (2,)], [3, 1])
    db.apply("S", [(1,)], 2)
    assert list(view) == [(1,)] * 6
    assert list(view.items()) == [((1,), 6)]
    assert (view.count(), view.multiplicity((1,)), view.to_arrow().num_rows) == (6, 6, 6)


# Access requests


def test_access_requests_check_names_and_types(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "string"})
    view = db.create_view("v", "SELECT a FROM R WHERE b = :b")
    db.insert("R", [(1, "x")])
    assert list(view(b="x")) == [(1,)]
    assert list(view(b="never seen")) == []
    with pytest.raises(UnknownNameError, match=r"no parameter c; it takes b: string"):
        view(b="x", c=1)
    with pytest.raises(UnknownNameError, match="needs a value for b"):
        view()
    with pytest.raises(DataError, match="parameter b of view v"):
        view(b=1)


def test_a_parameter_may_occur_in_two_components_of_the_fracture(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    db.create_table("S", {"a": "int", "c": "int"})
    view = db.create_view("v", "Q(B, C | A) = R(A, B), S(A, C)")
    changes = view.changes()
    db.insert("R", [(1, 10), (1, 11), (2, 20)])
    db.insert("S", [(1, 5), (2, 6)])
    assert rows_of(view, A=1) == [(10, 5), (11, 5)]
    assert rows_of(view, A=2) == [(20, 6)]
    assert rows_of(view, A=3) == []
    assert view.multiplicity((10, 5), A=1) == 1
    assert view.multiplicity((10, 5), A=2) == 0
    assert list(changes) == [{(1, 10, 5): 1, (1, 11, 5): 1, (2, 20, 6): 1}]
    view.verify()


def test_repeated_columns_hidden_outputs_and_distinct(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    twice = db.create_view("twice", "SELECT a, a AS again, b FROM R")
    hidden = db.create_view("hidden", "SELECT COUNT(*) AS n FROM R GROUP BY a")
    distinct = db.create_view("distinct_", "SELECT DISTINCT a FROM R")
    feeds = [view.changes() for view in (twice, hidden, distinct)]
    db.insert("R", [(1, 1), (1, 2), (2, 1)])
    assert rows_of(twice) == [(1, 1, 1), (1, 1, 2), (2, 2, 1)]
    assert ((1, 1, 2) in twice, (1, 2, 2) in twice) == (True, False)
    assert rows_of(hidden) == [(1,), (2,)]
    assert hidden.multiplicity((2,)) == 1
    assert rows_of(distinct) == [(1,), (2,)]
    db.delete("R", [(1, 1)])
    assert hidden.multiplicity((1,)) == 2
    assert [list(feed) for feed in feeds] == [
        [{(1, 1, 1): 1, (1, 1, 2): 1, (2, 2, 1): 1}, {(1, 1, 1): -1}],
        [{(2,): 1, (1,): 1}, {(2,): -1, (1,): 1}],
        [{(1,): 1, (2,): 1}],
    ]


# Verification


def test_a_view_without_columns_has_its_rows_in_arrow(db: Database) -> None:
    db.create_table("R", {"a": "int"})
    asked, whole = db.create_view("asked", "Q(. | A) = R(A)"), db.create_view("whole", "Q(.) = R(A)")
    db.insert("R", [(1,), (2,)])
    assert (1, 2, 0) == (asked.to_arrow(A=1).num_rows, whole.to_arrow().num_rows, asked.to_arrow(A=3).num_rows)


def test_verify_names_the_first_difference(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    view = db.create_view("v", "SELECT a, SUM(b) AS s FROM R GROUP BY a")
    over = db.create_view("w", "SELECT COUNT(*) AS n FROM v")
    db.insert("R", [(1, 2), (3, 4)])
    view.verify()
    over.verify()
    db._runtime.backend.run("table R", {"R": ([np.array([1]), np.array([5])], np.array([1]))})
    for each in (view, over):
        with pytest.raises(VerificationError, match=r"view v has the row \(1, 7\) 0 times"):
            each.verify()
    db.close()


# Cursors


def test_a_cursor_goes_on_with_the_state_that_it_began_on(db: Database) -> None:
    db.create_table("R", {"a": "int"})
    view = db.create_view("v", "SELECT a FROM R")
    db.insert("R", [(i,) for i in range(500)])
    cursor, snapshot = iter(view), view.snapshot()
    first = [next(cursor) for _ in range(10)]
    db.insert("R", [(1000,)])
    assert sorted([*first, *cursor]) == [(i,) for i in range(500)]
    assert snapshot.num_rows == 500


def test_a_cursor_on_a_view_that_did_not_change_goes_on(db: Database) -> None:
    db.create_table("R", {"a": "int"})
    db.create_table("S", {"a": "int"})
    view = db.create_view("v", "SELECT a FROM R")
    db.insert("R", [(i,) for i in range(500)])
    cursor = iter(view)
    next(cursor)
    db.insert("S", [(1,)])
    db.create_view("w", "SELECT a, COUNT(*) AS n FROM R GROUP BY a")
    assert len(list(cursor)) == 499


@pytest.mark.parametrize("strategy", ["view-tree", "recompute"])
def test_a_cursor_on_a_view_that_is_dropped_goes_on(db: Database, strategy: str) -> None:
    db.create_table("R", {"a": "int"})
    view = db.create_view("v", "SELECT x.a FROM R x JOIN R y ON x.a = y.a", strategy=strategy)
    db.insert("R", [(i,) for i in range(500)])
    cursor = iter(view)
    next(cursor)
    db.drop_view("v")
    assert len(list(cursor)) == 499
    db.drop_table("R")


def test_a_cursor_on_a_recomputed_view_goes_on_after_a_change(db: Database) -> None:
    db.create_table("R", {"a": "int"})
    view = db.create_view("v", "SELECT x.a FROM R x JOIN R y ON x.a = y.a", strategy="recompute")
    db.insert("R", [(i,) for i in range(500)])
    cursor = iter(view)
    next(cursor)
    db.insert("R", [(1000,)])
    assert len(list(cursor)) == 499
    assert view.count() == 501
