"""Plans are stored with their views: opening a directory plans only what it must."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ivme import planning
from ivme.database import Database
from ivme.errors import PlanError
from ivme.plan import plan_text
from ivme.planning import plan_query
from ivme.store.files import read_sealed, write_sealed
from tests.durability.directories import crash

VIEWS: dict[str, tuple[str, dict[str, Any]]] = {
    "pairs": ("Q(A, C) = R(A, B), S(B, C)", {}),
    "triangles": ("Q(. | .) = R(A, B), S(B, C), R(C, A)", {"epsilon": 0.5}),
    "ends": ("SELECT a, MIN(b) AS first, COUNT(*) AS n FROM R WHERE b <> 1.5 AND a IN (1, 2) GROUP BY a", {}),
    "marked": ("Q(A, B, C) = R(A, B), S(B, C)", {"strategy": "marks", "semantics": "set"}),
    "reached": ("Q(X, Y) = closure(R)", {}),
    "reached_pairs": ("Q(X, C) = closure(R)(X, Y), S(Y, C)", {}),
    "above": ("SELECT n, COUNT(*) AS ends FROM ends GROUP BY n", {}),
}


def made(path: Path) -> Database:
    db = Database(path)
    db.create_table("R", {"a": "int", "b": "int"})
    db.create_table("S", {"b": "int", "c": "int"})
    for name, (query, options) in VIEWS.items():
        db.create_view(name, query, **options)
    db.insert("R", [(1, 2), (2, 1), (2, 3)])
    db.insert("S", [(2, 3), (1, 1)])
    return db


def state_of(db: Database) -> dict[str, Any]:
    return {name: (sorted(db.view(name)), str(db.view(name).explain())) for name in db.views}


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("a view is planned again")


@pytest.mark.parametrize("end", [Database.close, crash, lambda db: (db.checkpoint(), db.close())])
def test_opening_a_directory_plans_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: Callable[[Database], Any]
) -> None:
    db = made(tmp_path)
    before = state_of(db)
    end(db)
    monkeypatch.setattr(planning, "plan_query", never)
    with Database(tmp_path) as db:
        assert before == state_of(db)
        db.insert("R", [(3, 2)])
        for name in db.views:
            db.view(name).verify()


def test_views_are_planned_again_when_the_planner_has_changed_and_the_new_plans_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path).close()
    monkeypatch.setattr(plan_text, "PLANNER_VERSION", plan_text.PLANNER_VERSION + 1)
    planned: list[str] = []

    def counted(query: Any, *given: Any) -> Any:
        planned.append(query.name)
        return plan_query(query, *given)

    monkeypatch.setattr(planning, "plan_query", counted)
    with Database(tmp_path) as db:
        assert [name for name in VIEWS if name != "reached"] == planned, "a closure has no plan"
        db.checkpoint()
    monkeypatch.setattr(planning, "plan_query", never)
    Database(tmp_path).close()


@pytest.mark.parametrize("fails", [True, False])
def test_the_stored_plan_serves_where_a_changed_planner_finds_none_in_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fails: bool
) -> None:
    db = made(tmp_path)
    before = state_of(db)
    db.close()
    monkeypatch.setattr(plan_text, "PLANNER_VERSION", plan_text.PLANNER_VERSION + 1)

    def poor(*given: Any) -> Any:
        if fails:
            raise PlanError("no plan was found in time")
        from dataclasses import replace

        explanation, plan = plan_query(*given)
        return replace(explanation, cut=True, reason="cut"), plan

    monkeypatch.setattr(planning, "plan_query", poor)
    with caplog.at_level(logging.WARNING, "ivme.planning"), Database(tmp_path) as db:
        assert before == state_of(db)
    assert "view pairs keeps the plan that it was stored with" in caplog.text


def changed_manifest(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Rewrites what a snapshot says of each view."""
    content = read_sealed(path / "database.json")
    for view in content["views"]:
        change(view)
    write_sealed(path / "database.json", content)


def test_a_directory_without_stored_plans_opens_and_stores_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = made(tmp_path)
    before = state_of(db)
    db.checkpoint()
    db.close()
    changed_manifest(tmp_path, lambda view: view.pop("plan"))
    with Database(tmp_path) as db:
        assert before == state_of(db)
        db.checkpoint()
    monkeypatch.setattr(planning, "plan_query", never)
    with Database(tmp_path) as db:
        assert before == state_of(db)


@pytest.mark.parametrize("plan", ["", "AAAA", "eJwDAAAAAAE="])
def test_a_view_whose_stored_plan_cannot_be_read_is_planned_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, plan: str
) -> None:
    db = made(tmp_path)
    before = state_of(db)
    db.checkpoint()
    db.close()
    changed_manifest(tmp_path, lambda view: view.update(plan=plan))
    with caplog.at_level(logging.WARNING, "ivme.planning"), Database(tmp_path) as db:
        assert before == state_of(db)
    assert "view pairs is planned again" in caplog.text


def test_a_stored_plan_of_another_query_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    db = made(tmp_path)
    before = state_of(db)
    db.checkpoint()
    db.close()
    other = next(v["plan"] for v in read_sealed(tmp_path / "database.json")["views"] if v["name"] == "triangles")
    changed_manifest(tmp_path, lambda view: view.update(plan=other))
    with caplog.at_level(logging.INFO, "ivme.planning"), Database(tmp_path) as db:
        assert before == state_of(db)
    assert "its tables have changed since its plan was stored" in caplog.text


def test_stored_plans_are_small(tmp_path: Path) -> None:
    db = made(tmp_path)
    db.checkpoint()
    db.close()
    for view in read_sealed(tmp_path / "database.json")["views"]:
        assert len(json.dumps(view)) < 40_000, view["name"]
