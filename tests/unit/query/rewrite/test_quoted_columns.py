"""A text in double quotes that names a column is refused: Spark reads a text there, others a column."""

from __future__ import annotations

import pytest

import ivme


@pytest.fixture
def db() -> ivme.Database:
    made = ivme.Database()
    made.create_table("t", {"a": "int", "s": "string"})
    return made


@pytest.mark.parametrize(
    "query",
    [
        'SELECT "a" FROM t',
        "SELECT s FROM t WHERE \"S\" = 'x'",
        'SELECT COUNT("a") AS n FROM t',
        'SELECT s FROM (SELECT s, a + 1 AS next FROM t) WHERE "next" = s',
        'SELECT s FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.s = "a")',
    ],
)
def test_a_column_in_double_quotes_is_refused_with_both_ways_to_write_it(db: ivme.Database, query: str) -> None:
    with pytest.raises(ivme.IvmeError, match="is a text in Spark's SQL, and there is a column of that name") as refused:
        db.create_view("v", query)
    assert "for the column" in str(refused.value)
    assert "for the text" in str(refused.value)


@pytest.mark.parametrize("query", ['SELECT a FROM t WHERE s = "x"', 'SELECT a AS "k" FROM t', "SELECT `a` FROM t"])
def test_other_texts_and_names_are_taken(db: ivme.Database, query: str) -> None:
    db.insert("t", [(1, "x")])
    assert [(1,)] == list(db.create_view("v", query))
