"""Texts become statements, and every error points at its place in the whole text."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import IvmeError, QueryError
from ivme.statements.model import CreateView, Insert, Merge, Select, Update
from ivme.statements.parse import parse_statements

VALID = (
    "CREATE TABLE IF NOT EXISTS t (a BIGINT, b STRING, PRIMARY KEY (a)) WITH (append_only = true, static = false)",
    "CREATE OR REPLACE TABLE t (a BIGINT PRIMARY KEY)",
    "CREATE OR REPLACE MATERIALIZED VIEW v WITH (strategy = 'classical') AS SELECT a FROM t",
    "CREATE TABLE u AS WITH x AS (SELECT a FROM t) SELECT a FROM x",
    "CREATE TABLE u AS SELECT * FROM 'rows.parquet'",
    "DROP TABLE IF EXISTS t",
    "DROP MATERIALIZED VIEW v",
    "ALTER TABLE t ADD COLUMN c DECIMAL(8, 2) DEFAULT 1.5",
    "ALTER TABLE t DROP COLUMN b",
    "INSERT INTO t (a, b) VALUES (1, 'x; y'), (:a, NULL)",
    "INSERT OR REPLACE INTO t VALUES (1, 'x')",
    "INSERT OVERWRITE t SELECT a, b FROM t",
    "INSERT INTO t (SELECT a, b FROM t)",
    "UPDATE t AS x SET b = upper(x.b), a = a + 1 WHERE a BETWEEN 1 AND 2 AND b IS NOT NULL",
    "DELETE FROM t WHERE a IN (SELECT a FROM u) OR b LIKE 'x%'",
    "UPDATE t SET a = DEFAULT RETURNING *, a * 2 AS b",
    "DELETE FROM t WHERE a = 1 RETURNING t.a",
    "INSERT INTO t DEFAULT VALUES RETURNING *",
    "INSERT INTO t (a) SELECT a FROM u RETURNING a",
    "ALTER TABLE t RENAME TO u",
    "ALTER TABLE t ALTER COLUMN a SET DEFAULT now()",
    "ALTER TABLE t ALTER COLUMN a DROP DEFAULT",
    "CREATE TABLE t (a BIGINT DEFAULT 3 NOT NULL, b DATE DEFAULT current_date())",
    "TRUNCATE TABLE t",
    "COPY t (a, b) FROM 'x.csv' (FORMAT csv, HEADER false)",
    "MERGE INTO t USING (SELECT a FROM u) AS s ON t.a = s.a WHEN MATCHED AND s.a > 1 THEN UPDATE SET b = 'x' "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (a) VALUES (s.a) WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "BEGIN TRANSACTION",
    "COMMIT",
    "ROLLBACK WORK",
    "SHOW TABLES",
    "DESCRIBE TABLE t",
    "EXPLAIN SELECT a FROM t",
    "EXPLAIN (why) SELECT a FROM t",
    "EXPLAIN (ANALYZE, why) (SELECT a FROM t)",
    "EXPLAIN (SELECT a FROM t)",
    "SELECT a FROM t WHERE b = :b DEFAULT 'x;y'",
)


@pytest.mark.parametrize("text", VALID)
def test_a_statement_is_read_with_or_without_its_end(text: str) -> None:
    (alone,) = parse_statements(text)
    first, second, third = parse_statements(f"-- a comment; with a semicolon\n;{text};\n{text} ; /* ; */ SHOW VIEWS;")
    assert type(alone) is type(first) is type(second)
    assert type(third).__name__ == "Show"


def test_nothing_is_no_statement() -> None:
    assert parse_statements(" ; -- nothing\n ;") == ()
    assert repr(Database().sql("")) == "there is no statement in the text"


def test_a_query_is_the_users_own_text() -> None:
    statement = parse_statements("SHOW TABLES;\nCREATE VIEW v AS  SELECT a, -- the key\n b FROM t ;")[1]
    assert isinstance(statement, CreateView)
    assert statement.query.text == "SELECT a, -- the key\n b FROM t"


def test_parameters_are_those_whose_values_are_needed() -> None:
    texts = ("SELECT a FROM t WHERE a = :x AND b = ':y'", "CREATE VIEW v AS SELECT a FROM t WHERE a = :x")
    select, view = parse_statements(";".join(texts))
    assert (select.parameters, view.parameters) == (("x",), ())


def test_the_parts_of_a_change_are_read() -> None:
    (insert,) = parse_statements("INSERT INTO t (b, a) VALUES (1, 2), (3, 4)")
    assert isinstance(insert, Insert)
    assert ([each.name for each in insert.columns], len(insert.rows)) == (["b", "a"], 2)  # type: ignore[arg-type]
    (update,) = parse_statements("UPDATE t SET a = 1, t.b = 2")
    assert isinstance(update, Update)
    assert [name.name for name, _ in update.values] == ["a", "b"]
    (merge,) = parse_statements(next(each for each in VALID if each.startswith("MERGE")))
    assert isinstance(merge, Merge)
    assert [(when.rows, when.values is None) for when in merge.whens] == [
        ("both", False),
        ("both", True),
        ("source", False),
        ("target", True),
    ]


REFUSED = [
    ("CREATE VIEW v (a) AS SELECT a FROM t", 13, "name them in the SELECT"),
    ("CREATE OR REPLACE VIEW IF NOT EXISTS v AS SELECT a FROM t", 1, "either OR REPLACE or IF NOT EXISTS"),
    ("CREATE VIEW v", 13, "AS SELECT"),
    ("CREATE VIEW v AS", 15, "AS SELECT"),
    ("CREATE INDEX i ON t (a)", 1, "ivme makes the indexes that views need"),
    ("CREATE ROLE s", 1, "CREATE [OR REPLACE] TABLE"),
    ("DROP TABLE t, u", 1, "DROP TABLE [IF EXISTS] name"),
    ("DROP INDEX i", 1, "DROP TABLE [IF EXISTS] name"),
    ("ALTER TABLE t ALTER COLUMN a SET NOT NULL", 28, "SET DEFAULT value"),
    ("INSERT INTO t BY NAME SELECT a FROM u", 13, "INSERT INTO table"),
    ("UPDATE t SET a = 1 FROM u WHERE t.a = u.a", 20, "MERGE INTO"),
    ("UPDATE t SET u.a = 1", 14, "UPDATE table SET"),
    ("DELETE FROM t USING u WHERE t.a = u.a", 15, "MERGE INTO"),
    ("MERGE INTO t USING u ON t.a = u.a WHEN NOT MATCHED THEN DELETE", 12, "WHEN NOT MATCHED THEN INSERT"),
    ("MERGE INTO t USING t ON t.a = t.a WHEN MATCHED THEN DELETE", 20, "alias"),
    ("COPY t TO 'x.csv'", 1, "pyarrow"),
    ("SHOW COLUMNS", 6, "DESCRIBE"),
    ("EXPLAIN DELETE FROM t", 9, "EXPLAIN (why, analyze) SELECT"),
    ("EXPLAIN (costs) SELECT a FROM t", 10, "EXPLAIN (why, analyze) SELECT"),
    ("EXPLAIN (why", 10, "EXPLAIN (why, analyze) SELECT"),
    ("EXPLAIN (why)", 13, "EXPLAIN (why, analyze) SELECT"),
    ("DESCRIBE SELECT a FROM t", 1, "DESCRIBE and the name"),
    ("COMMIT PREPARED", 8, "BEGIN, COMMIT or ROLLBACK"),
    ("LOCK TABLES t", 1, "begin it with"),
    ("'x'", 1, "begin it with"),
]


@pytest.mark.parametrize(("text", "column", "instead"), REFUSED)
def test_what_is_not_read_says_where_and_what_to_write(text: str, column: int, instead: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_statements(f"SHOW TABLES;\n{text}")
    assert instead in caught.value.instead
    assert (caught.value.line, caught.value.column) == (2, column)


def test_an_open_quote_is_found() -> None:
    with pytest.raises(QueryError, match=r"does not end \(line 2, column 8\)"):
        parse_statements("SHOW TABLES;\nSELECT 'x FROM t")


@pytest.fixture(scope="module")
def db() -> Any:
    made = Database()
    made.sql("CREATE TABLE t (a BIGINT, b STRING, PRIMARY KEY (a)); CREATE TABLE u (a BIGINT, c DOUBLE)")
    made.sql("INSERT INTO t VALUES (1, 'x'), (2, NULL); INSERT INTO u VALUES (1, 1.5), (3, NULL)")
    return made


@pytest.mark.parametrize("seed", range(8))
def test_texts_with_mistakes_raise_errors_of_ivme_only(db: Database, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        parts = re.findall(r"\w+|'[^']*'|[^\w\s]", rng.choice(VALID))
        for _ in range(rng.randrange(1, 3)):
            place = rng.randrange(len(parts))
            match rng.randrange(3):
                case 0:
                    del parts[place : place + 1]
                case 1:
                    parts.insert(place, rng.choice(parts))
                case _:
                    parts[place] = rng.choice(re.findall(r"\w+|[^\w\s]", rng.choice(VALID)))
            if not parts:
                break
        db.sql("BEGIN")
        try:
            db.sql(" ".join(parts))
        except IvmeError:
            pass
        finally:
            if db._session.in_transaction:
                db.sql("ROLLBACK")


def test_a_select_knows_its_place() -> None:
    (found,) = parse_statements("  SELECT a FROM t  ")
    assert isinstance(found, Select)
    assert (found.start, found.end) == (2, 17)
