"""DEFAULT, RETURNING and the names of tables, on every runtime, and against DuckDB."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pytest

from ivme.database import Database
from ivme.errors import DataError, IvmeError, QueryError, SchemaError, UnknownNameError
from tests.databases import BACKENDS, make_database


@pytest.fixture(params=BACKENDS)
def db(request: pytest.FixtureRequest) -> Iterator[Database]:
    with make_database(request.param) as made:
        yield made


_ITEMS = """
    CREATE TABLE items (
        id BIGINT PRIMARY KEY, n BIGINT DEFAULT 1 + 2, price DECIMAL(8, 2) DEFAULT 5, name STRING DEFAULT 'it''s',
        day DATE DEFAULT '2024-05-01', at TIMESTAMP DEFAULT now(), ok BOOLEAN DEFAULT TRUE NOT NULL, f DOUBLE DEFAULT 2
    )
"""
_DEFAULTS = (3, Decimal("5.00"), "it's", date(2024, 5, 1))


def test_columns_that_are_not_given_have_their_defaults(db: Database) -> None:
    db.sql(_ITEMS)
    before = datetime.now(UTC).replace(tzinfo=None)
    db.sql("INSERT INTO items (id) VALUES (1), (2)")
    db.sql("INSERT INTO items (id, n, price) SELECT id + 2, 9, 1 FROM items")
    db.sql("INSERT INTO items (id, n, name) VALUES (5, DEFAULT, NULL)")
    db.insert("items", [{"id": 6}, {"ID": 7, "n": None}])
    db.insert("items", pandas.DataFrame({"id": range(8, 40)}))
    db.sql(
        "MERGE INTO items t USING (SELECT 40 AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    db.sql("INSERT INTO items (id) VALUES (40), (41) ON CONFLICT (id) DO UPDATE SET n = 10, name = DEFAULT")
    found = {row[0]: row[1:] for row in db.table("items")}
    assert set(range(1, 42)) == set(found)
    assert {_DEFAULTS} == {found[key][:4] for key in (1, 2, 6, *range(8, 40), 41)}
    assert [(9, Decimal("1.00")), (3, None), (None, "it's"), (10, "it's")] == [
        found[3][:2],
        (found[5][0], found[5][2]),
        (found[7][0], found[7][2]),
        (found[40][0], found[40][2]),
    ]
    assert {(True, 2.0)} == {row[5:] for row in found.values()}
    assert all(timedelta(0) <= row[4] - before < timedelta(minutes=10) for row in found.values())
    with pytest.raises(DataError, match="the column n is missing"):
        db.delete("items", [{"id": 6}])


def test_defaults_are_altered_described_and_refused(db: Database) -> None:
    db.create_table("t", {"a": "int", "b": "string", "at": "timestamp"}, defaults={"B": "now()", "at": "now()"})
    db.sql("ALTER TABLE t ADD COLUMN c BIGINT DEFAULT 7")
    db.insert("t", [{"a": 1}])
    assert [(1, "now()", 7)] == [(a, b, c) for a, b, _, c in db.table("t")]
    db.sql("ALTER TABLE t ALTER COLUMN b SET DEFAULT 'x'; ALTER TABLE t ALTER COLUMN c DROP DEFAULT")
    db.sql("ALTER TABLE t RENAME COLUMN b TO label; ALTER TABLE t DROP COLUMN at")
    assert [("a", None), ("label", "'x'"), ("c", None)] == [(row[0], row[3]) for row in db.sql("DESCRIBE t")]
    assert [(2, "x", None)] == db.sql("INSERT INTO t (a) VALUES (2) RETURNING *").rows()
    for text in (
        "CREATE TABLE u (a BIGINT DEFAULT b)",
        "CREATE TABLE u (a BIGINT DEFAULT now())",
        "CREATE TABLE u (a BIGINT DEFAULT 'x')",
        "CREATE TABLE u (a TIMESTAMP DEFAULT current_date())",
        "CREATE TABLE u (a BIGINT DEFAULT (SELECT 1))",
        "ALTER TABLE t ALTER COLUMN none SET DEFAULT 1",
        "INSERT INTO t (a) DEFAULT VALUES",
    ):
        with pytest.raises(QueryError):
            db.sql(text)
    with pytest.raises(SchemaError, match="no column 'x'"):
        db.create_table("u", {"a": "int"}, defaults={"x": 1})
    with pytest.raises(DataError, match="default of column a"):
        db.create_table("u", {"a": "int"}, defaults={"a": "one"})
    assert ("t",) == db.tables


def test_defaults_and_names_of_tables_are_durable(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as db:
        db.sql(_ITEMS)
        db.sql("CREATE TABLE parts (item BIGINT REFERENCES items (id), part STRING DEFAULT 'p')")
        db.sql("INSERT INTO items (id) VALUES (1); INSERT INTO parts (item) VALUES (1)")
        db.checkpoint()
        db.sql("ALTER TABLE items RENAME TO goods; CREATE TABLE items (x BIGINT); INSERT INTO items VALUES (9)")
        db.sql("INSERT INTO goods (id) VALUES (2)")
        db.sql("CREATE VIEW v AS SELECT g.n, p.part FROM goods g JOIN parts p ON p.item = g.id")
        wanted = db.tables, [db.relation(name) for name in db.tables], sorted(db.table("goods"), key=str)
    for _ in range(2):
        with Database(tmp_path / "db") as db:
            assert wanted == (db.tables, [db.relation(name) for name in db.tables], sorted(db.table("goods"), key=str))
            assert ("goods", "parts", "items") == db.tables
            assert "goods" == db.relation("parts").references[0].table
            assert [(3, "p")] == list(db.view("v"))
            assert [(9,)] == list(db.table("items"))
            db.view("v").verify()
            db.checkpoint()


def test_a_table_is_renamed_unless_a_view_reads_it(db: Database) -> None:
    db.sql("CREATE TABLE t (a BIGINT PRIMARY KEY, b STRING); INSERT INTO t VALUES (1, 'x'), (2, NULL)")
    db.sql("CREATE VIEW v AS SELECT b FROM t")
    with pytest.raises(QueryError, match="cannot rename table t: v needs it"):
        db.sql("ALTER TABLE t RENAME TO u")
    db.drop_view("v")
    db.sql("ALTER TABLE t RENAME TO u")
    db.rename_table("U", "T")
    db.create_table("other", {"a": "int"})
    for name, message in (("", "name"), ("Other", "already")):
        with pytest.raises(IvmeError, match=message):
            db.rename_table("t", name)
    with pytest.raises(DataError, match="primary key"):
        db.insert("T", [(1, "again")])
    db.sql("CREATE VIEW v AS SELECT b FROM T; INSERT INTO T VALUES (3, 'y')")
    assert [("x",), ("y",)] == sorted(row for row in db.view("v") if row[0])
    db.sql("BEGIN; INSERT INTO other VALUES (1)")
    db.rename_table("other", "another")
    with pytest.raises(UnknownNameError, match="no table other"):
        db.sql("COMMIT")
    assert [] == list(db.table("another"))


def test_returned_rows_are_those_of_duckdb(db: Database) -> None:
    """Random changes with RETURNING, in and outside transactions, each compared with DuckDB's answer."""
    random_ = random.Random(23)
    other = duckdb.connect()
    for text in (
        "CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT DEFAULT 4, s VARCHAR DEFAULT 'd')",
        "CREATE TABLE u (a BIGINT)",
        "INSERT INTO u VALUES (1), (3), (5), (5)",
    ):
        other.execute(text)
        db.sql(text.replace("VARCHAR", "STRING"))
    items = ("*", "k, n + 1 AS m", "s, k", "k * n AS p, upper(s) AS u, *")
    open_ = False
    for _ in range(24):
        k, n, wanted = random_.randrange(8), random_.randrange(5), random_.choice(items)
        text = random_.choice(
            [
                f"INSERT INTO t (k) VALUES ({k})",
                f"INSERT INTO t (k, n) VALUES ({k}, {n}) ON CONFLICT (k) DO UPDATE SET n = excluded.n",
                f"INSERT INTO t (k, s) SELECT DISTINCT a + {10 + k * 10}, 'q' FROM u",
                f"UPDATE t SET n = n + {n} WHERE k > {k}",
                f"UPDATE t SET s = 'u', n = (SELECT COUNT(*) FROM u) WHERE k = {k}",
                f"DELETE FROM t WHERE n > {n} AND k < {k}",
                "DELETE FROM t WHERE k IN (SELECT a FROM u)",
            ]
        )
        if not open_ and random_.random() < 0.3:
            other.execute("BEGIN")
            db.sql("BEGIN")
            open_ = True
        expected, found = _answers(other, db, f"{text} RETURNING {wanted}")
        assert expected == found, text
        if open_ and (expected is None or random_.random() < 0.4):
            act = "ROLLBACK" if expected is None else random_.choice(["COMMIT", "ROLLBACK"])
            other.execute(act)
            db.sql(act)
            open_ = False
        if not open_:
            assert _ordered(other.execute("SELECT * FROM t").fetchall()) == _ordered(db.sql("SELECT * FROM t").rows())


def _answers(other: Any, db: Database, text: str) -> tuple[Any, Any]:
    """What both answer; None for a refusal. ivme may tell a key that is there twice by the next query only."""
    try:
        expected = _ordered(other.execute(text).fetchall())
    except duckdb.ConstraintException:
        expected = None
    try:
        found = _ordered(db.sql(text).rows())
        if expected is None:
            db.sql("SELECT COUNT(*) AS n FROM t")
    except DataError:
        found = None
    return expected, found


def _ordered(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=str)
