"""Checks of rows for which an expression fails, after a directory was opened again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ivme.compile import Request, compile_view
from ivme.database import Database
from ivme.errors import ExpressionError
from ivme.plan import plan_text
from tests.databases import rows_of

QUOTIENTS = "SELECT a.k, a.x / a.y AS q FROM a JOIN b ON a.k = b.k WHERE b.ok"


def made(path: Path, *, checkpoint: bool) -> None:
    with Database(path) as db:
        db.create_table("a", {"k": "int", "x": "int", "y": "int"})
        db.create_table("b", {"k": "int", "ok": "bool"})
        db.create_view("v", QUOTIENTS)
        db.create_view("hidden", "SELECT a.x % a.y AS q FROM a JOIN b ON a.k = b.k WHERE b.ok", strategy="skew")
        db.insert("a", [(1, 6, 2), (2, 5, 0)])
        if checkpoint:
            db.checkpoint()
        db.insert("a", [(3, 7, 0)])
        db.insert("b", [(1, True), (2, False)])


@pytest.mark.parametrize("checkpoint", [False, True])
def test_checks_go_on_after_opening(tmp_path: Path, checkpoint: bool) -> None:
    made(tmp_path, checkpoint=checkpoint)
    for _ in range(2):
        with Database(tmp_path) as db:
            assert ("v", "hidden") == db.views
            assert [(1, 3.0)] == rows_of(db.view("v"))
            for key, row in ((2, r"\(2, 5, 0\)"), (3, r"\(3, 7, 0\)")):
                with pytest.raises(ExpressionError, match=rf"view v: x / y fails for the row {row} of table a"):
                    db.insert("b", [(key, True)])
            db.drop_view("v")
            with pytest.raises(ExpressionError, match=r"view hidden: x % y fails for the row \(2, 5, 0\)"):
                db.insert("b", [(2, True)])
            db.create_view("v", QUOTIENTS)
            db.drop_view("hidden")
            db.create_view("hidden", "SELECT a.x % a.y AS q FROM a JOIN b ON a.k = b.k WHERE b.ok", strategy="skew")
            if checkpoint:
                db.checkpoint()


def test_the_check_is_stored_with_the_plan(tmp_path: Path) -> None:
    made(tmp_path, checkpoint=True)
    with Database(tmp_path) as db:
        request = Request(
            QUOTIENTS, db.definitions.relations(), {}, "w", db.definitions.runtime.installation.installed()
        )
        planned = compile_view(request)
        again = compile_view(replace(request, plan=planned.text()))
        assert not again.is_new
        assert planned.plan is not None
        assert again.plan is not None
        assert 1 == len(planned.plan.checks)
        assert planned.plan.checks == again.plan.checks


def test_a_view_that_was_planned_without_checks_is_planned_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(plan_text, "PLANNER_VERSION", 1)
        before.setattr("ivme.planning.failing_joins", lambda _: ())
        before.setattr("ivme.compile.without_failures", lambda query: query)
        with Database(tmp_path) as db:
            db.create_table("a", {"k": "int", "x": "int", "y": "int"})
            db.create_table("b", {"k": "int", "ok": "bool"})
            db.create_view("v", QUOTIENTS)
            db.insert("a", [(1, 6, 2)])
            with pytest.raises(ExpressionError, match="x / y fails"):
                db.insert("a", [(2, 5, 0)])
    with Database(tmp_path) as db:
        db.insert("a", [(2, 5, 0)])
        db.insert("b", [(1, True)])
        assert [(1, 3.0)] == rows_of(db.view("v"))
