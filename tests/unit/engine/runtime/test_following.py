"""The change of a view's rows in a batch."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ivme.engine.backend import KeptRows
from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.runtime.delta import delta_table
from ivme.engine.runtime.following import FollowedGroups, keeps_rows
from ivme.errors import DataError
from tests.databases import BACKENDS, make_database


def kept_rows(backend: str, keys: int, values: int) -> KeptRows:
    return make_database(backend)._runtime.backend.kept_rows(keys, values)


def codes(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.int64)


def listed(columns: Any, weights: Any) -> list[tuple[int, ...]]:
    return sorted(zip(*(column.tolist() for column in columns), weights.tolist(), strict=True))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_group_changes_from_its_old_row_to_its_new_one(backend: str) -> None:
    kept = kept_rows(backend, 1, 1)
    kept.put([codes(1, 2, 3)], 3, codes(0, 1, 2), [codes(50, 60, 70)])

    now = [codes(1, 2, 3, 4)], 4, codes(0, 2, 3), [codes(80, 70, 90)]

    assert listed(*kept.compare(*now)) == [(1, 50, -1), (1, 80, 1), (2, 60, -1), (4, 90, 1)]
    for _ in range(2):  # what was committed may be done again
        kept.put(*now)
        assert len(kept) == 3
        assert listed(*kept.compare(*now)) == []
        assert sorted(zip(*(column.tolist() for column in kept.columns()), strict=True)) == [(1, 80), (3, 70), (4, 90)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_row_without_keys_is_the_only_one(backend: str) -> None:
    kept = kept_rows(backend, 0, 2)
    kept.put([], 1, codes(0), [codes(0), codes(-(2**63))])
    assert listed(*kept.compare([], 1, codes(0), [codes(1), codes(5)])) == [(0, -(2**63), -1), (1, 5, 1)]
    kept.put([], 1, codes(), [codes(), codes()])
    assert len(kept) == 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_many_groups_come_and_go(backend: str) -> None:
    kept = kept_rows(backend, 2, 1)
    rng = np.random.default_rng(7)
    mirror: dict[Any, Any] = {}
    for _ in range(40):
        picked = rng.permutation(400)[:150]
        keys, there = [picked % 20, picked // 20], np.flatnonzero(rng.integers(0, 3, 150))
        values = rng.integers(0, 3, len(there))
        now = dict.fromkeys(zip(keys[0].tolist(), keys[1].tolist(), strict=True))
        rows = list(now)
        now.update(zip((rows[i] for i in there.tolist()), values.tolist(), strict=True))
        expected = []
        for key, value in now.items():
            if mirror.get(key) != value:
                expected += [] if key not in mirror else [(*key, mirror[key], -1)]
                expected += [] if value is None else [(*key, value, 1)]
        given = keys, 150, there, [values]
        assert listed(*kept.compare(*given)) == sorted(expected)
        kept.put(*given)
        mirror = {key: value for key, value in {**mirror, **now}.items() if value is not None}
        assert len(kept) == len(mirror)


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
    states = [db._runtime.catalog.views[name] for name in texts]
    assert [keeps_rows(state) for state in states] == [False, False, True]
    assert [isinstance(state.followed, FollowedGroups) for state in states] == [False, False, True]
    assert isinstance(states[2].followed, FollowedGroups)
    assert len(states[2].followed) == 2
    feeds[2].close()
    assert states[2].followed is None


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
    order = [{"p": "x", "q": 1}[name] for name in view.state.typed.query.parameters]
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


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_change_is_there_as_a_mapping_and_as_columns(backend: str) -> None:
    db = make_database(backend)
    db.create_table("R", {"a": "string", "b": "decimal(10, 2)", "c": "float"})
    view = db.create_view("v", "SELECT a, SUM(b) AS s, AVG(b) AS m, AVG(c) AS f, MAX(c) AS x FROM R GROUP BY a")
    feed = view.changes()
    db.insert("R", [("x", Decimal("1.50"), 0.5), ("x", Decimal("2.25"), None), (None, None, None)])
    (change,) = feed
    rows = {("x", Decimal("3.75"), Decimal("1.875000"), 0.5, 0.5): 1, (None, None, None, None, None): 1}
    assert change == rows
    assert dict(change) == rows
    assert len(change) == 2
    assert list(zip(*change.to_arrow().to_pydict().values(), strict=True)) == list(change)
    assert change.to_arrow().schema == view.change_schema
    assert change.weights.tolist() == [1, 1]
    assert repr(change) == repr(dict(change))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_change_stays_what_it_was(backend: str) -> None:
    """It is decoded when it is looked at, which may be long after values of its rows have gone."""
    db = make_database(backend)
    db.create_table("R", {"a": "string", "n": "int"})
    view = db.create_view("v", "SELECT a, MAX(a) AS b, COUNT(*) AS n FROM R GROUP BY a")
    feed = view.changes()
    db.insert("R", [("old", 1)])
    db.delete("R", [("old", 1)])
    db.insert("R", [(f"new {i}", i) for i in range(100)])
    first, second, third = feed
    assert first == {("old", "old", 1): 1}
    assert second == {("old", "old", 1): -1}
    assert len(third) == 100
    assert isinstance(first._changed, RowBatch)
    assert {first._changed, db._runtime.catalog.views["v"].followed} <= set(db._runtime.catalog.holders)


@pytest.mark.parametrize("backend", BACKENDS)
def test_groups_that_look_the_same_are_one_row_of_a_change(backend: str) -> None:
    db = make_database(backend)
    db.create_table("R", {"a": "int", "b": "int"})
    feed = db.create_view("v", "SELECT COUNT(*) AS n FROM R GROUP BY a").changes()
    projected = db.create_view("p", "SELECT b FROM R").changes()
    on_view = db.create_view("w", "SELECT n, COUNT(*) AS k FROM v GROUP BY n").changes()
    db.insert("R", [(1, 1), (2, 1), (3, 1), (3, 2)])
    assert list(feed) == [{(1,): 2, (2,): 1}]
    assert list(projected) == [{(1,): 3, (2,): 1}]
    assert list(on_view) == [{(1, 2): 1, (2, 1): 1}]
    with db.batch() as batch:
        batch.delete("R", [(1, 1)])
        batch.insert("R", [(4, 1)])
    assert [list(each) for each in (feed, projected, on_view)] == [[], [], []]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("rows", [3, 300])
def test_a_view_on_two_views_takes_the_changes_of_both(backend: str, rows: int) -> None:
    db = make_database(backend)
    db.create_table("R", {"a": "int", "b": "int"})
    db.create_view("low", "SELECT a, MIN(b) AS b FROM R GROUP BY a")
    db.create_view("high", "SELECT a, MAX(b) AS b FROM R GROUP BY a")
    both = db.create_view("both", "SELECT low.b AS l, high.b AS h FROM low JOIN high ON low.a = high.a")
    top = db.create_view("top", "SELECT COUNT(*) AS n, SUM(h) AS h, SUM(l) AS l FROM both")
    feed = top.changes()
    db.insert("R", [(a, b) for a in range(rows) for b in (1, 2, 3)])
    db.delete("R", [(a, 1) for a in range(rows)])
    before, between, after = (0, None, None), (rows, 3 * rows, rows), (rows, 3 * rows, 2 * rows)
    assert list(feed) == [{before: -1, between: 1}, {between: -1, after: 1}]
    assert list(both) == [(2, 3)] * rows
    with pytest.raises(DataError):
        db.delete("R", [(0, 2), (0, 9)])
    assert list(feed) == []
    db.delete("R", [(a, b) for a in range(rows) for b in (2, 3)])
    assert list(feed) == [{after: -1, before: 1}]
    top.verify()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("copies", [1, 40])
def test_large_sums_and_averages_go_through_views_on_views(backend: str, copies: int) -> None:
    """Numbers of one word, of two and of no type; means that no float has exactly."""
    db = make_database(backend)
    db.create_table("R", {"g": "int", "i": "int", "d": "decimal(30, 2)"})
    db.create_view("v", "SELECT g, SUM(i) AS i, AVG(i) AS m, SUM(d) AS d, AVG(d) AS e FROM R GROUP BY g")
    view = db.create_view("w", "SELECT g, i, m, d, e FROM v")
    feed = view.changes()
    large, huge = 2**62, Decimal("9" * 27 + ".99")
    given = [(large, huge), (-3, huge.copy_negate()), (1, None)]
    db.insert("R", [(g, value, number) for g in range(copies) for value, number in given])
    db.insert("R", [(g, -large - 5, huge) for g in range(copies)])
    first, second = feed
    mean = (large - 2) / 3
    assert set(first) == {(g, large - 2, mean, Decimal("0.00"), Decimal("0.000000")) for g in range(copies)}
    assert {row[1:4] for row, n in second.items() if n > 0} == {(-7, -1.75, huge)}
    assert sorted(view) == sorted(row for row, n in second.items() if n > 0)
    assert view.to_arrow().to_pylist() == [dict(zip(view.columns, row, strict=True)) for row in view]
    with pytest.raises(DataError, match="does not fit"):
        db.insert("R", [(g, 2**63 - 1, None) for g in range(copies)] * 2)
    assert list(feed) == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sum_that_is_no_number_is_followed_and_refused_by_a_view_on_it(backend: str) -> None:
    db = make_database(backend)
    db.create_table("R", {"g": "int", "x": "float"})
    feed = db.create_view("v", "SELECT g, SUM(x) AS s FROM R GROUP BY g").changes()
    rows = [(g, math.inf) for g in range(30)]
    db.insert("R", rows)
    for some in (1, 30):
        db.insert("R", [(g, -math.inf) for g in range(some)])
        db.delete("R", [(g, -math.inf) for g in range(some)])
    changes = list(feed)
    assert changes[1] == {(0, math.inf): -1, (0, math.nan): 1}
    assert changes[2] == {(0, math.nan): -1, (0, math.inf): 1}
    assert set(changes[3]) == {*((g, math.inf) for g in range(30)), *((g, math.nan) for g in range(30))}
    db.create_view("w", "SELECT COUNT(s) AS n FROM v")
    with pytest.raises(DataError, match="view v, column s: NaN"):
        db.insert("R", [(0, -math.inf)])
    assert list(feed) == []


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("build_last", [False, True])
def test_a_sum_that_is_no_number_does_not_matter_where_nobody_reads_it(backend: str, build_last: bool) -> None:
    db = make_database(backend)
    db.create_table("R", {"g": "int", "x": "float"})
    db.create_view("v", "SELECT g, SUM(x) AS s, COUNT(*) AS n FROM R GROUP BY g")
    rows = [(1, math.inf), (1, -math.inf), (2, 1.0)]
    if build_last:
        db.insert("R", rows)
    counts = db.create_view("w", "SELECT SUM(n) AS n FROM v WHERE g < 5")
    if not build_last:
        db.insert("R", rows)
    assert list(counts) == [(3,)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sum_that_is_no_number_is_refused_by_a_view_on_the_first_rows_of_a_view(backend: str) -> None:
    """The ordered rows themselves may have it."""
    db = make_database(backend)
    db.create_table("R", {"g": "int", "x": "float"})
    first = db.create_view("v", "SELECT g, SUM(x) AS s FROM R GROUP BY g ORDER BY s DESC LIMIT 2")
    db.create_view("keys", "SELECT g FROM v WHERE g > 0")
    db.create_view("sums", "SELECT MAX(s) AS s FROM v")
    db.insert("R", [(1, math.inf)])
    with pytest.raises(DataError, match="view v, column s: NaN"):
        db.insert("R", [(1, -math.inf)])
    db.drop_view("sums")
    db.insert("R", [(1, -math.inf)])
    assert list(db.view("keys")) == [(1,)]
    assert math.isnan(next(iter(first))[1])


def test_columns_without_rows_and_rows_without_columns_are_tables() -> None:
    db = make_database("native")
    db.create_table("R", {"a": "int"})
    feed = db.create_view("v", "Q(.) = R(A)").changes()
    db.insert("R", [(1,), (2,)])
    (change,) = feed
    assert change.to_arrow().num_rows == 1
    assert delta_table([change], pa.schema([]), "weight").to_pydict() == {"weight": [2]}
    assert delta_table([], pa.schema([("a", pa.int64())]), "weight").schema.names == ["a", "weight"]
