"""What may be a function of a user's: its name, its types, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.definitions.user_functions import Signature, UserFunction, read_signature
from ivme.errors import IvmeError, SchemaError, UnknownNameError
from ivme.query.types import Type


@pytest.mark.parametrize("name", ["upper", "SUM", "regexp", "count_if", "soundex", "select", "rand", "current_date"])
def test_names_of_sql_are_refused(name: str) -> None:
    with pytest.raises(SchemaError, match="choose another name"):
        UserFunction(name, len, ["string"], "int").definition()


@pytest.mark.parametrize("name", ["", "a b", "1st", "x;y", "é", 3])
def test_what_is_no_name_is_refused(name: Any) -> None:
    with pytest.raises(SchemaError):
        UserFunction(name, len, ["string"], "int").definition()


@pytest.mark.parametrize("name", ["add", "eq", "fails", "my_cast_int", "order_key", "_x"])
def test_names_that_only_ivme_has_inside_are_free(name: str) -> None:
    db = Database()
    db.create_table("R", {"a": "int"})
    db.create_function(name, lambda a: a + 1, arguments=["int"], returns="int")
    view = db.create_view("v", f"SELECT {name.upper()}(a) AS x FROM R WHERE {name}(a) > 0")
    db.insert("R", [(1,)])
    assert list(view) == [(2,)]
    assert f"{name}(a)" in str(view.explain().query.atoms[0].columns[0])


@pytest.mark.parametrize("function", ["nowhere:f", "math:nothing", "math:pi", "math", "", 7])
def test_what_cannot_be_called_is_refused(function: Any) -> None:
    with pytest.raises(SchemaError, match="the function f "):
        UserFunction("f", function, ["int"], "int").definition()


def test_a_function_may_be_given_by_where_it_is() -> None:
    assert UserFunction("f", "math:isqrt", ["int"], "int").definition().apply(10) == 3
    assert UserFunction("f", "os.path:basename", ["string"], "string").definition().apply("a/b") == "b"


def test_types_are_those_of_columns() -> None:
    signature = UserFunction("f", len, [Type("decimal", 5, 2), "BIGINT"], "double").signature()
    assert str(signature) == "f(decimal(5,2), int) -> float"
    assert read_signature(signature.plain()) == signature == Signature("f", ("decimal(5,2)", "int"), "float")
    for arguments, returns in ((["wat"], "int"), (["int"], "wat"), ("int", "int")):
        with pytest.raises(SchemaError, match="function f"):
            UserFunction("f", len, arguments, returns).signature()


def test_a_database_lists_its_functions() -> None:
    with Database(functions=[UserFunction("f", len, ["string"], "int")]) as db:
        assert db.functions == {"f": "f(string) -> int"}
        with pytest.raises(SchemaError, match=r"there is a function f\(string\) -> int already"):
            db.create_function("F", len, arguments=["string"], returns="int")
        with pytest.raises(UnknownNameError, match="there is no function 'g'; there are: f"):
            db.drop_function("g")
        db.drop_function("F")
        assert db.functions == {}


def test_what_a_database_is_opened_with_are_functions() -> None:
    with pytest.raises(SchemaError, match=r"must be ivme.UserFunction"):
        Database(functions=[len])  # type: ignore[list-item]
    with pytest.raises(SchemaError, match="two functions are called F"):
        Database(functions=[UserFunction("f", len, ["string"], "int"), UserFunction("F", len, ["string"], "int")])


def test_columns_may_come_to_a_table_whose_view_calls_a_function() -> None:
    db = Database()
    db.create_table("R", {"s": "string"})
    db.create_function("size_of", len, arguments=["string"], returns="int")
    view = db.create_view("v", "SELECT size_of(s) AS n FROM R")
    db.insert("R", [("abc",)])
    db.add_column("R", "t", "int")
    db.insert("R", [("abcd", 1)])
    assert sorted(view) == [(3,), (4,)]


@pytest.mark.parametrize("act", ["insert", "create_view", "drop_view", "close", "checkpoint", "changes"])
@pytest.mark.parametrize("is_kept", [False, True])
def test_a_function_that_uses_the_database_refuses_the_batch(act: str, is_kept: bool, tmp_path: Path) -> None:
    with Database(tmp_path / "kept") if is_kept else Database() as database:
        acts: dict[str, Callable[[], object]] = {
            "insert": lambda: database.insert("t", [(5,)]),
            "create_view": lambda: database.create_view("z", "SELECT k + 1 AS q FROM t"),
            "drop_view": lambda: database.drop_view("u"),
            "close": database.close,
            "checkpoint": database.checkpoint,
            "changes": lambda: database.view("u").changes(),
        }

        def meddling(k: int) -> int:
            acts[act]()
            return k

        database.create_table("t", {"k": "int"})
        database.create_function("meddling", meddling, arguments=["int"], returns="int")
        views = [
            database.create_view("v", "SELECT meddling(k) AS x FROM t"),
            database.create_view("u", "SELECT k FROM t"),
        ]
        with pytest.raises(IvmeError, match="may not use a database while it is called"):
            database.insert("t", [(1,), (3,)])
        assert [list(view) for view in views] == [[], []]
        assert database.contents("t")[0].num_rows == 0
        for view in views:
            view.verify()
