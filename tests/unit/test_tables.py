"""Files of tables, in SQL, YAML and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ivme.errors import IvmeError, SchemaError
from ivme.query.model import table
from ivme.tables import load_tables, read_tables

EXPECTED = table("R", {"a": "int", "b": "string"}, primary_key=["a"], append_only=True)


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_the_three_kinds_of_files_say_the_same(tmp_path: Path) -> None:
    sql = "CREATE TABLE R (a INT, b STRING, PRIMARY KEY (a)) TBLPROPERTIES ('append_only' = 'true')"
    yml = "R:\n  columns: {a: int, b: string}\n  primary_key: a\n  append_only: true\n"
    described = {"R": {"columns": {"a": "int", "b": "string"}, "primary_key": ["a"], "append_only": True}}
    files = {"t.sql": sql, "t.yml": yml, "t.json": json.dumps(described)}
    for name, text in files.items():
        assert load_tables(written(tmp_path, name, text)) == (EXPECTED,), name


def test_the_short_and_the_long_form_are_read_from_files_and_from_python(tmp_path: Path) -> None:
    forms: dict[str, Any] = {
        "R": {"a": "int", "b": "string"},
        "S": ["a", "b"],
        "T": {"columns": {"a": "int"}, "primary_key": "a"},
        "U": {"columns": ["a", "columns"], "primary_key": ["a"], "static": True},
        "V": {"columns": "int", "a": "string"},
    }
    expected = (
        table("R", {"a": "int", "b": "string"}),
        table("S", ["a", "b"]),
        table("T", {"a": "int"}, primary_key="a"),
        table("U", ["a", "columns"], primary_key=["a"], static=True),
        table("V", {"columns": "int", "a": "string"}),
    )
    assert expected == read_tables(forms)
    assert expected == load_tables(written(tmp_path, "t.json", json.dumps(forms)))
    assert expected == load_tables(written(tmp_path, "t.yml", yaml.safe_dump(forms, sort_keys=False)))


def test_python_may_give_the_key_as_a_tuple() -> None:
    assert (table("R", {"a": "int"}, primary_key=["a"]),) == read_tables(
        {"R": {"columns": {"a": "int"}, "primary_key": ("a",)}}
    )


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    texts = {"t.sql": "CREATE TABLE R (a INT)", "t.yml": "R: {a: int}", "t.json": '{"R": {"a": "int"}}'}
    for name, text in texts.items():
        path = tmp_path / name
        path.write_text(text, "utf-8-sig")
        assert load_tables(path) == (table("R", {"a": "int"}),), name


def test_statistics_and_columns_without_types_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, "t.yml", "R: {columns: [a, b], rows: 7, distinct: {a: 3}, static: true}")
    assert (table("R", ["a", "b"], static=True, rows=7, distinct={"a": 3}),) == load_tables(path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.txt", "R", "must be a .sql, .yml or .json file"),
        ("t.yml", "[R]", "must map the names of tables"),
        ("t.yml", "R: [a", "is not valid yml"),
        ("t.json", "{", "is not valid json"),
        ("t.yml", "R: {colums: {a: int}}", "a table that says more has `columns`"),
        ("t.yml", "R: {columns: int, static: true}", "table R needs a type for each column"),
        ("t.sql", "-- nothing\n", "has no tables"),
        ("t.yml", "", "has no tables"),
        ("t.json", "{}", "has no tables"),
        ("t.yml", "R: {columns: {a: int}, keys: a}", "unknown field 'keys'"),
        ("t.yml", "R: {columns: {a: int}, static: 1}", "static of table R must be true or false"),
        ("t.yml", "R: {columns: {a: int}, rows: many}", "rows of table R must be a number"),
        ("t.yml", "R: {columns: {a: int}, distinct: {z: 1}}", "for columns that it has"),
        ("t.yml", "R: {columns: {a: int}, primary_key: 3}", "primary_key of table R"),
        ("t.yml", "R: {columns: {a: int}, primary_key: z}", "no column 'z'"),
        ("t.sql", "DROP TABLE R", "DROP"),
    ],
)
def test_a_file_that_says_something_else_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(IvmeError, match=message):
        load_tables(written(tmp_path, name, text))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="cannot be read"):
        load_tables(tmp_path / "none.yml")
