"""Tables and views that come and go, on both backends."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.errors import DataError, IvmeError, PlanError, SchemaError
from tests.counting import COUNTING
from tests.databases import failing, rows_of, state_of, table_rows

# Promises of tables


@pytest.mark.parametrize(
    "rows",
    [
        [("x", None)],
        [(None, 1)],
        [{"k": "x", "n": None}],
        [("x", i) for i in range(40)] + [("x", None)],
        pa.table({"n": pa.array([1, None], pa.int64()), "k": ["x", "y"]}),
    ],
    ids=["few", "text", "mapping", "many", "arrow"],
)
def test_the_columns_of_a_primary_key_are_never_null(db: Database, rows: Any) -> None:
    db.create_table("R", {"k": "string", "n": "int"}, primary_key=["k", "n"])
    with pytest.raises(DataError, match=r"table R, column [kn], rows\[\d+\]: a primary key cannot be NULL"):
        db.insert("R", rows)
    assert db.create_view("v", "SELECT COUNT(*) AS n FROM R").scalar() == 0


def test_primary_keys_are_enforced(db: Database) -> None:
    db.create_table("R", {"k": "int", "x": "string"}, primary_key="K")
    view = db.create_view("v", "SELECT k, x FROM R")
    db.insert("R", [(1, "a"), (2, "b")])
    for rows in ([(1, "c")], [(3, "c"), (3, "d")], [(1, "a")]):
        with pytest.raises(DataError, match=rf"table R would have the primary key \({rows[0][0]},\)"):
            db.insert("R", rows)
    with db.batch() as batch:
        batch.insert("R", [(1, "b"), (2, "a")])
        batch.delete("R", [(1, "a"), (2, "b")])
    assert rows_of(view) == [(1, "b"), (2, "a")]
    db.delete("R", [(1, "b")])
    db.insert("R", [(1, "c")])
    assert rows_of(view) == [(1, "c"), (2, "a")]


def test_a_key_of_all_columns_makes_a_table_a_set(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "int"}, primary_key=["b", "a"])
    db.insert("R", [(1, 2)])
    with pytest.raises(DataError, match=r"primary key \(1, 2\)"):
        db.insert("R", [(1, 2)])
    with pytest.raises(DataError, match=r"cannot delete \(2, 1\)"):
        db.delete("R", [(2, 1)])


def test_append_only_and_static_tables_are_enforced(db: Database) -> None:
    db.create_table("A", {"a": "int"}, append_only=True)
    db.create_table("S", {"a": "int"}, static=True)
    view = db.create_view("v", "SELECT A.a FROM A JOIN S ON A.a = S.a")
    db.insert("A", [(1,)])
    with pytest.raises(DataError, match="append-only"):
        db.delete("A", [(1,)])
    with pytest.raises(DataError, match="append-only"):
        db.apply("A", [(1,), (2,)], [1, -1])
    with db.batch() as batch:
        batch.insert("S", [(1,)])
        batch.insert("S", [(2,)])
    for change in (db.insert, db.delete):
        with pytest.raises(DataError, match="static"):
            change("S", [(1,)])
    assert list(view) == [(1,)]


def test_two_batches_cannot_both_load_a_static_table(db: Database) -> None:
    db.create_table("S", {"a": "int"}, static=True)
    late = db.batch().begin()
    late.insert("S", [(1,)])
    db.insert("S", [(2,)])
    with pytest.raises(DataError, match="static"), late:
        pass
    assert table_rows(db, "S") == {(2,): 1}


# Names


def test_names_are_case_insensitive(db: Database) -> None:
    db.create_table("Orders", {"Id": "int", "Amount": "int"})
    view = db.create_view("Totals", "select SUM(AMOUNT) as total from ORDERS")
    db.insert("oRDERS", [{"ID": 1, "amount": 5}])
    assert view.scalar() == 5
    assert db.view("TOTALS") is view
    for name in ("orders", "TOTALS"):
        with pytest.raises(SchemaError, match="already"):
            db.create_table(name, {"a": "int"})
        with pytest.raises(SchemaError, match="already"):
            db.create_view(name, "SELECT Id FROM Orders")
    db.drop_view("totals")
    db.drop_table("ORDERS")
    assert (db.views, db.tables) == ((), ())


def test_identifiers_can_be_quoted(db: Database) -> None:
    db.create_table("my table", {"the key": "int", "select": "string"})
    view = db.create_view("a view", "SELECT `select`, COUNT(*) AS `how many` FROM `my table` GROUP BY `select`")
    over = db.create_view("another at", "SELECT `how many` FROM `a view` WHERE `select` = :p")
    db.insert("my table", [(1, "x"), (2, "x")])
    assert view.columns == ("select", "how many")
    assert list(view) == [("x", 2)]
    assert list(over(p="x")) == [(2,)]


def test_names_with_dots_are_kept_apart(db: Database) -> None:
    db.create_table("b.R", {"x": "int"})
    db.create_table("R", {"x": "int"})
    view = db.create_view("a", "SELECT x, COUNT(*) AS n FROM `b.R` GROUP BY x")
    other = db.create_view("a.b", "SELECT x, COUNT(*) AS n FROM R GROUP BY x")
    db.insert("b.R", [(1,)])
    db.insert("R", [(2,)])
    assert (list(view), list(other)) == ([(1, 1)], [(2, 1)])
    with pytest.raises(SchemaError, match="name"):
        db.create_table("a\0b", {"x": "int"})


def test_a_view_may_have_the_name_of_another_with_at(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    plain = db.create_view("v", "SELECT a FROM R")
    other = db.create_view("v at", "SELECT a, b FROM R")
    db.insert("R", [(1, 2)])
    assert (1,) in plain
    assert (1, 2) in other
    assert (list(plain), list(other)) == ([(1,)], [(1, 2)])


def test_dropping_what_others_need_is_refused_by_name(db: Database) -> None:
    db.create_table("R", {"a": "int"})
    db.create_view("inner_view", "SELECT a FROM R")
    db.create_view("outer_view", "SELECT a FROM inner_view")
    with pytest.raises(PlanError, match="inner_view"):
        db.drop_table("R")
    with pytest.raises(PlanError, match="outer_view"):
        db.drop_view("INNER_VIEW")
    db.drop_view("outer_view")
    db.drop_view("inner_view")
    db.drop_table("R")
    assert db._runtime.catalog.shared == {}


def test_a_dropped_view_answers_no_more_and_its_name_is_free(db: Database) -> None:
    db.create_table("R", {"a": "int"})
    old = db.create_view("v", "SELECT a FROM R")
    feed = old.changes()
    db.drop_view("v")
    new = db.create_view("v", "SELECT COUNT(*) AS n FROM R")
    db.insert("R", [(1,)])
    assert list(feed) == []
    with pytest.raises(PlanError, match="v was dropped"):
        list(old)
    assert new.scalar() == 1
    feed.close()
    assert new.scalar() == 1


def test_a_closed_database_answers_no_more(db: Database) -> None:
    with db:
        db.create_table("R", {"a": "int"})
        view = db.create_view("v", "SELECT a FROM R")
        over = db.create_view("w", "SELECT a FROM v")
    for each in (view, over):
        with pytest.raises(PlanError, match="closed"):
            list(each)
    with pytest.raises(PlanError, match="closed"):
        db.insert("R", [(1,)])
    with pytest.raises(PlanError, match="closed"):
        db.create_table("S", {"a": "int"})
    db.close()


# Views on views


def test_changes_flow_through_views_within_one_batch(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    counts = db.create_view("counts", "SELECT a, COUNT(*) AS n FROM R GROUP BY a")
    sizes = db.create_view("sizes", "SELECT n, COUNT(*) AS groups FROM counts GROUP BY n")
    both = db.create_view("both", "SELECT R.b, c.n FROM R JOIN counts c ON R.a = c.a")
    db.insert("R", [(1, 10), (1, 11), (2, 20)])
    assert rows_of(counts) == [(1, 2), (2, 1)]
    assert rows_of(sizes) == [(1, 1), (2, 1)]
    assert rows_of(both) == [(10, 2), (11, 2), (20, 1)]
    db.delete("R", [(1, 10)])
    assert rows_of(sizes) == [(1, 2)]
    assert rows_of(both) == [(11, 1), (20, 1)]
    for view in (counts, sizes, both):
        view.verify()


def test_views_with_parameters_or_without_columns_carry_no_views(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    db.create_view("p", "SELECT b FROM R WHERE a = :a")
    db.create_view("nothing", "N(.) = R(A, B)")
    with pytest.raises(PlanError, match="view p has parameters"):
        db.create_view("v", "SELECT b FROM p")
    with pytest.raises(IvmeError):
        db.create_view("v", "V(.) = nothing()")


# Sharing, order of creation, failures


@pytest.mark.parametrize("strategy", COUNTING)
def test_every_strategy_can_be_forced(db: Database, strategy: str) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    db.create_table("S", {"b": "int", "c": "string"})
    db.insert("R", [(1, 1), (2, 1)])
    text = "SELECT R.a, COUNT(*) AS n, MAX(S.c) AS h FROM R JOIN S ON R.b = S.b GROUP BY R.a"
    view = db.create_view("v", text, strategy=strategy)
    changes = view.changes()
    assert view.stats()["strategy"] == view.explain().strategy == strategy
    db.insert("S", [(1, "x"), (1, "y")])
    assert rows_of(view) == [(1, 2, "y"), (2, 2, "y")]
    db.delete("S", [(1, "y")])
    db.delete("R", [(2, 1)])
    assert rows_of(view) == [(1, 1, "x")]
    total: Counter[Any] = Counter()
    for change in changes:
        total.update(change)
    assert {row: n for row, n in total.items() if n} == {(1, 1, "x"): 1}
    view.verify()


def test_a_recomputed_view_is_recomputed_again_when_nobody_follows_it(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    view = db.create_view("v", "SELECT x.a FROM R x JOIN R y ON x.b = y.a", strategy="recompute")
    db.insert("R", [(1, 1)])
    with view.changes() as changes:
        db.insert("R", [(2, 1)])
        assert list(changes) == [{(2,): 1}]
    db.insert("R", [(3, 2)])
    assert list(changes) == []
    assert rows_of(view) == [(1,), (2,), (3,)]
    over = db.create_view("w", "SELECT COUNT(*) AS n FROM v")
    db.delete("R", [(1, 1)])
    assert (over.scalar(), rows_of(view)) == (1, [(3,)])
    view.verify()


def test_equal_views_share_their_maps(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    db.create_table("S", {"b": "int", "c": "int"})
    first = db.create_view("first", "SELECT R.a, S.c FROM R JOIN S ON R.b = S.b", strategy="view-tree")
    alone = state_of(db)[-1]
    second = db.create_view("second", "SELECT u.a, w.c FROM R u JOIN S w ON u.b = w.b", strategy="view-tree")
    assert state_of(db)[-1] == alone
    db.insert("R", [(1, 2)])
    db.insert("S", [(2, 3)])
    db.drop_view("first")
    assert list(second) == [(1, 3)]
    with pytest.raises(PlanError):
        list(first)


def test_a_view_that_cannot_be_made_leaves_the_database_as_it_was(db: Database, monkeypatch: Any) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    inner = db.create_view("inner_view", "SELECT a, b FROM R")
    db.insert("R", [(1, 2**62), (1, 2**62 - 1)])
    before = state_of(db)
    with pytest.raises(DataError, match="does not fit"):
        db.create_view("v", "SELECT SUM(x.b) AS s FROM R x JOIN inner_view y ON x.a = y.a")
    assert state_of(db) == before
    runtime = db._runtime
    for step, times in (("set_trigger", 2), ("set_reader", 3), ("install", 2), ("run", 1)):
        monkeypatch.setattr(runtime.backend, step, failing(getattr(runtime.backend, step), times))
        with pytest.raises(MemoryError):
            db.create_view("v", "SELECT x.a, COUNT(*) AS n FROM inner_view x JOIN R y ON x.a = y.a GROUP BY x.a")
        monkeypatch.undo()
        assert state_of(db) == before
    view = db.create_view("v", "SELECT x.a, COUNT(*) AS n FROM inner_view x JOIN R y ON x.a = y.a GROUP BY x.a")
    assert list(view) == [(1, 4)]
    db.insert("R", [(1, 0)])
    assert list(view) == [(1, 9)]
    assert inner.count() == 3


def test_a_subscription_that_fails_leaves_the_database_as_it_was(db: Database, monkeypatch: Any) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    view = db.create_view("v", "SELECT a, COUNT(*) AS n FROM R GROUP BY a")
    db.insert("R", [(1, 1)])
    before = state_of(db)
    monkeypatch.setattr(db._runtime.backend, "set_reader", failing(db._runtime.backend.set_reader, times=1))
    with pytest.raises(MemoryError):
        view.changes()
    monkeypatch.undo()
    assert state_of(db) == before
    changes = view.changes()
    db.insert("R", [(1, 2)])
    assert list(changes) == [{(1, 1): -1, (1, 2): 1}]


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("Q(A, B, C, D) = R(A, B), S(B, C), T(C, D)", {"strategy": "marks", "semantics": "set"}),
        ("Q(A, B | .) = R(A, B), S(B, C), T(A, X)", {"strategy": "marks", "semantics": "set"}),
        ("Q(B | A) = R(A, B), S(B, X), T(X, A)", {"strategy": "view-tree"}),
    ],
)
def test_a_view_made_over_rows_that_another_view_has_in_its_leaves_already_counts_them_in_its_supports(
    db: Database, query: str, options: dict[str, str]
) -> None:
    """A support counts the tuples that appear; in a leaf that was filled before, none would."""
    for table in "RST":
        db.create_table(table, {"a": "int", "b": "int"})
        db.insert(table, [(n % 3, n % 4) for n in range(8)])
    db.create_view("first", "Q(A, B, C, D) = R(A, B), S(B, C), T(C, D)", strategy="classical")
    view = db.create_view("second", query, **options)
    view.verify()
    for table in "RST":
        db.delete(table, [(0, 0)])
    view.verify()
