"""An expression that fails for a row is an error only where a view shows the row: the guard may be another table's.

On both backends, and in directories, which are opened again at the end of each test.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import DataError, ExpressionError, PlanError
from tests.databases import rows_of, table_rows
from tests.example_counts import some_of

QUOTIENTS = "SELECT a.k, a.x / a.y AS q FROM a JOIN b ON a.k = b.k WHERE b.ok"

VIEWS: dict[str, list[tuple[Any, ...]]] = {
    QUOTIENTS: [(1, 3.0)],
    "SELECT a.x / a.y AS q FROM a JOIN b ON a.k = b.k WHERE b.ok": [(3.0,)],
    "SELECT DISTINCT a.x / a.y AS q FROM a JOIN b ON a.k = b.k WHERE b.ok": [(3.0,)],
    "SELECT SUM(a.x / a.y) AS q FROM a JOIN b ON a.k = b.k WHERE b.ok": [(3.0,)],
    "SELECT b.k, AVG(a.x / a.y) AS q, COUNT(*) AS n FROM a JOIN b ON a.k = b.k WHERE b.ok GROUP BY b.k": [(1, 3.0, 1)],
    "SELECT MIN(a.x / a.y) AS q FROM a JOIN b ON a.k = b.k WHERE b.ok": [(3.0,)],
    "SELECT COUNT(DISTINCT a.x / a.y) AS q, SUM(a.x) AS s FROM a JOIN b ON a.k = b.k WHERE b.ok": [(1, 6)],
    "SELECT a.k FROM a JOIN b ON a.k = b.k WHERE a.x / a.y > 1 AND b.ok": [(1,)],
    "SELECT COUNT(*) AS n FROM a JOIN b ON a.k = b.k WHERE b.ok AND a.x / a.y = 3": [(1,)],
    "SELECT a.k, a.x % a.y AS q, b.ok FROM b JOIN a ON a.k = b.k WHERE b.ok": [(1, 0, True)],
    "SELECT a.k, CAST(a.x / a.y AS DECIMAL(9, 2)) + 1 AS q FROM a JOIN b ON a.k = b.k WHERE b.ok": [
        (1, Decimal("4.00"))
    ],
}


def make_tables(db: Database) -> None:
    db.create_table("a", {"k": "int", "x": "int", "y": "int"})
    db.create_table("b", {"k": "int", "ok": "bool"})


def fill(db: Database) -> None:
    db.insert("a", [(1, 6, 2)])
    db.insert("b", [(1, True), (2, False), (5, True)])


@pytest.mark.parametrize(
    "strategy",
    [
        None,
        "classical",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("view-tree", "recursive", "factorised")),
    ],
)
@pytest.mark.parametrize("sql", VIEWS)
@pytest.mark.parametrize("db", some_of(("native", "pure", "durable", "sharded"), "native"), indirect=True)
def test_a_row_that_no_view_shows_may_fail(db: Database, sql: str, strategy: str | None) -> None:
    make_tables(db)
    try:
        view = db.create_view("v", sql, **({} if strategy is None else {"strategy": strategy}))
    except PlanError:
        pytest.skip(f"{strategy} does not maintain it")
    fill(db)
    expected = VIEWS[sql]
    assert expected == rows_of(view)
    db.insert("a", [(2, 6, 0)])  # b.ok is false
    db.insert("a", [(3, 6, 0), (4, None, 0)])  # no partner
    db.insert("a", [(2, 6, 0)] * 40)
    assert expected == rows_of(view)
    view.verify()
    for rows in ([(1, 6, 0)], [(5, 6, 0)] * 2, [(1, 6, 0), (2, 6, 0)] * 20):
        with pytest.raises(ExpressionError, match=rf"view v: .* fails for the row \({rows[0][0]}, 6, 0\) of table a: "):
            db.insert("a", rows)
    for partners in ([(2, True)], [(3, True), (9, True)], [(3, True)] * 40):
        failing = partners[0][0]
        with pytest.raises(ExpressionError, match=rf"view v: .* fails for the row \({failing}, 6, 0\) of table a: "):
            db.insert("b", partners)
    assert expected == rows_of(view)
    assert 46 == sum(table_rows(db, "a").values()) + sum(table_rows(db, "b").values()) - 1
    db.insert("b", [(4, True)])  # NULL / 0 is NULL, and no error
    db.delete("b", [(4, True)])
    db.delete("a", [(2, 6, 0)] * 41)
    db.delete("a", [(3, 6, 0)])
    db.insert("b", [(2, True), (3, True)])
    assert expected == rows_of(view)
    view.verify()


def test_a_batch_is_judged_by_its_end(db: Database) -> None:
    make_tables(db)
    view = db.create_view("v", QUOTIENTS)
    fill(db)
    with db.batch() as batch:
        batch.insert("a", [(5, 1, 0)])
        batch.delete("b", [(5, True)])
    assert [(1, 3.0)] == rows_of(view)
    with db.batch() as batch:
        batch.insert("b", [(5, True)])
        batch.delete("a", [(5, 1, 0)])
    refused = db.batch().begin()
    refused.insert("a", [(1, 1, 0)])
    refused.delete("b", [(5, True)])
    with pytest.raises(ExpressionError, match=r"the row \(1, 1, 0\)"):
        refused.__exit__(None, None, None)
    assert {(1, True): 1, (2, False): 1, (5, True): 1} == table_rows(db, "b")


def test_a_view_over_rows_that_it_would_show_is_refused(db: Database) -> None:
    make_tables(db)
    fill(db)
    db.insert("a", [(2, 6, 0), (3, 6, 0), (5, 7, 0)])
    before = db.entries()
    with pytest.raises(ExpressionError, match=r"view v: x / y fails for the row \(5, 7, 0\) of table a"):
        db.create_view("v", QUOTIENTS)
    assert ((), before) == (db.views, db.entries())
    db.delete("a", [(5, 7, 0)])
    assert [(1, 3.0)] == rows_of(db.create_view("v", QUOTIENTS))
    db.drop_view("v")
    assert before - 1 == db.entries()
    db.insert("b", [(2, True)])


def test_rows_that_fail_in_both_tables_are_found(db: Database) -> None:
    db.create_table("a", {"k": "int", "x": "int"})
    db.create_table("b", {"k": "int", "y": "int", "ok": "bool"})
    db.create_view("v", "SELECT a.k, 1 / a.x AS p, 1 / b.y AS q FROM a JOIN b ON a.k = b.k WHERE b.ok")
    db.insert("a", [(1, 0)])
    db.insert("b", [(1, 0, False), (2, 0, True)])
    for table, row in (("b", (1, 0, True)), ("b", (1, 1, True)), ("a", (2, 0)), ("a", (2, 1))):
        with pytest.raises(ExpressionError, match="division by zero"):
            db.insert(table, [row])


def test_a_failing_join_key_joins_with_everything(db: Database) -> None:
    """As its predicate would if it held; the row's other predicates and keys still guard it."""
    db.create_table("a", {"x": "int", "y": "int", "k": "int"})
    db.create_table("b", {"q": "float", "k": "int", "ok": "bool"})
    view = db.create_view("v", "SELECT a.x, b.q FROM a JOIN b ON a.x / a.y = b.q AND a.k = b.k WHERE b.ok")
    db.insert("b", [(3.0, 1, True), (3.0, 2, False)])
    db.insert("a", [(6, 2, 1), (6, 0, 2), (6, 0, 3)])
    assert [(6, 3.0)] == rows_of(view)
    with pytest.raises(ExpressionError, match=r"x / y fails for the row \(6, 0, 1\) of table a"):
        db.insert("a", [(6, 0, 1)])
    with pytest.raises(ExpressionError, match=r"x / y fails for the row \(6, 0, 3\) of table a"):
        db.insert("b", [(8.0, 3, True)])
    view.verify()


def test_keys_that_fail_on_both_sides_are_found(db: Database) -> None:
    db.create_table("a", {"x": "int", "y": "int"})
    db.create_table("b", {"x": "int", "y": "int", "ok": "bool"})
    db.create_view("v", "SELECT COUNT(*) AS n FROM a JOIN b ON a.x / a.y = b.x / b.y WHERE b.ok")
    db.insert("a", [(1, 0)])
    db.insert("b", [(1, 0, False)])
    with pytest.raises(ExpressionError, match="x / y fails"):
        db.insert("b", [(1, 0, True)])
    with pytest.raises(ExpressionError, match="x / y fails"):
        db.insert("b", [(1, 2, True)])
    db.delete("a", [(1, 0)])
    db.insert("b", [(1, 2, True)])


def test_self_joins_know_their_failing_rows(db: Database) -> None:
    db.create_table("e", {"s": "int", "d": "int", "w": "int"})
    view = db.create_view("v", "SELECT l.s, 1 / l.w AS q, r.d FROM e l JOIN e r ON l.d = r.s")
    db.insert("e", [(1, 2, 1), (2, 3, 0)])  # (2, 3, 0) is only on the right
    assert [(1, 1.0, 3)] == rows_of(view)
    with pytest.raises(ExpressionError, match=r"1 / w fails for the row \(2, 3, 0\) of table e"):
        db.insert("e", [(3, 4, 1)])
    with pytest.raises(ExpressionError, match=r"the row \(7, 7, 0\)"):
        db.insert("e", [(7, 7, 0)])
    db.delete("e", [(2, 3, 0)])
    db.insert("e", [(3, 4, 1)])
    view.verify()


def test_views_on_views_know_their_failing_rows(db: Database) -> None:
    make_tables(db)
    db.create_view("sums", "SELECT k, SUM(x) AS x, SUM(y) AS y FROM a GROUP BY k")
    view = db.create_view("v", "SELECT s.k, s.x / s.y AS q FROM sums s JOIN b ON s.k = b.k WHERE b.ok")
    fill(db)
    db.insert("a", [(2, 6, 1), (2, 6, -1)])
    assert [(1, 3.0)] == rows_of(view)
    with pytest.raises(ExpressionError, match=r"view v: x / y fails for the row \(1, 7, 0\) of view sums"):
        db.insert("a", [(1, 1, -2)])
    with pytest.raises(ExpressionError, match=r"view v: x / y fails for the row \(2, 12, 0\) of view sums"):
        db.insert("b", [(2, True)])
    with db.batch() as batch:
        batch.insert("a", [(2, 0, 4)])
        batch.insert("b", [(2, True)])
    assert [(1, 3.0), (2, 3.0)] == rows_of(view)
    view.verify()


def test_a_row_that_some_parameter_shows_is_an_error(db: Database) -> None:
    make_tables(db)
    view = db.create_view("v", "SELECT a.x / a.y AS q FROM a JOIN b ON a.k = b.k WHERE b.ok AND a.x = :x")
    fill(db)
    db.insert("a", [(2, 6, 0)])
    assert [(3.0,)] == list(view(x=6))
    with pytest.raises(ExpressionError, match=r"the row \(1, 9, 0\)"):
        db.insert("a", [(1, 9, 0)])
    asked = db.create_view("asked", "SELECT a.k FROM a JOIN b ON a.k = b.k WHERE b.ok AND a.x / a.y = :q")
    assert [(1,)] == list(asked(q=3.0))
    db.drop_view("v")
    with pytest.raises(ExpressionError, match=r"view asked: x / y fails for the row \(1, 9, 0\)"):
        db.insert("a", [(1, 9, 0)])
    db.insert("a", [(1, None, 0)])  # NULL equals no parameter
    asked.verify()


def test_a_parameter_never_shows_a_row_where_it_is_null(db: Database) -> None:
    make_tables(db)
    db.create_view("v", "SELECT a.x / a.y AS q FROM a JOIN b ON a.x = b.k WHERE a.k = :k")
    db.insert("b", [(6, True)])
    db.insert("a", [(None, 6, 0)])
    with pytest.raises(ExpressionError, match=r"the row \(1, 6, 0\)"):
        db.insert("a", [(1, 6, 0)])


@pytest.mark.parametrize("epsilon", [0, 0.5, 1])
def test_heavy_and_light_parts_leave_out_what_fails(db: Database, epsilon: float) -> None:
    make_tables(db)
    sql = "SELECT a.x / a.y AS q FROM a JOIN b ON a.k = b.k WHERE b.ok"
    view = db.create_view("v", sql, strategy="skew", epsilon=epsilon)
    fill(db)
    db.insert("a", [(2, n, 0) for n in range(50)])
    db.insert("a", [(n % 7, n, 1) for n in range(50)])
    view.verify()
    with pytest.raises(ExpressionError, match=r"the row \(2, \d+, 0\)"):
        db.insert("b", [(2, True)])
    view.verify()


def test_a_view_that_is_recomputed_is_refused_when_it_is_read(db: Database) -> None:
    make_tables(db)
    view = db.create_view("v", QUOTIENTS, strategy="recompute")
    fill(db)
    db.insert("a", [(2, 6, 0)])
    assert [(1, 3.0)] == rows_of(view)
    db.insert("b", [(2, True)])
    for _ in range(2):
        with pytest.raises(ExpressionError, match=r"view v: x / y fails for the row \(2, 6, 0\)"):
            rows_of(view)
    db.delete("b", [(2, True)])
    changes = view.changes()
    with pytest.raises(ExpressionError, match=r"view v: x / y fails for the row \(2, 6, 0\)"):
        db.insert("b", [(2, True)])
    db.insert("a", [(1, 8, 2)])
    assert [{(1, 4.0): 1}] == list(changes)
    changes.close()
    db.insert("b", [(2, True)])


def test_followers_hear_nothing_of_rows_that_are_left_out(db: Database) -> None:
    make_tables(db)
    view = db.create_view("v", QUOTIENTS)
    changes = view.changes()
    fill(db)
    db.insert("a", [(2, 6, 0)])
    with pytest.raises(ExpressionError):
        db.insert("b", [(2, True)])
    db.delete("a", [(2, 6, 0)])
    db.insert("b", [(2, True)])
    assert [{(1, 3.0): 1}] == [change for change in changes if change]


def test_another_view_without_a_guard_refuses_the_row_still(db: Database) -> None:
    make_tables(db)
    db.create_view("v", QUOTIENTS)
    fill(db)
    db.create_view("alone", "SELECT x / y AS q FROM a")
    for rows in ([(2, 6, 0)], [(2, 6, 0)] * 5, [(2, 6, 0)] * 50):
        with pytest.raises(ExpressionError, match=r"view alone: x / y fails for the row \(2, 6, 0\) of table a"):
            db.insert("a", rows)


def test_overflow_and_casts_wait_until_they_are_seen(db: Database) -> None:
    db.create_table("a", {"k": "int", "n": "int", "t": "string", "d": "decimal(38, 2)"})
    db.create_table("b", {"k": "int"})
    view = db.create_view(
        "v", "SELECT a.k, a.n * 2 AS n, CAST(a.t AS DATE) AS t, a.d * 10 AS d FROM a JOIN b ON a.k = b.k"
    )
    for row in [(1, 2**62, None, None), (1, 1, "no date", None), (1, 1, None, Decimal("9" * 36))]:
        db.insert("a", [row])
        with pytest.raises(ExpressionError, match=r"view v: .* fails for the row"):
            db.insert("b", [(1,)])
        db.delete("a", [row])
    db.insert("b", [(1,)])
    assert [] == rows_of(view)


def test_a_predicate_on_the_left_guards_one_on_the_right(db: Database) -> None:
    make_tables(db)
    view = db.create_view("v", "SELECT a.x FROM a JOIN b ON a.k = b.k WHERE a.y <> 0 AND a.x / a.y > 1")
    fill(db)
    db.insert("a", [(1, 6, 0), (1, 9, 3)])
    assert [(6,), (9,)] == rows_of(view)
    view.verify()


def test_explain_says_what_is_checked(db: Database) -> None:
    make_tables(db)
    noted = [note for note in db.create_view("v", QUOTIENTS).explain().notes if "may fail" in note]
    assert [
        "an expression over a may fail: rows for which it does are left out, and a batch that would show one is "
        "refused; the check is maintained beside the view (`view-tree`, update O(1))"
    ] == noted
    plain = db.create_view("w", "SELECT a.k, a.x FROM a JOIN b ON a.k = b.k WHERE b.ok")
    assert not [note for note in plain.explain().notes if "may fail" in note]


def test_a_view_that_shares_with_its_check_holds_no_more_entries(db: Database) -> None:
    make_tables(db)
    fill(db)
    before = db.entries()
    db.create_view("v", "SELECT a.k, a.x, a.y, b.ok FROM a JOIN b ON a.k = b.k")
    without = db.entries() - before
    db.drop_view("v")
    db.create_view("v", "SELECT a.k, a.x / a.y AS q, b.ok FROM a JOIN b ON a.k = b.k")
    assert without == db.entries() - before


def test_ring_semantics_refuse_what_fails_at_once(db: Database) -> None:
    """Multiplicities may cancel there, so that no check can count on seeing a row."""
    make_tables(db)
    db.create_view("v", QUOTIENTS, semantics="ring")
    with pytest.raises(DataError, match="x / y fails"):
        db.insert("a", [(2, 6, 0)])


def test_set_semantics_leave_out_what_fails(db: Database) -> None:
    db.create_table("a", {"k": "int", "x": "int", "y": "int"}, append_only=True)
    db.create_table("b", {"k": "int", "m": "int"}, append_only=True)
    db.create_table("c", {"m": "int"}, append_only=True)
    sql = "SELECT a.k, b.m, a.x / a.y AS q FROM a JOIN b ON a.k = b.k JOIN c ON b.m = c.m"
    view = db.create_view("v", sql, semantics="set")
    db.insert("a", [(1, 6, 2), (2, 6, 0)])
    db.insert("b", [(1, 1), (2, 2)])
    db.insert("c", [(1,)])
    assert [(1, 1, 3.0)] == rows_of(view)
    with pytest.raises(ExpressionError, match=r"the row \(2, 6, 0\)"):
        db.insert("c", [(2,)])
    view.verify()


def test_a_predicate_on_the_right_guards_one_that_fails_on_the_left(db: Database) -> None:
    """However the conjunction is written, and whether a constant or another column of the table is the guard."""
    db.create_table("a", {"k": "int", "x": "int", "y": "int", "l": "int"})
    db.create_table("b", {"k": "int", "ok": "bool"})
    where = "(a.x / a.y > 1 AND a.x < 9) AND b.ok AND a.l = 1"
    view = db.create_view("v", f"SELECT a.x FROM a JOIN b ON a.k = b.k WHERE {where}")
    db.insert("b", [(1, True)])
    db.insert("a", [(1, 9, 0, 1), (1, 8, 0, 2), (1, 8, 2, 1)])
    assert [(8,)] == rows_of(view)
    view.verify()
    with pytest.raises(ExpressionError, match=r"the row \(1, 8, 0, 1\)"):
        db.insert("a", [(1, 8, 0, 1)])
    twice = db.create_view("twice", "SELECT a.x / a.y AS q FROM a JOIN b ON a.k = b.k WHERE a.x = a.l")
    assert [] == rows_of(twice)
    with pytest.raises(ExpressionError, match=r"view twice: x / y fails for the row \(1, 9, 0, 9\)"):
        db.insert("a", [(1, 9, 0, 9)])
