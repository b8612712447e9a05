"""Users' functions on both backends: against DuckDB with the same functions, and what happens when one fails."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ivme.database import Database
from ivme.errors import DataError, IvmeError, UnsupportedError, VerificationError
from tests.databases import BACKENDS, in_one_batch, make_database
from tests.fuzz.engines import Engine
from tests.properties.test_select import Both, comparable
from tests.sharded_databases import local_database


def mixed(a: int, b: int) -> int:
    return (a * 7 + b * 3) % 5


def named(n: int) -> str:
    return f"<{n}>"


def shout(text: str) -> str:
    return text.upper() + "!"


def known(n: int | None) -> bool:
    return n is not None and n > 1


FUNCTIONS: dict[str, tuple[Any, list[str], str, bool]] = {
    "mixed": (mixed, ["int", "int"], "int", False),
    "named": (named, ["int"], "string", False),
    "shout": (shout, ["string"], "string", False),
    "known": (known, ["int"], "bool", True),
}
_DUCKDB = {"int": "BIGINT", "string": "VARCHAR", "bool": "BOOLEAN"}

QUERIES = [
    "SELECT a, mixed(a, b) AS m FROM R",
    "SELECT named(a) AS n, COUNT(*) AS c, SUM(mixed(a, b)) AS s FROM R GROUP BY named(a)",
    "SELECT shout(c) AS c, b FROM S WHERE shout(c) <> 'X!'",
    "SELECT a FROM R WHERE known(b)",
    "SELECT a, known(b) AS k FROM R",
    "SELECT R.a, S.c FROM R JOIN S ON mixed(R.a, R.b) = S.b",
    "SELECT mixed(R.a, T.d) AS m, COUNT(*) AS n FROM R JOIN T ON R.a = T.a GROUP BY mixed(R.a, T.d)",
    "SELECT a FROM R WHERE NOT EXISTS (SELECT 1 FROM T WHERE T.a = mixed(R.a, R.b))",
    "SELECT named(mixed(a, a + 1)) AS n FROM R UNION SELECT shout(c) FROM S",
    "SELECT CASE WHEN known(a) THEN shout(named(a)) ELSE 'none' END AS x FROM R",
]


def _declare(db: Database, both: Both) -> None:
    for name, (function, arguments, returns, called_with_null) in FUNCTIONS.items():
        db.create_function(name, function, arguments=arguments, returns=returns, called_with_null=called_with_null)
        handling: Any = "special" if called_with_null else "default"
        types = [_DUCKDB[each] for each in arguments]
        both.duckdb.create_function(name, function, types, _DUCKDB[returns], null_handling=handling)  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("query", QUERIES)
def test_a_view_that_calls_functions_is_what_duckdb_says(query: str, backend: str, tmp_path: Path) -> None:
    both = Both(Engine(backend, tmp_path).database, seed=len(query), connection=duckdb.connect())
    _declare(both.database, both)
    both.change()
    view = both.database.create_view("v", query)
    for _ in range(4):
        both.change()
        assert comparable(list(view)) == comparable(both.duckdb.execute(query).fetchall())
        view.verify()
    both.database.insert("R", [(n % 4, n % 3) for n in range(100)])
    view.verify()


@pytest.mark.parametrize("backend", BACKENDS)
def test_rules_call_functions_as_sql_does(backend: str) -> None:
    db = make_database(backend)
    db.create_table("R", {"a": "int", "b": "int"})
    db.create_function("mixed", mixed, arguments=["int", "int"], returns="int")
    view = db.create_view("v", "Q(a, SUM(mixed(a, b))) = R(a, b), mixed(a, b) > 1, not R(b, _)")
    db.insert("R", [(1, 5), (1, 6), (2, 1), (3, None)])
    assert list(view) == [(1, 2)]
    view.verify()


VALUES = {
    "int": 7,
    "float": 1.5,
    "decimal(9,2)": Decimal("1.25"),
    "string": "é",
    "bool": True,
    "date": datetime.date(2026, 1, 2),
    "timestamp": datetime.datetime(2026, 1, 2, 3, 4, 5),
    "binary": b"\x00\xff",
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("kind", "value"), VALUES.items())
def test_values_of_every_type_go_in_and_come_out(backend: str, kind: str, value: Any) -> None:
    seen: list[Any] = []

    def same(given: Any) -> Any:
        seen.append(given)
        return given

    db = make_database(backend)
    db.create_table("R", {"x": kind})
    db.create_function("same", same, arguments=[kind], returns=kind)
    view = db.create_view("v", "SELECT same(x) AS y, COUNT(*) AS n FROM R GROUP BY same(x)")
    db.insert("R", [(value,), (None,)])
    assert dict(view.items()) == {(value, 1): 1, (None, 1): 1}
    assert {type(each) for each in seen} == {type(value)}
    view.verify()


@pytest.mark.parametrize("backend", BACKENDS)
def test_arguments_are_widened_and_never_narrowed(backend: str) -> None:
    db = make_database(backend)
    db.create_table("R", {"i": "int", "d": "decimal(9, 2)", "t": "timestamp", "day": "date"})
    db.create_function("half", lambda x: x / 2, arguments=["float"], returns="float")
    db.create_function("twice", lambda x: x * 2, arguments=["decimal(9, 2)"], returns="decimal(12, 2)")
    db.create_function("hour_of", lambda x: x.hour, arguments=["timestamp"], returns="int")
    view = db.create_view("v", "SELECT half(i) AS a, half(d) AS b, twice(i) AS c, hour_of(day) AS e FROM R")
    db.insert("R", [(3, Decimal("1.50"), None, datetime.date(2026, 1, 2))])
    assert list(view) == [(1.5, 0.75, Decimal("6.00"), 0)]
    db.create_function("day_of", lambda x: x.day, arguments=["date"], returns="int")
    for call in ("day_of(t)", "twice('x')", "half(day)", "hour_of(i)"):
        with pytest.raises(UnsupportedError, match="is of type"):
            db.create_view("w", f"SELECT {call} AS x FROM R")


def _fails_for_13(n: int) -> int:
    if n == 13:
        raise LookupError("unlucky")
    return n


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("rows", [[(13,)], [(1,), (13,), (2,)], [(n,) for n in range(200)]])
def test_a_function_that_raises_refuses_the_batch_and_changes_nothing(backend: str, rows: list[Any]) -> None:
    db = make_database(backend)
    db.create_table("R", {"a": "int"})
    db.create_table("S", {"a": "int"})
    db.create_function("careful", _fails_for_13, arguments=["int"], returns="int")
    view = db.create_view("v", "SELECT careful(a) AS x FROM R")
    db.insert("R", [(5,)])
    with pytest.raises(DataError) as refused:
        in_one_batch(db, ("insert", "S", [(1,)]), ("insert", "R", rows))
    for word in ("view v", "careful(a)", "row (13,)", "table R", "LookupError", "unlucky"):
        assert word in str(refused.value)
    assert list(view) == [(5,)]
    assert db.contents("S")[0].num_rows == 0
    db.insert("R", [(6,)])
    assert sorted(view) == [(5,), (6,)]
    view.verify()


@pytest.mark.parametrize("backend", BACKENDS)
def test_conditions_guard_a_function_that_raises(backend: str) -> None:
    db = make_database(backend)
    db.create_table("R", {"a": "int"})
    db.create_function("careful", _fails_for_13, arguments=["int"], returns="int")
    where = db.create_view("v", "SELECT careful(a) AS x FROM R WHERE a <> 13")
    case = db.create_view("w", "SELECT CASE WHEN a = 13 THEN -1 ELSE careful(a) END AS x FROM R")
    db.insert("R", [(13,), (1,)])
    assert (list(where), sorted(case)) == ([(1,)], [(-1,), (1,)])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("returns", "value"), [("int", "x"), ("int", 2**63), ("string", 3), ("bool", 1), ("decimal(4,2)", Decimal("1.234"))]
)
def test_a_value_of_another_type_is_refused(backend: str, returns: str, value: Any) -> None:
    db = make_database(backend)
    db.create_table("R", {"a": "int"})
    db.create_function("lies", lambda _: value, arguments=["int"], returns=returns)
    view = db.create_view("v", "SELECT lies(a) AS x FROM R")
    with pytest.raises(DataError, match="the function lies must return"):
        db.insert("R", [(1,)])
    assert not list(view)


def test_a_function_without_arguments_is_a_constant() -> None:
    db = make_database("native")
    db.create_table("R", {"a": "int"})
    db.create_function("answer", lambda: 42, arguments=[], returns="int")
    view = db.create_view("v", "SELECT a + answer() AS x FROM R")
    db.insert("R", [(1,)])
    assert list(view) == [(43,)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_verify_finds_a_function_that_is_not_pure_and_says_so(backend: str) -> None:
    offset = [0]
    db = make_database(backend)
    db.create_table("R", {"a": "int"})
    db.create_function("moody", lambda n: n + offset[0], arguments=["int"], returns="int")
    view = db.create_view("v", "SELECT moody(a) AS x FROM R")
    db.insert("R", [(1,)])
    view.verify()
    offset[0] = 1
    with pytest.raises(VerificationError, match=r"it calls moody, and a function that is not pure"):
        view.verify()


def test_two_databases_have_functions_of_their_own() -> None:
    found = []
    for factor in (2, 3):
        db = make_database("native")
        db.create_table("R", {"a": "int"})
        db.create_function("times", lambda n, factor=factor: n * factor, arguments=["int"], returns="int")
        view = db.create_view("v", "SELECT times(a) AS x FROM R")
        db.insert("R", [(1,)])
        found.append(list(view))
    assert found == [[(2,)], [(3,)]]


def test_a_function_that_is_made_anew_is_another_one() -> None:
    db = make_database("native")
    db.create_table("R", {"s": "string"})
    db.insert("R", [("x",)])
    for text in ("a", "b"):
        db.create_function("tagged", lambda s, text=text: s + text, arguments=["string"], returns="string")
        view = db.create_view("v", "SELECT tagged(s) AS x FROM R")
        assert list(view) == [("x" + text,)]
        db.drop_view("v")
        db.drop_function("tagged")


def test_shards_refuse_functions_that_have_no_name(tmp_path: Path) -> None:
    db = local_database(tmp_path, 2)
    with pytest.raises(IvmeError, match="shout"):
        db.create_function("shout", lambda text: text.upper(), arguments=["string"], returns="string")
    db.close()
