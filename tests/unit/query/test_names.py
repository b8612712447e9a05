"""Names of tables, columns, views and parameters: what cannot be one is refused where it is made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ivme
from ivme.closure.ies import relation
from ivme.database import Database
from ivme.errors import IvmeError, PlanError, SchemaError
from ivme.query.ddl import parse_create_tables
from ivme.query.names import check_name

WRONG = {
    "surrogate": "a\ud800",
    "line": "a\nb",
    "nul": "a\0b",
    "delete": "\x7f",
    "separator": "\u2028",
    "long": "a" * 256,
}
RIGHT = ["a", "a" * 255, "Zürich", "有", "with space", "👋", "e\u0301", "\u00e9", "a.b", "SELECT"]


def wrong(make: Callable[[Database, str], Any]) -> None:
    for name in WRONG.values():
        with Database() as db:
            db.create_table("R", {"a": "int", "b": "int"})
            with pytest.raises(IvmeError, match=r"name|surrogate"):
                make(db, name)
            assert (("R",), ()) == (db.tables, db.views)


@pytest.mark.parametrize("name", RIGHT)
def test_other_names_are_taken_as_they_are_given(name: str) -> None:
    with Database() as db:
        db.create_table(name, {name: "int"})
        db.create_view("v", f'Q("{name}") = "{name}"("{name}")')
        db.insert(name, [(1,)])
        assert ((name,), (name,)) == (db.tables, db.view("v").columns)
        db.view("v").verify()


def test_names_that_only_look_the_same_are_different() -> None:
    with Database() as db:
        db.create_table("R", {"e\u0301": "int", "\u00e9": "int"})
        db.create_table("e\u0301", {"a": "int"})
        db.create_table("\u00e9", {"a": "int"})


@pytest.mark.parametrize("name", ["", None, 1, b"a", 10**5000], ids=lambda name: type(name).__name__)
def test_a_name_is_a_string_that_is_not_empty(name: Any) -> None:
    with pytest.raises(SchemaError, match="needs a name"):
        check_name(name, "a table")
    with Database() as db, pytest.raises(SchemaError, match="needs a name"):
        db.create_table(name, {"a": "int"})


def test_a_table_is_refused() -> None:
    wrong(lambda db, name: db.create_table(name, {"a": "int"}))


def test_a_column_is_refused() -> None:
    wrong(lambda db, name: db.create_table("S", {"a": "int", name: "int"}))


def test_a_view_is_refused() -> None:
    wrong(lambda db, name: db.create_view(name, "SELECT a FROM R"))


def test_a_ring_view_is_refused() -> None:
    wrong(lambda db, name: db.create_ring_view(name, "Q(A) = R(A, B)", None))  # type: ignore[arg-type]


def test_a_column_of_a_view_is_refused() -> None:
    wrong(lambda db, name: db.create_view("v", f"SELECT a AS `{name}` FROM R"))
    wrong(lambda db, name: db.create_view("v", f'Q("{name}") = R("{name}", B)'))


def test_a_parameter_of_a_view_is_refused() -> None:
    wrong(lambda db, name: db.create_view("v", f'Q(B | "{name}") = R("{name}", B)'))


def test_a_declared_table_of_a_query_is_refused() -> None:
    wrong(lambda _, name: ivme.explain("Q(A) = R(A)", {name: ["a"], "R": ["a"]}))
    wrong(lambda _, name: ivme.explain("Q(A) = R(A)", {"R": [name]}))


def test_a_table_of_a_statement_is_refused() -> None:
    wrong(lambda _, name: parse_create_tables(f"CREATE TABLE `{name}` (a BIGINT)"))
    wrong(lambda _, name: parse_create_tables(f"CREATE TABLE t (`{name}` BIGINT)"))


def test_a_table_of_an_incremental_evaluation_system_is_refused() -> None:
    wrong(lambda _, name: relation(name, {"a": "int"}))
    wrong(lambda _, name: relation("t", {name: "int"}))


def test_a_source_with_a_lone_surrogate_is_refused() -> None:
    with Database() as db, pytest.raises(IvmeError, match="lone surrogate"):
        db.batch("\ud800", 1)


@pytest.mark.parametrize(
    "text", ["SELECT a FROM R WHERE s = '\ud800'", "Q(A) = R(A, '\ud800')", "\ud800", "-- \udfff\nSELECT a FROM R"]
)
def test_a_query_with_a_lone_surrogate_is_refused_with_its_place(text: str) -> None:
    with Database() as db:
        db.create_table("R", {"a": "int", "s": "string"})
        with pytest.raises(IvmeError, match=r"lone surrogate, .* at character"):
            db.create_view("v", text)


@pytest.mark.parametrize("name", ["ring", "tables", "options", "\ud800"], ids=ascii)
def test_an_option_that_is_none_is_refused_whatever_its_name(name: str) -> None:
    with Database() as db:
        db.create_table("R", {"a": "int"})
        with pytest.raises(PlanError, match="there is no option"):
            db.create_view("v", "SELECT a FROM R", **{name: 1})


def test_a_directory_with_older_names_still_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As older versions made it: nothing was checked."""
    with monkeypatch.context() as patch:
        names = (
            "ivme.definitions.definitions.check_name",
            "ivme.definitions.definitions.check_table",
            "ivme.compile.check_head",
        )
        for place in names:
            patch.setattr(place, lambda *_: None)
        for place in ("ivme.query.parse.check_text", "ivme.compile.check_text"):
            patch.setattr(place, lambda _: None)
        with Database(tmp_path) as db:
            db.create_table("R\n", {"a": "int", "b\x01": "int"})
            db.create_view("v\ud800", 'Q("x\n") = "R\n"("x\n", B)')
            db.create_view("w", 'Q(B | "x\ud800") = "R\n"("x\ud800", B)')
            db.insert("R\n", [(1, 2)])
    with Database(tmp_path) as db:
        assert (("R\n",), ("v\ud800", "w")) == (db.tables, db.views)
        assert [(1,)] == list(db.view("v\ud800"))
        db.create_table("S", {"a": "int"})
        json.dumps(db.views)
        with pytest.raises(SchemaError):
            db.create_table("S\n", {"a": "int"})
