"""PostgreSQL's protocol with the real clients: psql, psycopg, SQLAlchemy and pandas."""

from __future__ import annotations

import datetime
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import ServeError
from ivme.serve.server import Server, running
from ivme.serve.settings import Settings

psycopg = pytest.importorskip("psycopg")

TOKEN = "a token of twenty-four letters"
_SCRIPT = """
    CREATE TABLE items (id BIGINT PRIMARY KEY, name STRING, price DECIMAL(8, 2));
    CREATE TABLE sales (item BIGINT, day DATE, n BIGINT);
    CREATE VIEW totals AS SELECT item, SUM(n) AS n FROM sales GROUP BY item;
    INSERT INTO items VALUES (1, 'pen', 2.50), (2, 'ink', 8);
    INSERT INTO sales VALUES (1, DATE '2024-05-01', 3), (2, DATE '2024-05-01', 1), (1, DATE '2024-05-02', 4);
"""


@pytest.fixture
def db() -> Iterator[Database]:
    with Database() as made:
        made.sql(_SCRIPT)
        yield made


@pytest.fixture
def server(db: Database) -> Iterator[Server]:
    with running(db, Settings(port=0, pg_port=0, token=TOKEN)) as made:
        yield made


def _connect(server: Server, **more: Any) -> Any:
    options = {"password": TOKEN, "autocommit": True, "user": "me", "dbname": "ivme", **more}
    return psycopg.connect(host="127.0.0.1", port=server.pg_port, connect_timeout=20, **options)


def _psql(server: Server, *commands: str, token: str = TOKEN, bare: bool = True) -> tuple[int, str]:
    if shutil.which("psql") is None:
        pytest.skip("psql is not installed")
    given = [word for command in commands for word in ("-c", command)]
    where = ["-h", "127.0.0.1", "-p", str(server.pg_port), "-U", "me", "-d", "ivme", "-A", *(["-t"] if bare else [])]
    ran = subprocess.run(
        ["psql", "-X", *where, *given],
        env={**os.environ, "PGPASSWORD": token},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr


def test_psql_reads_writes_and_describes(server: Server, db: Database) -> None:
    asked = [
        "SELECT name, n FROM items JOIN totals ON id = item ORDER BY n DESC",
        "INSERT INTO sales VALUES (2, DATE '2024-05-03', 10)",
        "SELECT n FROM totals WHERE item = 2",
        r"\dt",
        r"\dv",
        r"\d items",
        r"\l",
        r"\dn",
        r"\du",
        r"\di",
        r"\df",
        "SELECT version()",
        "SHOW server_version",
    ]
    code, told = _psql(server, *asked)
    assert 0 == code, told
    lines = told.splitlines()
    assert ["pen|7", "ink|1", "INSERT 0 1", "11"] == lines[:4]
    assert {"public|items|table|ivme", "public|sales|table|ivme", "public|totals|view|ivme"} <= set(lines)
    described = _psql(server, r"\d items", bare=False)[1].splitlines()
    assert {"id|bigint||not null|", "price|numeric(8,2)|||", '    "items_pkey" PRIMARY KEY, btree (id)'} <= set(
        described
    )
    assert "PostgreSQL 15.0 (ivme)" in lines
    assert {(1, 7), (2, 11)} == set(db.view("totals"))


def test_a_wrong_password_and_a_wrong_statement_are_told(server: Server) -> None:
    assert "the password is wrong" in _psql(server, "SELECT 1", token="something else altogether")[1]
    code, told = _psql(server, "SELECT nothing FROM items")
    assert 1 == code
    assert "nothing" in told
    assert "line 1" in told


def test_values_of_every_type_go_both_ways(server: Server, db: Database) -> None:
    kinds = "b BOOLEAN, i BIGINT, f DOUBLE, d DECIMAL(20, 6), s STRING, day DATE, t TIMESTAMP, raw BINARY"
    db.sql(f"CREATE TABLE kinds ({kinds})")
    row = (
        *(True, -(2**62), 1.5e-7, Decimal("-12345678901234.050000"), 'it\'s \\n "ü" $1'),
        *(datetime.date(1969, 2, 28), datetime.datetime(2024, 2, 29, 23, 59, 59, 123456), b"\x00\xff"),
    )
    rows = [row, (None,) * 8, (False, 0, float("inf"), Decimal("0.000001"), "", datetime.date(2000, 1, 1), None, b"")]
    with _connect(server) as connection:
        for each in rows:
            connection.execute("INSERT INTO kinds VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", each)
        for binary in (False, True):
            with connection.cursor(binary=binary) as cursor:
                assert set(rows) == set(cursor.execute("SELECT * FROM kinds").fetchall())
                cursor.execute('SELECT "i" FROM "public"."kinds" WHERE s = %s AND day = %s', (row[4], row[5]))
                assert [(row[1],)] == cursor.fetchall()
    assert set(rows) == set(db.table("kinds"))


def test_values_never_become_a_part_of_the_text(server: Server, db: Database) -> None:
    hostile = "x'); DROP TABLE items; --"
    with _connect(server) as connection:
        connection.execute("INSERT INTO items VALUES (%s, %s, NULL)", (7, hostile))
        assert (hostile,) == connection.execute("SELECT name FROM items WHERE name = %s", (hostile,)).fetchone()
    assert "items" in db.tables


def test_parameters_may_stand_without_spaces_between_them(server: Server) -> None:
    with _connect(server) as connection:
        connection.execute("INSERT INTO items VALUES (%s,%s,%s)", (7, "$1,$2", Decimal("1.25")))
        found = connection.execute("SELECT '$1,$2' AS t,id FROM items WHERE id=%s AND name=%s", (7, "$1,$2")).fetchall()
    assert found == [("$1,$2", 7)]


def test_transactions_are_done_as_a_whole_or_not_at_all(server: Server, db: Database) -> None:
    with _connect(server, autocommit=False) as connection:
        connection.execute("INSERT INTO items VALUES (3, 'cap', 1)")
        connection.execute("DELETE FROM items WHERE id = 1")
        assert {1, 2} == {row[0] for row in db.table("items")}
        connection.commit()
        assert {2, 3} == {row[0] for row in db.table("items")}
        connection.execute("DELETE FROM items WHERE id = 2")
        connection.rollback()
        connection.execute("DELETE FROM items WHERE id = 2")
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT * FROM nowhere")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.rollback()
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute("SELECT nothing FROM items")
        connection.rollback()
        connection.execute("CREATE TABLE more (k BIGINT)")
        connection.execute("DROP TABLE more")
    assert {2, 3} == {row[0] for row in db.table("items")}


def test_savepoints_undo_a_part_of_a_transaction(server: Server, db: Database) -> None:
    with _connect(server) as connection:
        with connection.transaction():
            connection.execute("INSERT INTO items VALUES (3, 'cap', 1)")
            with pytest.raises(psycopg.Error):
                _fail_within(connection)
            with connection.transaction():
                connection.execute("INSERT INTO items VALUES (5, 'nib', 1)")
            connection.execute("INSERT INTO items VALUES (6, 'tip', 1)")
        with pytest.raises(psycopg.Error, match="none has begun"):
            connection.execute("SAVEPOINT a")
    assert {1, 2, 3, 5, 6} == {row[0] for row in db.table("items")}


def _fail_within(connection: Any) -> None:
    with connection.transaction():
        connection.execute("INSERT INTO items VALUES (4, 'lid', 1)")
        connection.execute("SELECT * FROM nowhere")


def test_a_client_that_leaves_within_a_transaction_changes_nothing(server: Server, db: Database) -> None:
    connection = _connect(server, autocommit=False)
    connection.execute("DELETE FROM items")
    connection.close()
    assert 2 == len(db.table("items"))


def test_rows_are_fetched_in_parts_by_a_prepared_statement(server: Server, db: Database) -> None:
    db.create_table("numbers", {"n": "int"})
    db.insert("numbers", [(n,) for n in range(5000)])
    with _connect(server, prepare_threshold=0) as connection:
        for least in (10, 4990):
            found = connection.execute("SELECT n FROM numbers WHERE n >= %s", (least,)).fetchall()
            assert set(range(least, 5000)) == {row[0] for row in found}
        assert 5000 == connection.execute("SELECT COUNT(*) AS n FROM numbers").fetchone()[0]


def test_several_clients_write_at_once(server: Server, db: Database) -> None:
    def write(item: int) -> None:
        with _connect(server) as connection:
            for n in range(20):
                connection.execute("INSERT INTO sales VALUES (%s, NULL, %s)", (item, n))

    writers = [threading.Thread(target=write, args=(item,)) for item in range(10, 14)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert {(item, sum(range(20))) for item in range(10, 14)} <= set(db.view("totals"))


def test_files_are_not_read_and_pipelines_are_not_changed(db: Database, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("id,name,price\n9,x,1\n")
    with running(db, Settings(port=0, pg_port=0)) as server, _connect(server) as connection:
        for text in (f"COPY items FROM '{secret}'", f"CREATE TABLE stolen AS SELECT * FROM '{secret}'"):
            with pytest.raises(psycopg.Error):
                connection.execute(text)
        for text in (f"read_csv('{secret}')", f"'{secret}'", f"read_text('{secret}')"):
            with pytest.raises(psycopg.Error):
                connection.execute(f"SELECT * FROM pg_catalog.pg_class, {text}")
        with pytest.raises(psycopg.Error, match="only be read"):
            connection.execute("WITH x AS (SELECT 1) INSERT INTO pg_catalog.pg_class (oid) VALUES (1)")
        with pytest.raises(psycopg.Error, match="catalog is not understood"):
            connection.execute("SELECT oid FROM pg_class WHERE oid = (SELECT 1 FROM glob('/etc/*'))")
    with running(db, Settings(port=0, pg_port=0, owner="a pipeline runs")) as server, _connect(server) as connection:
        assert (2,) == connection.execute("SELECT COUNT(*) AS n FROM items").fetchone()
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match="a pipeline runs"):
            connection.execute("DELETE FROM items")
    assert {"items", "sales"} == set(db.tables)


def test_changes_answer_with_rows_by_returning(server: Server, db: Database) -> None:
    db.sql("CREATE TABLE notes (id BIGINT PRIMARY KEY, text STRING DEFAULT 'none')")
    with _connect(server) as connection:
        cursor = connection.execute("INSERT INTO notes (id) VALUES (1), (2) RETURNING *")
        assert (2, [(1, "none"), (2, "none")]) == (cursor.rowcount, cursor.fetchall())
        for number in range(3, 12):  # the driver prepares a statement that it has seen often
            cursor = connection.execute("INSERT INTO notes (id) VALUES (%s) RETURNING id + 1 AS next", [number])
            assert ("next", (number + 1,)) == (cursor.description[0].name, cursor.fetchone())
        cursor = connection.execute("UPDATE notes SET text = %s WHERE id > 9 RETURNING id, text", ["x"])
        assert [(10, "x"), (11, "x")] == sorted(cursor.fetchall())
        cursor = connection.execute("DELETE FROM notes WHERE id = %s RETURNING text", [1])
        assert ("DELETE 1", ("none",)) == (cursor.statusmessage, cursor.fetchone())
        assert [(10,)] == connection.execute("SELECT COUNT(*) AS n FROM notes").fetchall()
        (described,) = connection.execute(
            "SELECT column_default FROM information_schema.columns WHERE table_name = 'notes' AND column_name = 'text'"
        ).fetchall()
        assert ("'none'",) == described
    db.drop_table("notes")


def test_the_user_reader_has_a_token_with_which_nothing_is_changed(db: Database) -> None:
    reading = "another one, only for reading"
    with running(db, Settings(port=0, pg_port=0, token=TOKEN, read_token=reading)) as server:
        with _connect(server, user="reader", password=reading, autocommit=False) as connection:
            assert (2,) == connection.execute("SELECT COUNT(*) AS n FROM items").fetchone()
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="lacks the scope write:items"):
                connection.execute("DELETE FROM items")
        for user, token in (("reader", TOKEN), ("me", reading)):
            with pytest.raises(psycopg.OperationalError, match="password is wrong"):
                _connect(server, user=user, password=token)


def test_tls_is_spoken_and_then_nothing_else(db: Database, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    named = ["-subj", "/CN=localhost", "-keyout", str(key), "-out", str(certificate), "-days", "2"]
    subprocess.run([*made, *named], check=True, capture_output=True)
    settings = Settings(port=0, pg_port=0, token=TOKEN, tls_certificate=str(certificate), tls_key=str(key))
    with running(db, settings) as server:
        with _connect(server, sslmode="require") as connection:
            assert connection.pgconn.ssl_in_use
            assert (2,) == connection.execute("SELECT COUNT(*) AS n FROM items").fetchone()
        with pytest.raises(psycopg.OperationalError, match="TLS only"):
            _connect(server, sslmode="disable")
    with pytest.raises(ServeError, match="cannot be used"):
        Settings(tls_certificate=str(tmp_path / "none.pem")).check()


def test_sqlalchemy_and_pandas_read_through_the_dialect_of_postgresql(server: Server) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    import pandas

    address = sqlalchemy.URL.create(
        "postgresql+psycopg", "me", TOKEN, host="127.0.0.1", port=server.pg_port, database="ivme"
    )
    engine = sqlalchemy.create_engine(address)
    inspected = sqlalchemy.inspect(engine)
    assert {"items", "sales"} == set(inspected.get_table_names())
    assert ["totals"] == inspected.get_view_names()
    assert ["id", "name", "price"] == [column["name"] for column in inspected.get_columns("items")]
    assert ["id"] == inspected.get_pk_constraint("items")["constrained_columns"]
    frame = pandas.read_sql("SELECT item, n FROM totals WHERE n > %(least)s", engine, params={"least": 3})
    assert [{"item": 1, "n": 7}] == frame.to_dict("records")
    reflected = sqlalchemy.Table("items", sqlalchemy.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        query = sqlalchemy.select(reflected.c.name).where(reflected.c.price > 5)
        assert [("ink",)] == [tuple(row) for row in connection.execute(query)]
    engine.dispose()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT 7 / 2, 7 / 2.0 > 3.4, extract(dow FROM DATE '2026-11-15')", (3, True, 0)),
        ("SELECT SUM(n / 2) FROM sales", (3,)),  # 3, 1 and 4
        ("SELECT MAX(n / 2) FROM totals", (3,)),
        ("SELECT round(2.5::double precision), log(100)", (2.0, 2.0)),
        ("SELECT round(2.5), round(AVG(n) - 0.1666666, 1), NULL::int FROM sales", (Decimal(3), 2.5, None)),
        ("SELECT SUM(n) / COUNT(*) > 2.6, COUNT(*) / 2 FROM sales", (True, 1)),  # a sum of bigint is numeric
        ("SELECT $1::int, $2 || 'x'", (5, "ax")),
    ],
)
def test_a_query_means_what_it_means_in_postgresql(server: Server, query: str, expected: tuple[Any, ...]) -> None:
    with _connect(server) as client:
        cursor = psycopg.RawCursor(client)
        assert expected == cursor.execute(query, (5, "a") if "$1" in query else None).fetchone()


def test_a_query_that_would_mean_something_else_is_refused_unless_the_client_wants_the_sql_of_ivme(
    server: Server,
) -> None:
    with _connect(server) as client:
        with pytest.raises(psycopg.Error, match="rounds in postgres, and cuts off in Spark"):
            client.execute("SELECT 1.5::int")
        client.execute("SET dialect TO spark")
        assert (1, 3.5, "spark") == (
            *client.execute("SELECT 1.5::int, 7 / 2").fetchone(),
            *client.execute("SHOW dialect").fetchone(),
        )
        client.execute("SET dialect TO DEFAULT")
        assert (3,) == client.execute("SELECT 7 / 2").fetchone()
        with pytest.raises(psycopg.Error, match="dialect cannot be 'duckdb' here; it is one of postgres, spark"):
            client.execute("SET dialect TO duckdb")


def test_any_takes_a_list(server: Server) -> None:
    with _connect(server) as client:
        query = "SELECT id FROM items WHERE id = ANY(%s) ORDER BY id"
        assert [(1,), (2,)] == client.execute(query, ([1, 2, 7],)).fetchall()
        assert [] == client.execute(query, ([],)).fetchall()
        names = ["pen", 'a "quoted", {one}\\']
        assert [(1,)] == client.execute("SELECT id FROM items WHERE name = ANY(%s)", (names,)).fetchall()
