from __future__ import annotations

import pytest

from ivme.errors import ParseError, QueryError, UnsupportedError
from ivme.query.ddl import parse_create_tables
from ivme.query.model import table


def test_columns_types_and_keys_are_read() -> None:
    text = """
        CREATE TABLE IF NOT EXISTS orders (
            id BIGINT NOT NULL PRIMARY KEY COMMENT 'the key', customer INT, price DECIMAL(12, 2), note VARCHAR(20),
            paid BOOLEAN, day DATE, at TIMESTAMP, blob BINARY, rate DOUBLE, total DECIMAL
        );
        CREATE TABLE edge (src STRING, dst STRING, CONSTRAINT pk PRIMARY KEY (src, dst));
    """
    kinds = {"id": "int", "customer": "int", "price": "decimal(12, 2)", "note": "string", "paid": "bool"} | {
        "day": "date",
        "at": "timestamp",
        "blob": "binary",
        "rate": "float",
        "total": "decimal(10, 0)",
    }
    assert parse_create_tables(text) == (
        table("orders", kinds, primary_key="id", not_null="id"),
        table("edge", {"src": "string", "dst": "string"}, primary_key=("src", "dst")),
    )


def test_promises_come_from_table_properties() -> None:
    text = """
        CREATE TABLE a.log (x INT) TBLPROPERTIES ('append_only' = 'true', 'static' = 'false');
        CREATE TABLE d (x INT) TBLPROPERTIES ('static'='TRUE')
    """
    assert parse_create_tables(text) == (
        table("a.log", {"x": "int"}, append_only=True),
        table("d", {"x": "int"}, static=True),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1", "a statement cannot begin with 'SELECT'"),
        ("CREATE VIEW v AS SELECT 1", "the statement does not create a table"),
        ("CREATE TABLE t", "the table has no columns"),
        ("CREATE TABLE t AS SELECT 1 AS x", "CREATE TABLE ... AS is not supported"),
        ("CREATE OR REPLACE TABLE t (a INT)", "OR REPLACE is not supported here"),
        ("CREATE TABLE t (a INT) USING delta", "USING DELTA is not supported"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (a)", "PARTITIONED BY (a) is not supported"),
        ("CREATE TABLE t (a INT) TBLPROPERTIES ('owner'='me')", "'owner'='me' is not supported"),
        ("CREATE TABLE t (a INT) TBLPROPERTIES ('static'='maybe')", "'static'='maybe' is not supported"),
        ("CREATE TABLE t (a INT DEFAULT b)", "this is not supported as a DEFAULT"),
        ("CREATE TABLE t (a INT AUTO_INCREMENT)", "AUTO_INCREMENT of the column a is not supported"),
        ("CREATE TABLE t (a INT, UNIQUE (b))", "table t has no column 'b' to be unique"),
        ("CREATE TABLE t (a INT, CHECK (a > 1))", "CHECK (a > 1) is not supported"),
        ("CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)", "the table has two primary keys"),
        ("CREATE TABLE t (a INT, A INT)", "table t has two columns named 'a'"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (b))", "table t has no column 'b' to be its primary key"),
        ("CREATE TABLE t (a INT); CREATE TABLE T (a INT)", "the table T is created twice"),
        ("CREATE TABLE t (a)", "the column a has no type"),
        ("CREATE TABLE :t (a INT)", "a name is expected here"),
        ("CREATE TABLE db..t (a INT)", "a name is expected here"),
    ],
)
def test_everything_else_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(UnsupportedError) as raised:
        parse_create_tables(text)
    assert raised.value.message == message
    assert raised.value.position is not None
    assert raised.value.instead


@pytest.mark.parametrize(("written", "named"), [("VARIANT", "variant"), ("TIME", "time"), ("ARRAY<TIME>", "time")])
def test_a_type_that_there_is_not_is_refused(written: str, named: str) -> None:
    with pytest.raises(QueryError, match=f"unknown type '{named}'"):
        parse_create_tables(f"CREATE TABLE t (a {written})")


def test_arrays_and_structs_are_types_of_columns() -> None:
    (made,) = parse_create_tables("CREATE TABLE t (a ARRAY<INT>, b STRING[], c STRUCT<x: INT, `y z`: ARRAY<DECIMAL>>)")
    shown = [str(column.type) for column in made.columns]
    assert ["array<int>", "array<string>", "struct<x int, `y z` array<decimal(10,0)>>"] == shown


def test_broken_sql_is_a_parse_error() -> None:
    with pytest.raises(ParseError):
        parse_create_tables("CREATE TABLE t (a INT,, b INT)")


def test_a_table_that_is_created_twice_is_refused_where_it_is_created_again() -> None:
    text = "CREATE TABLE t (a INT); CREATE TABLE u (a INT); CREATE TABLE T (b INT)"
    with pytest.raises(UnsupportedError) as raised:
        parse_create_tables(text)
    assert raised.value.position == text.index("T (b")
