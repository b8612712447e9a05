"""IN lists of many constants, which the kernel looks up in one step: the ends of whole numbers, NULL, and mixtures."""

from __future__ import annotations

import duckdb
import pytest

from ivme.database import Database

ROWS = [(1,), (2,), (3,), (4,), (2**63 - 2,), (-5,), (None,)]
LISTS = [
    "1, 2, 3, 4",
    "1, 2, NULL, 3, 5",
    "9223372036854775806, 1, 2, 3",
    "9223372036854775807, 1, 2, 3",
    "99999999999999999999, 1, 2, 3",
    "-5, -6, 2, 3",
    "1.5, 2.0, 3, 4",
    "1, 2, 3, a",
    "1, 2, 3, a + 1",
    ", ".join(map(str, range(0, 3000, 2))),
]


@pytest.mark.parametrize("word", ["IN", "NOT IN"])
def test_long_lists_find_the_rows_that_duckdb_finds(word: str) -> None:
    db, other = Database(), duckdb.connect()
    db.sql("CREATE TABLE r (a BIGINT)")
    other.execute("CREATE TABLE r (a BIGINT)")
    db.insert("r", ROWS)
    other.executemany("INSERT INTO r VALUES (?)", ROWS)
    for each in LISTS:
        text = f"SELECT a FROM r WHERE a {word} ({each})"
        assert sorted(other.execute(text).fetchall()) == sorted(db.sql(text).rows()), text
