"""PEP 249 over ivme, as pandas and other clients use it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

from ivme.client import dbapi
from ivme.database import Database


@pytest.fixture
def connection() -> Iterator[dbapi.Connection]:
    with dbapi.connect() as made:
        cursor = made.cursor()
        cursor.execute("CREATE TABLE t (a BIGINT, b STRING, p DECIMAL(8, 2))")
        cursor.execute("INSERT INTO t VALUES (1, 'x', 1.5), (2, NULL, NULL)")
        made.commit()
        yield made


def test_the_module_says_what_it_is() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 1, "named")


def test_rows_are_fetched(connection: dbapi.Connection) -> None:
    cursor = connection.execute("SELECT a, b, p FROM t ORDER BY a")
    assert [each[0] for each in cursor.description or ()] == ["a", "b", "p"]
    assert [each[4:6] for each in cursor.description or ()][2] == (8, 2)
    assert cursor.rowcount == 2
    assert cursor.fetchone() == (1, "x", Decimal("1.50"))
    assert cursor.fetchmany(5) == [(2, None, None)]
    assert (cursor.fetchall(), cursor.fetchone()) == ([], None)
    assert list(connection.execute("SELECT a FROM t WHERE b = :b", {"b": "x"})) == [(1,)]


def test_changes_are_made_by_commit(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.executemany("INSERT INTO t (a) VALUES (:a)", [{"a": 3}, {"a": 4}])
    assert (cursor.rowcount, cursor.description) == (2, None)
    with pytest.raises(dbapi.ProgrammingError, match="was not a query"):
        cursor.fetchone()
    connection.rollback()
    assert len(connection.execute("SELECT a FROM t").fetchall()) == 2
    cursor.execute("DELETE FROM t WHERE a = 1")
    connection.commit()
    connection.commit()
    assert connection.execute("SELECT a FROM t").fetchall() == [(2,)]


def test_a_definition_commits_what_was_before(connection: dbapi.Connection) -> None:
    connection.execute("INSERT INTO t (a) VALUES (3)")
    connection.execute("CREATE VIEW v AS SELECT a FROM t")
    connection.rollback()
    assert sorted(connection.execute("SELECT a FROM v").fetchall()) == [(1,), (2,), (3,)]


def test_connections_of_one_database_have_their_own_transactions() -> None:
    db = Database()
    db.create_table("t", {"a": "int"})
    first, second = dbapi.connect(db), dbapi.connect(db, autocommit=True)
    first.execute("INSERT INTO t VALUES (1)")
    second.execute("INSERT INTO t VALUES (2)")
    assert second.execute("SELECT * FROM t").fetchall() == [(2,)]
    first.commit()
    assert sorted(second.execute("SELECT * FROM t")) == [(1,), (2,)]
    first.close()
    assert db.tables == ("t",)


def test_what_is_not_committed_is_given_up(tmp_path: Path) -> None:
    with dbapi.connect(tmp_path / "db") as connection:
        connection.execute("CREATE TABLE t (a BIGINT)")
        connection.execute("INSERT INTO t VALUES (1)")
    connection = dbapi.connect(tmp_path / "db")
    connection.execute("INSERT INTO t VALUES (2)")
    connection.close()
    with pytest.raises(dbapi.InterfaceError):
        connection.cursor()
    with dbapi.connect(tmp_path / "db") as again:
        assert again.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_errors_are_those_of_pep_249(connection: dbapi.Connection) -> None:
    with pytest.raises(dbapi.ProgrammingError, match="there is no column 'c'"):
        connection.execute("SELECT c FROM t")
    with pytest.raises(dbapi.ProgrammingError, match="named"):
        connection.execute("SELECT a FROM t WHERE a = :a", [1])
    with pytest.raises(connection.DataError):
        connection.execute("SELECT 1 / (a - 1) AS x FROM t")
    with pytest.raises(dbapi.ProgrammingError, match="one statement"):
        connection.execute("SELECT a FROM t; SELECT b FROM t")
    cursor = connection.cursor()
    cursor.close()
    with pytest.raises(dbapi.InterfaceError):
        cursor.execute("SELECT a FROM t")


@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy:UserWarning")
def test_pandas_reads_by_it(connection: dbapi.Connection) -> None:
    found = pd.read_sql("SELECT a, b FROM t WHERE a > :least ORDER BY a", connection, params={"least": 0})
    assert found.to_dict("list") == {"a": [1, 2], "b": ["x", None]}
