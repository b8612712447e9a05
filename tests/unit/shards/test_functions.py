"""Users' functions over shards: named by module and function, imported only where that is allowed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ivme import Database
from ivme.errors import DataError, PlanError, SchemaError, UnknownNameError
from ivme.shards import functions as named
from ivme.shards.database import ShardedDatabase
from tests import pure_functions
from tests.sharded_databases import hosted_database, local_database

VIEWS = {
    "by_slug": "SELECT slug(title) AS slug, SUM(views) AS n FROM page GROUP BY slug(title)",
    "of": "SELECT views FROM page WHERE slug(title) = :slug",
    "top": "SELECT slug(title) AS s, views FROM page ORDER BY views DESC, s LIMIT 2",
    "above": "SELECT slug AS s, n FROM by_slug WHERE known(slug) AND slug(slug) <> 'new'",
}
FIRST = [("Hello World", 3), ("hello  world", 4), (None, 1), ("New", 0)]


def _fill(db: Any) -> None:
    db.create_table("page", {"title": "string", "views": "int"})
    db.insert("page", FIRST)
    db.create_function("slug", "tests.pure_functions:slug", arguments=["string"], returns="string")
    db.create_function("known", pure_functions.known, arguments=["string"], returns="bool", called_with_null=True)
    for name, text in VIEWS.items():
        db.create_view(name, text)


def _same(db: ShardedDatabase, embedded: Database) -> None:
    for name in VIEWS:
        request = {"slug": "hello-world"} if name == "of" else {}
        assert Counter(embedded.view(name)(**request)) == Counter(db.view(name)(**request)), name


def test_views_that_call_functions_have_the_rows_of_an_embedded_database(tmp_path: Path) -> None:
    with local_database(tmp_path, 2) as db, Database() as embedded:
        for each in (db, embedded):
            _fill(each)
        _same(db, embedded)
        for change in ("insert", "delete"):
            for each in (db, embedded):
                getattr(each, change)("page", [("HELLO World", 7), ("Old", 2), (None, 5)])
            _same(db, embedded)
        assert db.functions == embedded.functions
        for name in ("by_slug", "above"):
            db.view(name).verify()
    with local_database(tmp_path, 2) as db:
        db.insert("page", [("Later", 9)])
        assert ("later", 9) in list(db.view("by_slug"))


def test_hosts_import_a_function_of_a_module_that_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(named.VARIABLE, "tests.pure_functions")
    with hosted_database(tmp_path, 2) as db:
        db.create_table("page", {"title": "string"})
        db.create_function("slug", pure_functions.slug, arguments=["string"], returns="string")
        view = db.create_view("slugs", "SELECT slug(title) AS s, COUNT(*) AS n FROM page GROUP BY slug(title)")
        db.insert("page", [("Hello  World",), ("hello world",), (None,)])
        assert Counter([("hello-world", 2), (None, 1)]) == Counter(view)


def test_hosts_import_nothing_that_is_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(named.VARIABLE, raising=False)
    with hosted_database(tmp_path, 2) as db:
        with pytest.raises(SchemaError, match=r"may not import tests\.pure_functions: list the module"):
            db.create_function("slug", pure_functions.slug, arguments=["string"], returns="string")
        assert db.functions == {}


def test_a_log_names_no_function_that_this_process_was_not_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(named.VARIABLE, raising=False)
    monkeypatch.setattr(named, "_GIVEN", set())
    planted = named.NamedFunction("run", "os:system", ("string",), "int")
    with pytest.raises(SchemaError, match="may not import os"):
        planted.user_function()


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda text: text, "cannot be imported by the processes of shards"),
        ("tests.pure_functions:absent", "cannot be imported from"),
        ("tests.absent:slug", "cannot be imported from"),
        (named.NamedFunction.to_json, "must be a list of types"),
    ],
)
def test_what_other_processes_cannot_import_is_refused(tmp_path: Path, function: Any, reason: str) -> None:
    arguments: Any = "string" if "list" in reason else ["string"]
    with local_database(tmp_path) as db:
        if "list" in reason:
            with pytest.raises(SchemaError):
                db.create_function("f", function, arguments=arguments, returns="string")
            return
        with pytest.raises(SchemaError, match=reason):
            db.create_function("f", function, arguments=arguments, returns="string")


def test_a_function_that_fails_refuses_the_batch(tmp_path: Path) -> None:
    with local_database(tmp_path) as db:
        db.create_table("r", {"total": "int", "parts": "int"})
        db.create_function("per", pure_functions.per, arguments=["int", "int"], returns="int")
        shares = db.create_view("shares", "SELECT per(total, parts) AS share FROM r")
        db.insert("r", [(6, 2)])
        with pytest.raises(DataError, match="ZeroDivisionError"):
            db.insert("r", [(8, 4), (1, 0)])
        assert [(3,)] == list(shares)


def test_a_function_is_dropped_when_no_view_calls_it(tmp_path: Path) -> None:
    with local_database(tmp_path) as db:
        db.create_table("page", {"title": "string"})
        db.create_function("slug", pure_functions.slug, arguments=["string"], returns="string")
        db.create_function("known", pure_functions.known, arguments=["string"], returns="bool", called_with_null=True)
        db.create_view("slugs", "SELECT slug(title) AS s FROM page")
        with pytest.raises(SchemaError, match="there is a function SLUG already"):
            db.create_function("SLUG", pure_functions.slug, arguments=["string"], returns="string")
        with pytest.raises(PlanError, match="view slugs calls the function slug"):
            db.drop_function("slug")
        db.drop_view("slugs")
        db.drop_function("Slug")
        assert ["known"] == list(db.functions)
        with pytest.raises(UnknownNameError, match="there is no function 'slug'; there are: known"):
            db.drop_function("slug")
