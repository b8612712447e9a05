"""Tokens with scopes by view and table, over HTTP, PostgreSQL's protocol and the client of Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

import ivme
from ivme.client.connection import RemoteError
from ivme.database import Database
from ivme.errors import ServeError
from ivme.serve.grants import Grant, read_grant, read_grants
from ivme.serve.server import Server, running
from ivme.serve.settings import Settings

TOKEN = "a token of twenty-four letters"
SHOP = read_grant("shop", "the token of the shop's till", ["read:Revenue", "write:sales"])
STAFF = read_grant("staff", "the token of those who plan", ["read:*", "define"])
_SCRIPT = """
    CREATE TABLE sales (item STRING, n BIGINT);
    CREATE TABLE salaries (person STRING PRIMARY KEY, pay BIGINT);
    CREATE VIEW revenue AS SELECT item, SUM(n) AS n FROM sales GROUP BY item;
    CREATE VIEW payroll AS SELECT SUM(pay) AS pay FROM salaries;
    CREATE VIEW edges AS SELECT item AS a, item AS b FROM sales;
    INSERT INTO sales VALUES ('pen', 3);
    INSERT INTO salaries VALUES ('Ann', 100);
"""

ALLOWED = [
    "SELECT * FROM revenue",
    "SELECT r.n FROM REVENUE r WHERE r.item = 'pen'",
    "WITH top AS (SELECT item FROM revenue) SELECT COUNT(*) AS n FROM top",
    "INSERT INTO sales VALUES ('ink', 1)",
    "INSERT INTO sales SELECT item, n FROM revenue",
    "EXPLAIN SELECT item FROM revenue WHERE n > 1",
    "DESCRIBE sales",
    "BEGIN; INSERT INTO sales VALUES ('cap', 1); COMMIT",
    "TRUNCATE TABLE sales",
]
REFUSED = {
    "SELECT * FROM sales": "read:sales",
    "SELECT * FROM payroll": "read:payroll",
    "SELECT item FROM revenue WHERE n > (SELECT MAX(pay) FROM salaries)": "read:salaries",
    "WITH salaries AS (SELECT * FROM salaries) SELECT pay FROM salaries": "read:salaries",
    "WITH a AS (SELECT pay FROM salaries) SELECT * FROM a": "read:salaries",
    "SELECT n FROM revenue UNION ALL SELECT pay FROM salaries": "read:salaries",
    "INSERT INTO sales SELECT person, pay FROM salaries": "read:salaries",
    "INSERT INTO salaries VALUES ('Bob', 1)": "write:salaries",
    "UPDATE sales SET n = 0": "read:sales",
    "DELETE FROM sales WHERE n > 1": "read:sales",
    "DELETE FROM salaries": "write:salaries",
    "MERGE INTO sales USING salaries ON item = person WHEN MATCHED THEN DELETE": "read:sales",
    "EXPLAIN SELECT pay FROM salaries": "read:salaries",
    "DESCRIBE salaries": "read:salaries",
    "CREATE TABLE other (a BIGINT)": "define",
    "CREATE VIEW other AS SELECT item FROM revenue": "define",
    "DROP VIEW payroll": "define",
    "ALTER TABLE sales ADD COLUMN m BIGINT": "define",
    "CREATE TABLE other AS SELECT * FROM revenue": "define",
}


@pytest.fixture(scope="module")
def db() -> Iterator[Database]:
    with Database() as made:
        made.sql(_SCRIPT)
        yield made


@pytest.fixture(scope="module")
def server(db: Database) -> Iterator[Server]:
    settings = Settings(port=0, pg_port=0, token=TOKEN, read_token="this one is for reading", tokens=(SHOP, STAFF))
    with running(db, settings) as made:
        yield made


def _address(server: Server) -> str:
    return f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"


def _client(server: Server, grant: Grant) -> httpx.Client:
    return httpx.Client(base_url=_address(server), headers={"Authorization": f"Bearer {grant.token}"}, timeout=60)


def _connect(server: Server, grant: Grant) -> psycopg.Connection[Any]:
    return psycopg.connect(
        host="127.0.0.1", port=server.pg_port, dbname="ivme", user=grant.name, password=grant.token, autocommit=True
    )


def test_statements_need_the_scopes_of_what_they_read_change_and_define(server: Server, db: Database) -> None:
    before = sorted(db.table("salaries"))
    with _client(server, SHOP) as client:
        for text, scope in REFUSED.items():
            found = client.post("/sql", json={"sql": text})
            assert (403, True) == (found.status_code, f"lacks the scope {scope};" in found.text), (text, found.text)
        for text in ALLOWED:
            assert 200 == client.post("/sql", json={"sql": text}).status_code, text
    assert before == sorted(db.table("salaries"))
    db.sql("TRUNCATE TABLE sales; INSERT INTO sales VALUES ('pen', 3)")


def test_postgresqls_clients_have_the_scopes_of_their_user(server: Server) -> None:
    with _connect(server, SHOP) as connection:
        assert [("pen", 3)] == connection.execute("SELECT * FROM revenue").fetchall()
        for text, scope in REFUSED.items():
            if text.startswith("DESCRIBE"):
                continue
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match=f"lacks the scope {scope};"):
                connection.execute(text)
        listed = connection.execute("SELECT relname FROM pg_catalog.pg_class WHERE relkind IN ('r', 'v')").fetchall()
        assert {("sales",), ("revenue",)} == set(listed)
        assert [("sales",)] == [row[:1] for row in connection.execute("SHOW TABLES").fetchall()]
    with _connect(server, STAFF) as connection:
        assert (100,) == connection.execute("SELECT pay FROM payroll").fetchone()
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="lacks the scope write:sales"):
            connection.execute("INSERT INTO sales VALUES ('x', 1)")
    with pytest.raises(psycopg.OperationalError, match="password is wrong"):
        _connect(server, Grant("staff", SHOP.token, frozenset()))


def test_every_path_of_http_asks_for_its_scope(server: Server) -> None:
    rows: dict[str, Any] = {"insert": [["Eve", 1]]}
    refused: list[tuple[str, str, Any, str]] = [
        ("GET", "/views/payroll", None, "read:payroll"),
        ("GET", "/views/PayRoll/changes", None, "read:PayRoll"),
        ("GET", "/views/payroll/stats", None, "read:payroll"),
        ("GET", "/views/payroll/explain", None, "read:payroll"),
        ("GET", "/tables/sales", None, "read:sales"),
        ("POST", "/tables/salaries/changes", rows, "write:salaries"),
        ("POST", "/batch", {"changes": {"sales": {"insert": []}, "salaries": rows}}, "write:salaries"),
        ("POST", "/views", {"name": "v", "query": "SELECT n FROM revenue"}, "define"),
        ("POST", "/explain", {"query": "SELECT pay FROM salaries"}, "read:salaries"),
        ("POST", "/explain", {"query": "Q(P) = salaries(X, P)"}, "read:salaries"),
        ("POST", "/explain", {"query": "Q(X, Y) = closure(edges)(X, Y)"}, "read:edges"),
        ("DELETE", "/views/payroll", None, "define"),
        ("DELETE", "/tables/sales", None, "define"),
        ("GET", "/metrics", None, "read:*"),
    ]
    with _client(server, SHOP) as client:
        for method, path, body, scope in refused:
            found = client.request(method, path, json=body)
            assert (403, True) == (found.status_code, f"lacks the scope {scope};" in found.text), (path, found.text)
        assert [["pen", 3]] == client.get("/views/revenue").json()["rows"]
        assert 200 == client.post("/explain", json={"query": "SELECT n FROM revenue"}).status_code
        assert ["revenue"] == [each["name"] for each in client.get("/views").json()]
        assert ["sales"] == [each["name"] for each in client.get("/tables").json()]
        stats = client.get("/stats").json()
        assert (["sales"], ["revenue"]) == tuple([each["name"] for each in stats[kind]] for kind in ("tables", "views"))
        assert "/views/payroll" not in client.get("/openapi.json").json()["paths"]
        assert {"name": "shop", "scopes": ["read:revenue", "write:sales"]} == client.get("/token").json()


def test_the_client_of_python_is_told_the_missing_scope(server: Server) -> None:
    with ivme.connect(_address(server), token=SHOP.token) as remote:
        assert (("read:revenue", "write:sales"), ("sales",), ("revenue",)) == (
            remote.scopes,
            remote.tables,
            remote.views,
        )
        assert [("pen", 3)] == list(remote.view("revenue"))
        with pytest.raises(RemoteError, match="lacks the scope read:sales"):
            remote.contents("sales")
        with pytest.raises(RemoteError, match="lacks the scope define"):
            remote.create_view("v", "SELECT n FROM revenue")


def test_a_file_of_tokens_is_read_and_what_is_wrong_with_it_is_said_without_tokens(tmp_path: Path) -> None:
    file = tmp_path / "tokens.yml"
    file.write_text('shop:\n  token: "0123456789abcdef"\n  scopes: ["read:Revenue", write:sales]\n')
    (found,) = read_grants(file)
    assert ("shop", frozenset({"read:revenue", "write:sales"})) == (found.name, found.scopes)
    assert "0123456789abcdef" not in repr(found)
    for text, message in {
        "shop: [0123456789abcdef": "cannot be read",
        "- 0123456789abcdef": "must map names",
        "shop: {token: 0123456789abcdef}": "needs a token and its scopes",
        "shop: {token: 0123456789abcdef, scopes: all}": "a list of",
        "shop: {token: 0123456789abcdef, scopes: [revenue]}": "has the scope 'revenue'",
        "reader: {token: 0123456789abcdef, scopes: []}": "its own name",
    }.items():
        file.write_text(text)
        with pytest.raises(ServeError, match=message) as caught:
            read_grants(file)
        assert "0123456789abcdef" not in str(caught.value)
    with pytest.raises(ServeError, match="same token"):
        Settings(token=TOKEN, tokens=(SHOP, Grant("other", SHOP.token, frozenset()))).check()
    with pytest.raises(ServeError, match="set IVME_TOKEN to at least 16 characters"):
        Settings(tokens=(SHOP,)).check()
    with pytest.raises(ServeError, match="shorter than 16"):
        Settings(token=TOKEN, tokens=(read_grant("till", "short", []),)).check()
