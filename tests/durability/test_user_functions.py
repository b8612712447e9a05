"""Directories whose views call users' functions: code is not stored, and views wait until it is there again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.definitions.user_functions import UserFunction
from ivme.errors import BrokenViewError, PlanError, SchemaError
from tests.durability.directories import crash

CALLS: list[Any] = []


def doubled(n: int) -> int:
    CALLS.append(n)
    return n * 2


DOUBLED = UserFunction("doubled", doubled, ["int"], "int")
VIEWS = {
    "v": "SELECT doubled(a) AS x, COUNT(*) AS n FROM R GROUP BY doubled(a)",
    "plain": "SELECT a FROM R",
    "above": "SELECT x FROM v WHERE n > 1",
    "blocks": "SELECT a FROM R WHERE NOT EXISTS (SELECT 1 FROM R other WHERE other.a = doubled(R.a))",
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with Database(tmp_path, functions=[DOUBLED]) as db:
        db.create_table("R", {"a": "int"})
        for name, text in VIEWS.items():
            db.create_view(name, text)
        db.insert("R", [(1,), (2,), (2,), (None,)])
    return tmp_path


def _rows(db: Database) -> dict[str, dict[Any, int]]:
    return {name: dict(db.view(name).items()) for name in sorted(db.views)}


def _expected(values: list[int | None]) -> dict[str, dict[Any, int]]:
    counts = {each: values.count(each) for each in values}
    twice = {n: None if n is None else n * 2 for n in counts}
    return {
        "above": {(twice[n],): 1 for n, count in counts.items() if count > 1},
        "blocks": {(n,): count for n, count in counts.items() if twice[n] is None or twice[n] not in counts},
        "plain": {(n,): count for n, count in counts.items()},
        "v": {(twice[n], count): 1 for n, count in counts.items()},
    }


def test_views_wait_for_their_functions_and_the_rest_is_there(directory: Path) -> None:
    with Database(directory) as db:
        assert db.views == ("plain",)
        assert set(db.broken_views) == {"v", "above", "blocks"}
        assert "waits for the function doubled(int) -> int" in db.broken_views["v"]
        with pytest.raises(BrokenViewError, match=r"db\.create_function"):
            db.view("v")
        with pytest.raises(BrokenViewError, match="waits for the function"):
            db.rebuild_view("v")
        db.insert("R", [(4,)])
    with Database(directory) as db:
        db.create_function("doubled", doubled, arguments=["int"], returns="int")
        assert not db.broken_views
        assert _rows(db) == _expected([1, 2, 2, None, 4])
        db.insert("R", [(8,)])
        for name in db.views:
            db.view(name).verify()


def test_functions_given_at_opening_resume_views_without_calls(directory: Path) -> None:
    with Database(directory, functions=[DOUBLED]) as db:
        db.checkpoint()
    CALLS.clear()
    with Database(directory, functions=[DOUBLED]) as db:
        assert CALLS == []
        assert _rows(db) == _expected([1, 2, 2, None])


def test_the_log_is_replayed_after_a_crash(directory: Path) -> None:
    db = Database(directory, functions=[DOUBLED])
    db.checkpoint()
    db.insert("R", [(4,), (8,)])
    db.delete("R", [(2,)])
    crash(db)
    with Database(directory, functions=[DOUBLED]) as db:
        assert _rows(db) == _expected([1, 2, None, 4, 8])
        for name in db.views:
            db.view(name).verify()


def test_a_crash_while_views_wait_loses_nothing(directory: Path) -> None:
    db = Database(directory)
    db.insert("R", [(4,)])
    db.checkpoint()
    db.insert("R", [(4,)])
    crash(db)
    with Database(directory, functions=[DOUBLED]) as db:
        assert _rows(db) == _expected([1, 2, 2, None, 4, 4])


def test_another_signature_is_refused(directory: Path) -> None:
    with Database(directory) as db:
        for arguments, returns, nulls in ((["int"], "float", False), (["float"], "int", False), (["int"], "int", True)):
            with pytest.raises(SchemaError, match=r"needs the function doubled\(int\) -> int, and this one is"):
                db.create_function("doubled", doubled, arguments=arguments, returns=returns, called_with_null=nulls)
        assert db.functions == {}
    with Database(directory, functions=[UserFunction("doubled", doubled, ["int"], "float")]) as db:
        assert "needs the function doubled(int) -> int, but the one in this database" in db.broken_views["v"]
        db.drop_function("doubled")
        db.create_function("doubled", doubled, arguments=["int"], returns="int")
        assert not db.broken_views
        with pytest.raises(PlanError, match="view v calls the function doubled"):
            db.drop_function("doubled")


def test_a_function_that_now_fails_breaks_its_views_only(directory: Path) -> None:
    def fails(_: int) -> int:
        raise RuntimeError("gone")

    with Database(directory) as db:
        db.create_function("doubled", fails, arguments=["int"], returns="int")
        assert db.views == ("plain",)
        assert "RuntimeError" in db.broken_views["v"]
    with Database(directory, functions=[DOUBLED]) as db:
        assert not db.broken_views


def test_nothing_of_the_code_is_in_the_directory(directory: Path) -> None:
    written = b"".join(file.read_bytes() for file in directory.rglob("*") if file.is_file())
    assert b'"functions":[{"name":"doubled","arguments":["int"],"returns":"int"}]' in written
    assert b"pickle" not in written
    assert b"test_user_functions" not in written


def test_dropping_the_views_frees_the_function(directory: Path) -> None:
    with Database(directory, functions=[DOUBLED]) as db:
        with pytest.raises(PlanError, match="calls the function doubled; drop the view first"):
            db.drop_function("Doubled")
        for name in ("above", "v", "blocks"):
            db.drop_view(name)
        db.drop_function("Doubled")
        assert db.functions == {}
    with Database(directory) as db:
        assert not db.broken_views


def test_a_table_that_a_waiting_view_reads_stays(directory: Path) -> None:
    with Database(directory) as db:
        db.drop_view("plain")
        with pytest.raises(PlanError, match="cannot drop table R: v, blocks need it"):
            db.drop_table("R")
    with Database(directory, functions=[DOUBLED]) as db:
        assert not db.broken_views
