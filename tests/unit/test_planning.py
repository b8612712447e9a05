"""Views are planned while others read and write, and leave nothing behind when they are given up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ivme
from ivme import planning
from ivme.budget import Cancellation, cancellable
from ivme.database import Database
from ivme.errors import CancelledError, PlanError, SchemaError, UnknownNameError
from ivme.plan.assemble import assembled
from ivme.plan.strategy.choose import choose
from ivme.rings import Covariance

PAIRS = "Q(A, C) = R(A, B), S(B, C)"


@pytest.fixture
def db() -> Iterator[Database]:
    with ivme.Database() as made:
        made.create_table("R", {"a": "int", "b": "int"})
        made.create_table("S", {"b": "int", "c": "int"})
        made.insert("R", [(1, 2)])
        made.insert("S", [(2, 3)])
        yield made


def while_planning(monkeypatch: pytest.MonkeyPatch, *meanwhile: Callable[[], Any]) -> list[int]:
    """Does something in another thread while the first views are planned; how many were."""
    waiting, planned = list(meanwhile), [0]

    def slow(real: Callable[..., Any], *given: Any, **options: Any) -> Any:
        planned[0] += 1
        if waiting:
            thread = threading.Thread(target=waiting.pop(0))
            thread.start()
            thread.join(30)
            assert not thread.is_alive(), "somebody waits for the planner"
        return real(*given, **options)

    monkeypatch.setattr(planning, "choose", partial(slow, choose))
    return planned


def test_others_read_and_write_while_a_view_is_planned(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    other = db.create_view("other", "Q(A, B) = R(A, B)")
    seen: list[Any] = []

    def work() -> None:
        db.insert("R", [(7, 2)])
        seen.extend([list(other), other.stats()["strategy"]])

    while_planning(monkeypatch, work)
    made = db.create_view("made", PAIRS)
    assert [[(1, 2), (7, 2)], "view-tree"] == [sorted(seen[0]), seen[1]]
    assert [(1, 3), (7, 3)] == sorted(made)
    made.verify()


def test_a_view_is_assembled_before_the_lock_is_taken(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    real, lock = assembled.completed_view, db._runtime.lock
    free: list[bool] = []

    def look() -> None:
        free.append(lock.acquire(blocking=False))
        if free[-1]:
            lock.release()

    def watched(*given: Any) -> Any:
        looking = threading.Thread(target=look)
        looking.start()
        looking.join()
        return real(*given)

    monkeypatch.setattr(assembled, "completed_view", watched)
    db.create_view("made", PAIRS)
    assert [True] == free


def test_a_view_is_planned_again_if_its_tables_were_declared_anew(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def declare_anew() -> None:
        db.drop_table("S")
        db.create_table("S", {"b": "int", "c": "string"})
        db.insert("S", [(2, "x")])

    planned = while_planning(monkeypatch, declare_anew)
    assert [(1, "x")] == list(db.create_view("made", PAIRS))
    assert [2] == planned


def test_a_view_is_not_planned_again_if_other_tables_come_and_go(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = while_planning(monkeypatch, lambda: db.create_table("T", {"a": "int"}))
    assert [(1, 3)] == list(db.create_view("made", PAIRS))
    assert [1] == planned


def test_a_table_that_is_dropped_while_its_view_is_planned_is_missing(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_planning(monkeypatch, lambda: db.drop_table("S"))
    with pytest.raises(UnknownNameError, match="S"):
        db.create_view("made", PAIRS)
    assert () == db.views


def test_of_two_views_of_one_name_the_first_that_is_planned_is_made(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_planning(monkeypatch, lambda: db.create_view("made", "Q(A, B) = R(A, B)"))
    with pytest.raises(SchemaError, match="already a view named made"):
        db.create_view("made", PAIRS)
    assert [(1, 2)] == list(db.view("made"))


def test_another_view_of_the_same_maps_that_comes_meanwhile_shares_them(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_planning(monkeypatch, lambda: db.create_view("other", PAIRS, strategy="view-tree"))
    made = db.create_view("made", PAIRS, strategy="view-tree")
    db.insert("R", [(5, 2)])
    assert sorted(db.view("other")) == sorted(made) == [(1, 3), (5, 3)]
    assert set(made.stats()["maps"]) == set(db.view("other").stats()["maps"])


def test_a_ring_view_is_planned_without_the_lock(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    while_planning(monkeypatch, lambda: db.insert("R", [(7, 2)]))
    made = db.create_ring_view("made", "Q(A) = R(A, B)", Covariance("B"))
    assert 2 == len(list(made.items()))


@pytest.mark.parametrize("late", [False, True])
def test_a_view_that_is_cancelled_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """While it is planned, and when it has been filled and is about to be stored."""
    cancellation = Cancellation()
    with ivme.Database(tmp_path) as db:
        db.create_table("R", {"a": "int", "b": "int"})
        db.create_table("S", {"b": "int", "c": "int"})
        db.insert("R", [(1, 2)])
        before = db.entries(), (tmp_path / "database.json").read_bytes(), db.definitions.store.log.size  # type: ignore[union-attr]
        if late:
            real = db._runtime.installation.add_view

            def filled(*given: Any, **options: Any) -> Any:
                made = real(*given, **options)
                cancellation.cancel()
                return made

            monkeypatch.setattr(db._runtime.installation, "add_view", filled)
        else:
            while_planning(monkeypatch, cancellation.cancel)
        with cancellable(cancellation), pytest.raises(CancelledError):
            db.create_view("made", PAIRS)
        monkeypatch.undo()
        assert () == db.views
        assert before == (db.entries(), (tmp_path / "database.json").read_bytes(), db.definitions.store.log.size)  # type: ignore[union-attr]
        db.insert("S", [(2, 3)])
        assert [(1, 3)] == list(db.create_view("made", PAIRS))
    with ivme.Database(tmp_path) as db:
        assert ("made",) == db.views


def test_an_interrupt_ends_planning_and_leaves_nothing_behind(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("ivme.structure.width.spend", interrupted)
    with pytest.raises(KeyboardInterrupt):
        db.create_view("made", PAIRS)
    monkeypatch.undo()
    assert () == db.views
    assert [(1, 3)] == list(db.create_view("made", PAIRS))


def test_statistics_of_a_view_assemble_and_plan_nothing(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    triangle = "Q(. | .) = R(A, B), S(B, C), R(C, A)"
    views = [db.create_view("pairs", PAIRS), db.create_view("triangle", triangle, strategy="skew", epsilon=0.5)]

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("something is planned again")

    monkeypatch.setattr(assembled, "group_assembly", never)
    monkeypatch.setattr(planning, "choose", never)
    for view in views:
        assert view.stats()["maps"]
        assert view.explain().strategy == view.stats()["strategy"]


def test_a_view_that_is_refused_leaves_nothing_behind(db: Database) -> None:
    before = db.entries()
    with pytest.raises(PlanError):
        db.create_view("made", PAIRS, strategy="skew", rebalance="deamortised")
    assert (before, ()) == (db.entries(), db.views)
