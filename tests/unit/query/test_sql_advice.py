"""What is written in other systems, or slightly wrong, is answered with what to write here."""

from __future__ import annotations

from typing import Any

import pytest

import ivme


@pytest.mark.parametrize(
    ("text", "given", "message", "instead"),
    [
        (
            "SELECT * FROM t WHERE id = $1",
            {},
            r"the parameter \$1 has a number for a name",
            "write a parameter as :name",
        ),
        (
            "SELECT * FROM t WHERE id = $1",
            {"1": 1},
            "there is no parameter :1 in the text",
            "write a parameter as :name",
        ),
        ("SELECT * FROM t WHERE id = :1", {}, "something is missing", "write a parameter as :name"),
        ("CREATE TABLE x (id serial PRIMARY KEY)", {}, "unknown type 'serial'", "use BIGINT, and give the value"),
        ("CREATE TABLE x (price money)", {}, "unknown type 'money'", r"use DECIMAL\(18, 2\)"),
        ("SELECT TOP 5 * FROM t", {}, "'5' is not expected here", "write LIMIT 5 at the end of the query"),
        ("SELECT id FROM t CONNECT BY PRIOR id = s", {}, "CONNECT BY is not supported here", "write WITH RECURSIVE"),
        ("SELECT ISNULL(id, 0) FROM t", {}, "the function ISNULL is not supported", r"write COALESCE\(a, b\)"),
        ("SELECT s FROM t WHERE s ~ 'a'", {}, "'~' is not expected here", "write a RLIKE 'pattern'"),
        ("SELECT s FROM t WHERE id = @id", {}, "a parameter is not written @id", "write a parameter as :name"),
        ("SELECT s INTO u FROM t", {}, "INTO is not supported", "write CREATE TABLE name AS SELECT"),
        ("DELETE t", {}, "FROM is missing behind DELETE", "write DELETE FROM table"),
        ("CREATE TABLE x (id INT CHECK (id > 0))", {}, "is not supported", "leave it out; CREATE VIEW broken"),
        ("CREATE TABLE x (id INT, CHECK (id > 0))", {}, "is not supported", "leave it out; CREATE VIEW broken"),
        ("SELECT session_window(d, '1 hour') FROM t", {}, "SESSION_WINDOW is not", "number the sessions by LAG"),
        ("SELECT s FROM t WHERE s = open", {}, "there is no column 'open' in t", "if it is a text, write 'open'"),
        ("DELETE FROM t WHERE s IN (open)", {}, "there is no column 'open' in t", "if it is a text, write 'open'"),
        ("SELECT id + 1 AS more FROM t WHERE more > 1", {}, "no column 'more'", "write the expression there"),
        ("SELECT SUM(id) AS n FROM t WHERE n > 1", {}, "no column 'n'", "write HAVING in place of WHERE"),
        ("SELECT SUM(id) AS n FROM (SELECT * FROM t) x WHERE n > 1", {}, "no column 'n'", "write HAVING"),
        ("SELECT LAG(id) OVER (ORDER BY id) AS l FROM t WHERE l > 1", {}, "no column 'l'", "write QUALIFY"),
        ("SET x = 1", {}, "cannot begin with 'SET'", "there are no settings"),
        ("REPLACE INTO t VALUES (1, 'a', NULL)", {}, "cannot begin with 'REPLACE'", "write INSERT OR REPLACE INTO"),
        ("GRANT SELECT ON t TO bob", {}, "cannot begin with 'GRANT'", "tokens of the server"),
        ("CALL f()", {}, "cannot begin with 'CALL'", "there are no procedures"),
        ("CREATE SCHEMA a", {}, "only tables and views can be created", "there is one namespace"),
        ("CREATE FUNCTION f() RETURNS INT RETURN 1", {}, "only tables and views", r"write db.create_function\("),
        ("CREATE TRIGGER g AFTER INSERT ON t", {}, "only tables and views", "view.subscribe"),
        ("INSERT IGNORE INTO t VALUES (1, 'a', NULL)", {}, "'INTO' is not expected", "ON CONFLICT DO NOTHING"),
        ("UPDATE t SET s = 'a' LIMIT 1", {}, "LIMIT is not supported here", "rows have no order"),
        ("SELECT IFF(id = 1, 1, 0) FROM t", {}, "the function IFF is not supported", r"write IF\(condition, a, b\)"),
        ("SELECT SAFE_DIVIDE(id, 0) FROM t", {}, "SAFE_DIVIDE is not supported", r"write a / NULLIF\(b, 0\)"),
        ("SELECT s FORM t", {}, "'t' is not expected here", "write FROM in place of FORM"),
    ],
)
def test_what_to_write_is_said(text: str, given: dict[str, Any], message: str, instead: str) -> None:
    db = ivme.Database()
    db.sql("CREATE TABLE t (id INT, s STRING, d TIMESTAMP)")
    with pytest.raises(ivme.IvmeError, match=message) as caught:
        db.sql(text, **given)
    caught.match(instead)


def test_a_uuid_is_a_text() -> None:
    db = ivme.Database()
    db.sql("CREATE TABLE t (id UUID); INSERT INTO t VALUES ('6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b')")
    assert [("6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b",)] == list(db.sql("SELECT LOWER(id) FROM t").rows())


def test_a_function_of_another_system_is_not_logged_by_the_parser(caplog: pytest.LogCaptureFixture) -> None:
    """sqlglot warned that it loses an argument of TO_CHAR, before ivme refused the text."""
    db = ivme.Database()
    db.sql("CREATE TABLE t (d DATE)")
    with pytest.raises(ivme.IvmeError, match="TO_CHAR is not supported"):
        db.sql("SELECT TO_CHAR(d, 'YYYY') FROM t")
    assert not caplog.records


def test_an_expiry_that_is_a_length_of_time_is_refused() -> None:
    db = ivme.Database()
    db.sql("CREATE TABLE t (d TIMESTAMP)")
    with pytest.raises(ivme.IvmeError, match="expire must be an SQL expression, as ts"):
        db.create_view("v", "SELECT d FROM t", expire="7 days")
