"""The change of a view's rows in a batch."""

from __future__ import annotations

from typing import Any

import pytest

from ivme.engine.runtime.following import difference, keeps_rows, summed, update
from tests.databases import BACKENDS, make_database


def test_changes_of_one_row_are_summed_and_those_that_cancel_are_left_out() -> None:
    assert summed([((1,), 2), ((2,), 1), ((1,), -2), ((2,), 1)]) == {(2,): 2}


def test_the_difference_of_rows_is_by_group() -> None:
    old: dict[Any, Any] = {(1,): (("a", 5), 1), (2,): (("b", 6), 1), (3,): (("c", 7), 1)}
    now: dict[Any, Any] = {(1,): (("a", 8), 1), (2,): None, (3,): (("c", 7), 1), (4,): (("d", 9), 2)}
    assert difference(old, now) == {("a", 5): -1, ("a", 8): 1, ("b", 6): -1, ("d", 9): 2}
    update(old, now)
    assert old == {key: row for key, row in now.items() if row is not None}


@pytest.mark.parametrize("backend", BACKENDS)
def test_only_views_with_aggregates_keep_their_rows(backend: str) -> None:
    db = make_database(backend)
    db.create_table("R", {"a": "int", "b": "int"})
    db.insert("R", [(1, 1), (2, 2)])
    texts = {
        "plain": "SELECT a FROM R",
        "distinct_": "SELECT DISTINCT a FROM R",
        "grouped": "SELECT a, COUNT(*) AS n FROM R GROUP BY a",
    }
    views = [db.create_view(name, text) for name, text in texts.items()]
    feeds = [view.changes() for view in views]
    states = [db._runtime.views[name] for name in texts]
    assert [keeps_rows(state) for state in states] == [False, False, True]
    assert [len(state.rows) for state in states] == [0, 0, 2]
    feeds[2].close()
    assert states[2].rows == {}


@pytest.mark.parametrize("backend", BACKENDS)
def test_distinct_rows_change_only_where_the_first_comes_or_the_last_goes(backend: str) -> None:
    db = make_database(backend)
    db.create_table("R", {"a": "string", "b": "int"})
    view = db.create_view("v", "SELECT DISTINCT a FROM R")
    feed = view.changes()
    db.insert("R", [("x", 1), ("x", 2), (None, 1)])
    db.delete("R", [("x", 1)])
    with db.batch() as batch:
        batch.delete("R", [("x", 2), (None, 1)])
        batch.insert("R", [("y", 1)])
    assert list(feed) == [{("x",): 1, (None,): 1}, {("x",): -1, (None,): -1, ("y",): 1}]


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_of_a_view_with_parameters_have_their_values_in_front(backend: str) -> None:
    db = make_database(backend)
    db.create_table("R", {"a": "int", "b": "string"})
    view = db.create_view("v", "SELECT a, b FROM R WHERE b = :p AND a = :q")
    feed = view.changes()
    db.insert("R", [(1, "x"), (1, "x"), (2, None)])
    db.delete("R", [(1, "x")])
    order = [{"p": "x", "q": 1}[name] for name in view._state.typed.query.parameters]
    assert list(feed) == [{(*order, 1, "x"): 2}, {(*order, 1, "x"): -1}]


def test_a_view_without_columns_changes_by_its_multiplicity() -> None:
    db = make_database("native")
    db.create_table("R", {"a": "int"})
    view = db.create_view("v", "Q(.) = R(A)")
    feed = view.changes()
    db.insert("R", [(1,), (2,)])
    db.delete("R", [(1,)])
    assert list(feed) == [{(): 2}, {(): -1}]
    assert view.multiplicity(()) == 1
