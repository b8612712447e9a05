"""When views are planned anew, what is said of it, and that nobody notices but by the clock."""

from __future__ import annotations

import logging
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.engine.runtime import build_beside, catalog
from ivme.errors import DataError
from ivme.plan.assemble import points
from ivme.plan.assemble.points import Observation, Point, is_much_better, undominated
from ivme.view import View

CHAIN = "Q(COUNT | A) = R(A, B), S(B, C), T(C, D)"
NODES = 16


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A little work is enough here."""
    monkeypatch.setattr(points, "LEAST_WORK", 1000)


def chain(path: Path | None = None, **options: Any) -> tuple[Database, View]:
    """A chain of three tables: a sum for one A takes a hundred steps to find, or one if it is kept, for which a change
    takes as many."""
    db = Database(path, replan=False, durability="async")
    rng = random.Random(0)
    for table, columns in (("R", "AB"), ("S", "BC"), ("T", "CD")):
        db.create_table(table, dict.fromkeys(columns, "int"))
        db.insert(table, sorted({(rng.randrange(NODES), rng.randrange(NODES)) for _ in range(220)}))
    return db, db.create_view("v", CHAIN, **options)


def read(view: View, times: int) -> None:
    for number in range(times):
        view.scalar(A=number % NODES)


def change(db: Database, table: str, times: int) -> None:
    row = next(iter(db.table(table)))
    for _ in range(times):
        db.delete(table, [row])
        db.insert(table, [row])


def test_many_requests_get_a_plan_with_cheap_reads_and_many_changes_one_with_cheap_changes() -> None:
    db, view = chain(favour="updates")
    assert view.explain().strategy == "request"
    db.drop_view("v")
    view = db.create_view("v", CHAIN)
    began = view.explain().strategy
    read(view, 10)
    assert [] == db.replan()
    change(db, "T", 500)
    (changed,) = db.replan()
    assert (changed.view, changed.after) == ("v", "request")
    assert view.explain().strategy == "request"
    view.verify()
    read(view, 1000)
    (changed,) = db.replan()
    assert (changed.before, changed.after) == ("request", began)
    assert [] == db.replan()
    view.verify()


def test_the_explanation_says_what_was_observed_and_what_it_was_before() -> None:
    db, view = chain()
    change(db, "T", 500)
    db.replan()
    assert view.explain().strategy == "request"
    assert "1,000 of T" in view.explain().reason
    assert view.explain().notes[0].startswith("planned again: ")
    assert "planned again" in str(view.explain())
    assert "1,000 of T" in view.explain().to_dict()["reason"]


@pytest.mark.parametrize("option", [{"favour": "reads"}, {"favour": "balanced"}, {"strategy": "view-tree"}])
def test_options_pin_the_plan(option: dict[str, Any]) -> None:
    db, view = chain(**option)
    before = view.explain()
    change(db, "T", 500)
    assert [] == db.replan()
    assert view.explain() is before


def test_loads_do_not_count_as_changes() -> None:
    db, view = chain()
    before = view.explain().strategy
    db.insert("S", [(NODES + i, i) for i in range(5000)])
    assert [] == db.replan()
    assert before == view.explain().strategy


def test_a_plan_whose_bound_is_worse_stays_where_its_operations_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value of B has one partner: view trees take a few steps, whatever their bound says."""
    monkeypatch.setattr(points, "LEAST_WORK", 100_000)
    db = Database(replan=False)
    for table, columns in (("R", "AB"), ("S", "BC"), ("T", "CD")):
        db.create_table(table, dict.fromkeys(columns, "int"))
        db.insert(table, [(i, i) for i in range(300)])
    view = db.create_view("v", CHAIN)
    before = view.explain().strategy
    change(db, "S", 3000)
    assert [] == db.replan()
    assert before == view.explain().strategy
    assert view.state.observed.tried, "it was planned and counted"


def test_a_plan_that_was_chosen_for_its_use_is_there_again_when_the_directory_is_opened(tmp_path: Path) -> None:
    db, view = chain(tmp_path)
    change(db, "T", 500)
    db.replan()
    reason = view.explain().reason
    db.close()
    for _ in range(2):  # by its log, and by its snapshot
        db = Database(tmp_path, replan=False)
        again = db.view("v")
        assert again.explain().strategy == "request"
        assert reason == again.explain().reason
        again.verify()
        db.insert("R", [(1, 1)])
        again.verify()
        db.checkpoint()
        db.close()


def test_a_follower_has_a_view_that_is_evaluated_at_requests_planned_anew() -> None:
    db, _ = chain()
    db.drop_view("v")
    view = db.create_view("v", "Q(D | A) = R(A, B), S(B, C), T(C, D)")
    assert view.explain().strategy == "request"
    before = Counter({(a, *row): n for a in range(NODES) for row, n in view.items(A=a)})
    feed = view.changes()
    assert view.explain().strategy != "request"
    assert "followed" in view.explain().notes[0]
    db.insert("R", [(1, 1), (2, 3)])
    for change_ in feed:
        before.update(Counter(dict(change_)))
    assert before == {(a, *row): n for a in range(NODES) for row, n in view.items(A=a)}
    feed.close()
    change(db, "T", 500)
    db.replan()
    assert view.explain().strategy == "request", "nobody follows it any more"
    view.verify()


def test_writers_go_on_while_a_view_is_built_with_another_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the pieces of the build somebody writes, and everything is there in the end."""
    db, view = chain()
    change(db, "T", 500)
    monkeypatch.setattr(build_beside, "LEAST_ROWS", 1)
    monkeypatch.setattr(build_beside, "PIECE", 50)
    rows = iter(range(1000, 2000))
    written = []

    def write() -> None:
        number = next(rows)
        db.insert("S", [(number % NODES, number)])
        db.insert("T", [(number, 1)])
        written.append(number)

    monkeypatch.setattr(build_beside, "let_writers_in", write)
    db.replan()
    assert view.explain().strategy == "request"
    assert written
    view.verify()
    read(view, 1000)
    db.replan()
    assert view.explain().strategy != "request"
    view.verify()


def test_readers_that_had_begun_read_on() -> None:
    db = Database(replan=False)
    for table, columns in (("R", "AB"), ("S", "BC")):
        db.create_table(table, dict.fromkeys(columns, "int"))
        db.insert(table, [(i % 7, i % 11) for i in range(200)])
    view = db.create_view("v", "Q(A, B, C) = R(A, B), S(B, C)")
    expected = Counter(view)
    rows = iter(view)
    first = [next(rows) for _ in range(10)]
    planned, _, _ = db.definitions.planned("v", view.made_with[0], {"strategy": "classical"})
    assert planned.plan is not None
    with db.definitions.runtime.lock, db.definitions.change():
        db.definitions.runtime.installation.replace_plan(view.state, planned.explanation, planned.plan)
    assert expected == Counter([*first, *rows])
    assert expected == Counter(view)


def test_an_exchange_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    db, view = chain()
    change(db, "T", 500)
    before = view.explain()

    def fail(*_: object) -> None:
        raise DataError("as if the new maps did not fit")

    with monkeypatch.context() as patched:
        patched.setattr("ivme.engine.runtime.installation.check_memory", fail)
        with pytest.raises(DataError, match="as if"):
            db.replan()
    assert before is view.explain()
    view.verify()
    db.insert("S", [(1, 1)])
    view.verify()
    change(db, "T", 500)
    db.replan()
    assert view.explain().strategy == "request"
    view.verify()


def test_plans_change_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "USES_BETWEEN", 256)
    db, view = chain()
    db.definitions.replanning.start()
    change(db, "T", 2000)
    db.definitions.replanning.wait()
    assert view.explain().strategy == "request"
    view.verify()
    read(view, 5000)
    db.definitions.replanning.wait()
    assert view.explain().strategy != "request"
    view.verify()
    db.close()


def test_what_goes_wrong_in_the_background_is_logged_and_the_view_stays(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(catalog, "USES_BETWEEN", 256)
    db, view = chain()
    before = view.explain()

    def fail(*_: object) -> None:
        raise DataError("as if the new maps did not fit")

    monkeypatch.setattr("ivme.engine.runtime.installation.check_memory", fail)
    db.definitions.replanning.start()
    with caplog.at_level(logging.WARNING, "ivme.planning"):
        change(db, "T", 500)
        db.definitions.replanning.wait()
    assert before is view.explain()
    assert "as if the new maps did not fit" in caplog.text


def test_blocks_of_a_select_are_planned_anew_together(tmp_path: Path) -> None:
    db = Database(tmp_path, replan=False)
    for table in "RST":
        db.create_table(table, {"x": "int", "y": "int"})
        db.insert(table, [(i % 20, i % 13) for i in range(100)])
    text = "SELECT R.x, T.y, COUNT(*) AS n FROM R JOIN S ON R.y = S.x JOIN T ON S.y = T.x WHERE R.x = :a GROUP BY 1, 2"
    view = db.create_view("v", f"SELECT x, MAX(n) AS most FROM ({text}) AS q GROUP BY x ORDER BY x")
    expected = list(view(a=3))
    change(db, "T", 500)
    db.replan()
    assert expected == list(view(a=3))
    view.verify()
    db.close()
    db = Database(tmp_path, replan=False)
    assert expected == list(db.view("v")(a=3))


def test_a_dimension_that_changes_often_gets_heavy_and_light_parts() -> None:
    """R(a), F(a, b), T(b): a change of a dimension's row costs its facts by the view tree, and N^½ by parts."""
    db = Database(replan=False)
    db.create_table("a", {"k": "int", "x": "int"}, primary_key="k")
    db.create_table("b", {"k": "int", "y": "int"}, primary_key="k")
    db.create_table("f", {"a": "int", "b": "int"})
    db.insert("a", [(i, i) for i in range(40)])
    db.insert("b", [(i, i) for i in range(40)])
    db.insert("f", [(0, i % 40) for i in range(4000)] + [(i % 40, 0) for i in range(4000)])
    view = db.create_view("v", "SELECT SUM(a.x * b.y) AS s FROM a JOIN f ON f.a = a.k JOIN b ON b.k = f.b")
    assert view.explain().strategy == "view-tree"
    for _ in range(600):
        for table in "ab":
            db.delete(table, [(0, 0)])
            db.insert(table, [(0, 0)])
    db.replan()
    view.verify()


def test_points() -> None:
    seen = Observation((("R", 10),), 100, 100, (("R", 1000),))
    no, one = Fraction(0), Fraction(1)
    cheap = Point("request", None, (("R", no),), one, one, one, per_request=True)
    kept = Point("view-tree", None, (("R", one),), no, one, one)
    worse = Point("classical", None, (("R", one),), one, one, one)
    assert (kept, cheap) == undominated([worse, kept, cheap])
    assert 10 + 100 * 1000 + 200 == cheap.work(seen)
    assert 10 * 1000 + 100 + 200 == kept.work(seen)
    assert is_much_better(kept, cheap, seen)
    assert not is_much_better(cheap, kept, seen)
