"""One view that cannot be built does not keep a directory from opening: the rest is there, and it is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from ivme.cli import app
from ivme.database import Database
from ivme.engine.runtime.installation import Installation
from ivme.engine.runtime.runtime import Runtime
from ivme.errors import BrokenViewError, DataError, PlanError, SchemaError, UnknownNameError
from tests.durability.directories import bag, crash
from tests.serve.running import serving

SUMS = "SELECT a, SUM(b) AS total FROM R GROUP BY a"


def made(path: Path, *, checkpoint: bool = False) -> None:
    """Two views that work, one that a newer version would refuse, and two that are built on it."""
    with Database(path) as db:
        db.create_table("R", {"a": "int", "b": "int"})
        db.create_view("works", SUMS)
        db.create_view("odd", SUMS)
        db.create_view("on_odd", "SELECT COUNT(*) AS n FROM odd")
        db.create_view("on_that", "Q(N) = on_odd(N)")
        db.create_view("on_works", "SELECT COUNT(*) AS n FROM works")
        db.insert("R", [(1, 2), (1, 3), (2, 4)])
        if checkpoint:
            db.checkpoint()
        db.insert("R", [(9, 9)])


def check_broken(db: Database) -> None:
    assert ("works", "on_works") == db.views
    assert ["odd", "on_odd", "on_that"] == list(db.broken_views)
    assert "ZeroDivisionError: the planner is odd today" == db.broken_views["odd"]
    for name in ("on_odd", "on_that"):
        assert "it reads view odd, which is broken: ZeroDivisionError: the planner is odd" in db.broken_views[name]
    for name in db.views:
        db.view(name).verify()


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_directory_with_a_broken_view_opens_writes_and_keeps_its_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: bool
) -> None:
    made(tmp_path, checkpoint=checkpoint)
    mend = breaking(monkeypatch)
    with Database(tmp_path) as db:
        check_broken(db)
        for use in (db.view, db.contents):
            with pytest.raises(BrokenViewError, match=r"view odd is broken.*odd today; db\.rebuild_view\('odd'\)"):
                use("ODD")
        with pytest.raises(BrokenViewError, match="odd today"):
            db.create_view("late", "SELECT total FROM odd")
        with pytest.raises(SchemaError, match="already a broken view named Odd"):
            db.create_table("Odd", {"a": "int"})
        with pytest.raises(ZeroDivisionError):
            db.rebuild_view("odd")
        check_broken_names(db)
        db.insert("R", [(3, 5)])
        db.checkpoint()
        db.insert("R", [(3, 6)])
    with Database(tmp_path) as db:
        check_broken_names(db)
        assert [(1, 5), (2, 4), (3, 11), (9, 9)] == sorted(db.view("works"))
        mend()
        assert [(1, 5), (2, 4), (3, 11), (9, 9)] == sorted(db.rebuild_view("odd"))
        assert {} == db.broken_views
        assert [(4,)] == list(db.view("on_that"))
        db.insert("R", [(4, 1)])
        assert [(5,)] == list(db.view("on_that"))
        with pytest.raises(UnknownNameError, match="there is no broken view odd"):
            db.rebuild_view("odd")
        crash(db)
    with Database(tmp_path) as db:
        assert {"works", "odd", "on_odd", "on_that", "on_works"} == set(db.views)
        for name in db.views:
            db.view(name).verify()


def breaking(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes the view `odd` fail when it is built; returns how to mend that."""
    add_view = Installation.add_view

    def failing(self: Installation, name: str, *arguments: Any, **options: Any) -> Any:
        if name == "odd":
            raise ZeroDivisionError("the planner is odd today")
        return add_view(self, name, *arguments, **options)

    monkeypatch.setattr(Installation, "add_view", failing)
    return lambda: monkeypatch.setattr(Installation, "add_view", add_view)


def check_broken_names(db: Database) -> None:
    assert {"odd", "on_odd", "on_that"} == set(db.broken_views)
    assert {"works", "on_works"} == set(db.views)


def test_opening_again_tries_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path)
    with monkeypatch.context() as patch:
        breaking(patch)
        Database(tmp_path).close()
    with Database(tmp_path) as db:
        assert {} == db.broken_views
        assert [(3,)] == list(db.view("on_that"))


def test_a_broken_view_can_be_dropped_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path)
    mend = breaking(monkeypatch)
    with Database(tmp_path) as db:
        for name in ("on_that", "on_odd", "odd"):
            db.drop_view(name)
        assert {} == db.broken_views
        mend()
        db.create_view("odd", "SELECT COUNT(*) AS n FROM R")
    with Database(tmp_path) as db:
        assert (("works", "on_works", "odd"), {}) == (db.views, db.broken_views)
        assert [(4,)] == list(db.view("odd"))


@pytest.mark.parametrize(
    ("query", "options", "reason"),
    [
        ("SELECT a, SKEWNESS(b) AS m FROM R GROUP BY a", {}, "SKEWNESS"),
        (SUMS, {"strategy": "of a newer version"}, "of a newer version"),
        (SUMS, {"epsilon": {"quaternion": "1"}}, "KeyError: 'quaternion'"),
    ],
)
def test_a_view_that_another_version_wrote_and_this_one_refuses_is_broken(
    tmp_path: Path, query: str, options: dict[str, Any], reason: str
) -> None:
    made(tmp_path)
    with Database(tmp_path) as db:
        assert db.definitions.store is not None
        record = {"name": "newer", "query": query, "options": options}
        db.definitions.store.log.append({"create_view": record})
    with Database(tmp_path) as db:
        assert reason in db.broken_views["newer"]
        assert 5 == len(db.views)
        db.checkpoint()
    with Database(tmp_path) as db:
        assert reason in db.broken_views["newer"]
        db.drop_view("newer")
    with Database(tmp_path) as db:
        assert {} == db.broken_views


def test_views_that_cannot_take_the_log_at_once_are_built_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Database(tmp_path) as db:
        db.create_table("R", {"a": "int", "b": "int"})
        db.create_view("works", SUMS)
        db.create_view("on_works", "SELECT COUNT(*) AS n FROM works")
        db.insert("R", [(n, n) for n in range(500)])
        db.checkpoint()
        db.insert("R", [(1, 1)])
    transact = Runtime.transact

    def refused(self: Runtime, batch: Any, *arguments: Any) -> Any:
        if self.catalog.views and batch:
            raise DataError("a sum does not fit")
        return transact(self, batch, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Runtime, "transact", refused)
        db = Database(tmp_path)
    with db:
        assert "cannot take the changes of the log" in caplog.text
        assert (("works", "on_works"), {}) == (db.views, db.broken_views)
        assert 501 == bag(db, "R").total()
        for name in db.views:
            db.view(name).verify()


def test_the_commands_name_a_broken_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path)
    breaking(monkeypatch)

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, [*arguments, str(tmp_path)], env={"COLUMNS": "200"})
        return result.exit_code, result.output

    code, shown = run("show")
    assert code == 0
    assert "broken view" in shown
    assert "the planner is odd today" in shown
    code, verified = run("verify")
    assert code == 2
    assert "view works is what its query gives" in verified
    assert "view odd is broken: ZeroDivisionError: the planner is odd today" in verified
    for form in ((), ("--json",)):
        code, explained = run("explain", *form)
        assert code == 0
        assert "the planner is odd today" in explained


def test_a_server_lists_a_broken_view_and_serves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path)
    breaking(monkeypatch)
    with Database(tmp_path) as db, serving(db) as address, httpx.Client(base_url=address, timeout=30) as client:
        listed = {view["name"]: view.get("broken") for view in client.get("/views").json()}
        assert {"works", "on_works", "odd", "on_odd", "on_that"} == set(listed)
        assert "ZeroDivisionError: the planner is odd today" == listed["odd"]
        assert {"odd", "on_odd", "on_that"} == {view["name"] for view in client.get("/stats").json()["broken_views"]}
        for path in ("/views/odd", "/views/odd/changes", "/views/odd/stats", "/views/odd/explain"):
            refused = client.get(path)
            assert (503, True) == (refused.status_code, "odd today" in refused.json()["error"]), path
        assert 200 == client.get("/openapi.json").status_code
        assert 200 == client.get("/metrics").status_code
        assert [[1, 5], [2, 4], [9, 9]] == sorted(client.get("/views/works").json()["rows"])
        written = client.post("/tables/R/changes", json={"insert": [[5, 5]]})
        assert 200 == written.status_code
        assert 503 == client.post("/views", json={"name": "late", "query": "SELECT total FROM odd"}).status_code


def test_a_view_in_memory_is_never_broken() -> None:
    with Database() as db:
        db.create_table("R", {"a": "int"})
        with pytest.raises(PlanError):
            db.create_view("v", "Q(A) = R(A)", strategy="nonsense")
        assert {} == db.broken_views
        with pytest.raises(UnknownNameError, match="there is no broken view v"):
            db.rebuild_view("v")
