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
        ("SELECT s FORM t", {}, "'t' is not expected here", "write FROM in place of FORM"),
    ],
)
def test_what_to_write_is_said(text: str, given: dict[str, Any], message: str, instead: str) -> None:
    db = ivme.Database()
    db.sql("CREATE TABLE t (id INT, s INT)")
    with pytest.raises(ivme.IvmeError, match=message) as caught:
        db.sql(text, **given)
    caught.match(instead)


def test_a_uuid_is_a_text() -> None:
    db = ivme.Database()
    db.sql("CREATE TABLE t (id UUID); INSERT INTO t VALUES ('6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b')")
    assert [("6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b",)] == list(db.sql("SELECT LOWER(id) FROM t").rows())
