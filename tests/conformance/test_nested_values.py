"""Arrays and structs are carried, compared and counted, on both backends and in a directory."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.errors import DataError, SchemaError, UnsupportedError
from ivme.query.ddl import parse_create_tables
from tests.databases import rows_of
from tests.example_counts import some_of
from tests.nested_values import EQUALITIES, ORDERS, R, S, some_others, some_rows

_DUCKDB = {
    "r": "id BIGINT, tags VARCHAR[], place STRUCT(x BIGINT, y DOUBLE), numbers BIGINT[], "
    "deep STRUCT(a DECIMAL(20, 2), d DATE)[]",
    "s": "id BIGINT, tags VARCHAR[], place STRUCT(x BIGINT, y DOUBLE)",
}


def _thawed(value: Any) -> Any:
    """A value as DuckDB gives it: lists and dicts."""
    if isinstance(value, tuple):
        return [_thawed(each) for each in value]
    return {name: _thawed(each) for name, each in value.items()} if hasattr(value, "items") else value


def _positive_zeros(row: Any) -> Any:
    place = row[2] and {"x": row[2]["x"], "y": None if row[2]["y"] is None else row[2]["y"] + 0.0}
    return [*row[:2], place, *row[3:]]


def _shown(rows: Any) -> list[str]:
    return sorted(repr([_thawed(value) for value in row]) for row in rows)


@pytest.mark.parametrize("db", some_of(("native", "pure", "durable", "sharded"), "native"), indirect=True)
def test_views_are_duckdbs_under_inserts_and_deletes(db: Database) -> None:
    choose, duck = random.Random(17), duckdb.connect()
    for name, columns in _DUCKDB.items():
        duck.execute(f"CREATE TABLE {name} ({columns})")
    db.create_table("r", R)
    db.create_table("s", S)
    texts = {name: text.replace("VARCHAR[]", "ARRAY<STRING>") for name, text in EQUALITIES.items()}
    views = {name: db.create_view(name.replace(" ", "_"), text) for name, text in texts.items()}
    orders = [db.create_view(name.replace(" ", "_"), text) for name, text in ORDERS.items()]
    kept: dict[str, list[Any]] = {"r": [], "s": []}
    for step in range(4):
        gone = {name: rows[step::3] for name, rows in kept.items()}
        new = {"r": some_rows(choose, 30 if step < 3 else 0), "s": some_others(choose, 12)}
        with db.batch() as batch:
            for name in kept:
                batch.delete(name, gone[name])
                batch.insert(name, new[name])
        for name, rows in kept.items():
            kept[name] = [row for place, row in enumerate(rows) if place % 3 != step % 3 or place < step] + new[name]
            duck.execute(f"DELETE FROM {name}")
            if kept[name]:
                row = ", ".join("?" * len(kept[name][0]))
                duck.executemany(f"INSERT INTO {name} VALUES ({row})", map(_positive_zeros, kept[name]))
        for name, view in views.items():
            assert _shown(duck.execute(EQUALITIES[name]).fetchall()) == _shown(view), name
            view.verify()
        for view in orders:
            view.verify()


def test_rows_come_as_lists_dicts_tuples_and_arrow_and_go_out_as_tuples_and_mappings(db: Database) -> None:
    db.create_table("r", {"a": "array<int>", "p": "struct<x int, y string>"})
    view = db.create_view("v", "SELECT a, p FROM r")
    rows = [([1, None], {"x": 1, "Y": "b"}), ((1, None), (1, "b")), (np.array([1, 2]), [None, None])]

    db.insert("r", rows)
    db.insert("r", pa.table({"p": [{"x": 1, "y": "b"}, None], "a": pa.array([[1, None], None], pa.list_(pa.int32()))}))

    found = rows_of(view)
    expected = [((1, 2), {"x": None, "y": None}), *[((1, None), {"x": 1, "y": "b"})] * 3, (None, None)]
    assert expected == found
    assert 3 == len(set(found)), "rows can be in sets"
    arrow = view.to_arrow()
    assert pa.list_(pa.int64()) == arrow.schema.field("a").type
    assert {"x": 1, "y": "b"} in arrow.column("p").to_pylist()
    db.delete("r", [([1, None], (1, "b"))] * 3)
    assert 2 == len(list(view))


def test_many_rows_are_taken_as_columns(db: Database) -> None:
    db.create_table("r", {"id": "int", "a": "array<float>"})
    view = db.create_view("v", "SELECT a, COUNT(*) AS n FROM r GROUP BY a")
    db.insert("r", [(n, [0.0, float(n % 3)]) for n in range(60)])
    db.insert("r", pa.table({"id": range(60), "a": [[-0.0, 1.0]] * 60}))
    assert [((0.0, 0.0), 20), ((0.0, 1.0), 80), ((0.0, 2.0), 20)] == sorted(view)


@pytest.mark.parametrize("value", ["ab", 1, [1], ["a", 2], {"a": 1}, [float("nan")]])
def test_what_is_no_array_of_strings_is_refused_with_its_row(db: Database, value: Any) -> None:
    db.create_table("r", {"a": "array<string>"})
    with pytest.raises(DataError, match=r"table r, column a, rows\[0\]"):
        db.insert("r", [(value,)])


@pytest.mark.parametrize("value", [{"x": 1}, {"x": 1, "y": 2.0, "z": 3}, (1,), "xy", {"x": 1, "y": float("nan")}])
def test_what_is_no_such_struct_is_refused_with_its_row(db: Database, value: Any) -> None:
    db.create_table("r", {"p": "struct<x int, y float>"})
    with pytest.raises(DataError, match=r"table r, column p, rows\[0\]"):
        db.insert("r", [(value,)])
    with pytest.raises(DataError):
        db.insert("r", pa.table({"p": pa.array([{"x": 1, "y": float("nan")}])}))


def test_a_request_and_a_change_have_arrays(db: Database) -> None:
    db.create_table("r", {"id": "int", "a": "array<int>", "p": "struct<x int>"})
    view = db.create_view("v", "SELECT id, p FROM r WHERE a = :a")
    changes = db.create_view("w", "SELECT a, COUNT(*) AS n FROM r GROUP BY a").changes()
    db.insert("r", [(1, [1, 2], {"x": 7}), (2, [1, 2], None), (3, [], None)])
    assert [(1, {"x": 7}), (2, None)] == sorted(view(a=[1, 2]), key=lambda row: row[0])
    assert [] == list(view(a=(9,)))
    assert 2 == view.request_many(a=[[1, 2], [7]]).num_rows
    with pytest.raises(DataError):
        list(view(a="x"))
    assert {((1, 2), 2): 1, ((), 1): 1} == dict(next(iter(changes)))


def test_arrays_are_keys_and_can_be_upserted(db: Database) -> None:
    db.create_table("r", {"k": "array<int>", "n": "int"}, primary_key=["k"])
    view = db.create_view("v", "SELECT k, n FROM r ORDER BY k")
    db.insert("r", [([2], 1), ([], 2), ([1, 5], 3), ([1, None], 4)])
    db.upsert("r", [([2], 9)])
    assert [((), 2), ((1, None), 4), ((1, 5), 3), ((2,), 9)] == list(view)
    with pytest.raises(DataError):
        db.insert("r", [((2,), 1)])


def test_columns_with_arrays_come_and_go(db: Database) -> None:
    db.create_table("r", {"id": "int"})
    db.insert("r", [(1,)])
    db.add_column("r", "a", "array<struct<x int>>", default=[{"x": 1}, None])
    view = db.create_view("v", "SELECT id, a FROM r")
    assert [(1, ({"x": 1}, None))] == list(view)
    db.insert("r", [(2, [])])
    db.drop_view("v")
    db.drop_column("r", "a")


def test_rows_with_arrays_are_updated_and_deleted(db: Database) -> None:
    db.create_table("r", {"id": "int", "a": "array<int>"})
    view = db.create_view("v", "SELECT id, a FROM r ORDER BY id")
    db.insert("r", [(1, [1]), (2, [2]), (3, None)])
    db.update("r", set={"a": [7, None]}, where="id = 1")
    db.delete_where("r", "a IS NULL")
    assert [(1, (7, None)), (2, (2,))] == list(view)
    with pytest.raises(SchemaError, match="an array or a struct"):
        db.delete_where("r", "a = :a", a=[2])
    db.replace("r", [(5, [5])])
    assert [(5, (5,))] == list(view)


def test_maps_are_refused_by_name(db: Database) -> None:
    with pytest.raises(SchemaError, match="MAP are not supported; store its entries as rows"):
        db.create_table("r", {"m": "array<map<string, int>>"})
    with pytest.raises(UnsupportedError, match="MAP are not supported") as raised:
        parse_create_tables("CREATE TABLE r (id INT, m MAP<STRING, INT>)")
    assert raised.value.position is not None


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("p.x", "p.x is not supported"),
        ("r.p.x", "r.p.x is not supported"),
        ("a[0]", "a[0] is not supported"),
        ("EXPLODE(a)", "the function EXPLODE"),
        ("SIZE(a)", "the function SIZE"),
        ("ARRAY_CONTAINS(a, 1)", "the function ARRAY_CONTAINS"),
        ("ELEMENT_AT(a, 1)", "the function ELEMENT_AT"),
        ("a = ARRAY(id, 2)", "an array of computed values"),
        ("a = ARRAY()", "the elements of this array have no common type"),
        ("a = ARRAY(1, 'x')", "the elements of this array have no common type"),
        ("a = ARRAY('x')", "compares array<int> with array<string>"),
        ("p = STRUCT(1)", "the function STRUCT"),
        ("UPPER(a)", "upper(a) computes with a of type array<int>"),
        ("CAST(a AS STRING)", "CAST(a AS STRING) computes with a"),
        ("CAST(id AS ARRAY<INT>)", "a CAST to array<int>"),
        ("MAX(p.x) + 1", "p.x is not supported"),
        ("MAX_BY(a, id)", "MAX_BY(a, id) is over values of type array<int>"),
        ("SUM(a)", "SUM(a) adds up values of type array<int>"),
        ("ARRAY_AGG(a)", "ARRAY_AGG(a) is over values of type array<int>"),
        ("a = b", "compares array<int> with array<string>"),
    ],
)
def test_what_looks_into_an_array_or_a_struct_is_refused_by_name(db: Database, expression: str, words: str) -> None:
    db.create_table("r", {"id": "int", "a": "array<int>", "b": "array<string>", "p": "struct<x int>"})
    text = f"SELECT {expression} AS y FROM r"
    with pytest.raises(UnsupportedError) as raised:
        db.create_view("v", text)
    assert words in raised.value.message
    assert raised.value.position is not None
    assert raised.value.instead
    assert "CAST one" not in raised.value.instead
