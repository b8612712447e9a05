"""Files of tables, in SQL, YAML and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ivme.errors import IvmeError, SchemaError
from ivme.query.model import table
from ivme.tables import load_tables

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
        ("t.yml", "R: {colums: {a: int}}", "table R needs `columns`"),
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
