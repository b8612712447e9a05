"""Queries of other systems mean what they mean there."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path

import duckdb
import pytest

import ivme
from ivme.pipeline import read_pipeline
from ivme.query.dialects import dialects, translated

ROWS = [(7, 2, "x", 1.5), (-7, 2, "y", 2.5), (3, None, None, None), (8, 3, "", 0.5)]


@pytest.fixture
def db() -> ivme.Database:
    made = ivme.Database()
    made.create_table("t", {"a": "int", "b": "int", "s": "string", "f": "float"})
    made.insert("t", ROWS)
    return made


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a // b AS q, a / b AS r FROM t",
        "SELECT \"a\", s || 'x' AS k FROM t WHERE \"s\" ILIKE 'X%'",
        "SELECT s, COUNT(*) AS n FROM t GROUP BY ALL ORDER BY s LIMIT 2",
        "SELECT a::VARCHAR AS k, ROUND(f)::INT AS i, a::INT AS j, IFNULL(b, 0) AS n FROM t WHERE f <> 2.5",
        "SELECT CONCAT(s, '!') AS k, COALESCE(f, 0) AS f FROM t",
        "SELECT a, b FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY b ORDER BY a) = 1",
        "FROM t SELECT a WHERE a > 0",
    ],
)
def test_texts_of_duckdb_have_the_rows_of_duckdb(db: ivme.Database, query: str) -> None:
    view = db.create_view("v", query, dialect="duckdb")
    duck = duckdb.connect()
    duck.execute("CREATE TABLE t (a BIGINT, b BIGINT, s VARCHAR, f DOUBLE)")
    duck.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", ROWS)
    assert Counter(duck.execute(query).fetchall()) == Counter(view)
    view.verify()
    duck.close()


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("SELECT a / b AS q FROM t WHERE a = -7", -3),  # towards zero
        ("SELECT a / 2.0 AS q FROM t WHERE a = 7", 3.5),
        ("SELECT a / f AS q FROM t WHERE a = 8", 16.0),
        ("SELECT a::float / b AS q FROM t WHERE a = 7", 3.5),
        ("SELECT q / 2 AS h FROM (SELECT a / b AS q FROM t WHERE a = 7) x", 1),
        ("SELECT COUNT(*) / 3 AS q FROM t", 1),
    ],
)
def test_quotients_of_integers_are_rounded_where_their_system_rounds_them(
    db: ivme.Database, query: str, first: float
) -> None:
    (row,) = db.create_view("v", query, dialect="postgres")
    assert first == pytest.approx(float(row[0]))


@pytest.mark.parametrize(
    ("query", "dialect", "message"),
    [
        ("SELECT x / y AS q FROM nowhere", "postgres", "whether x / y is rounded depends on types that are not known"),
        ("SELECT SUM(a) / 2 AS q FROM t", "postgres", r"whether SUM\(a\) / 2 is rounded depends"),
        ("SELECT f::int AS i FROM t", "postgres", r"CAST\(f AS INT\) rounds in postgres, and cuts off in Spark"),
        ("SELECT x::int AS i FROM nowhere", "duckdb", "rounds in duckdb, and cuts off in Spark"),
        ("SELECT a FRM t", "postgres", "this is not SQL of postgres"),
        ("SELECT 1; SELECT 2", "duckdb", "this is not one query in the SQL of duckdb"),
        ("DROP TABLE t", "duckdb", "this is not one query in the SQL of duckdb"),
        ("SELECT a FROM t", "nonsense", "there is no dialect 'nonsense'; the dialects are"),
    ],
)
def test_what_is_not_known_exactly_is_refused(db: ivme.Database, query: str, dialect: str, message: str) -> None:
    with pytest.raises(ivme.IvmeError, match=message):
        db.create_view("v", query, dialect=dialect)
    assert [] == list(db.views)


def test_a_syntax_error_has_its_place(db: ivme.Database) -> None:
    with pytest.raises(ivme.IvmeError, match="line 1, column 14"):
        db.create_view("v", "SELECT a FRM t", dialect="postgres")


def test_nulls_come_where_they_came(db: ivme.Database) -> None:
    view = db.create_view("v", "SELECT b FROM t ORDER BY b LIMIT 4", dialect="postgres")
    assert [(2,), (2,), (3,), (None,)] == list(view)


def test_the_view_is_the_translated_text_in_a_directory(tmp_path: Path) -> None:
    with ivme.Database(tmp_path / "db") as db:
        db.create_table("t", {"a": "int", "b": "int"})
        db.insert("t", [(7, 2)])
        db.create_view("v", 'SELECT "a" / "b" AS q FROM t', dialect="postgres")
    with ivme.Database(tmp_path / "db") as db:
        assert [(3,)] == list(db.view("v"))


def test_explain_and_pipelines_take_a_dialect(tmp_path: Path) -> None:
    explained = ivme.explain('SELECT "a" FROM t', {"t": {"a": "int"}}, dialect="postgres")
    assert "O(1)" == str(explained.update)
    file = tmp_path / "p.yml"
    file.write_text(
        "tables:\n  t:\n    columns: {a: int}\n    load: {format: csv, path: t.csv}\n"
        'views:\n  v:\n    sql: SELECT "a"::varchar AS k FROM t\n    dialect: postgres\n'
    )
    (view,) = read_pipeline(file).views
    assert ("SELECT CAST(`a` AS STRING) AS k FROM t", ()) == (view.query, view.options)


def test_a_pipeline_knows_the_types_of_its_tables(tmp_path: Path) -> None:
    file = tmp_path / "p.yml"
    file.write_text(
        "tables:\n  t:\n    columns: {a: int}\n    load: {format: csv, path: t.csv}\n"
        "views:\n  v:\n    sql: SELECT a / 2 AS k FROM t\n    dialect: postgres\n"
    )
    (view,) = read_pipeline(file).views
    assert "SELECT a DIV 2 AS k FROM t" == view.query


def test_dialects_of_ivme_itself_are_not_listed() -> None:
    import_module("ivme.statements.dialect")
    import_module("ivme.serve.pg.text")
    assert not [each for each in dialects() if each.startswith("_") or "statement" in each]


def test_a_text_of_spark_is_left_as_it_is(db: ivme.Database) -> None:
    assert [(7,)] == list(db.create_view("v", "SELECT a FROM t WHERE s = 'x'", dialect="Spark"))


@pytest.mark.parametrize("dialect", dialects())
def test_a_plain_query_is_one_in_every_dialect(dialect: str) -> None:
    assert "SELECT a, COUNT(*) AS n FROM t WHERE b > 1 GROUP BY a" == translated(
        "SELECT a, COUNT(*) AS n FROM t WHERE b > 1 GROUP BY a", dialect
    )
