"""The comparison with DuckDB that the corpora rely on: what it must notice, and what it must let pass."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.corpora.changes import Contents
from benchmarks.corpora.comparing import ordered_by, without_limit
from benchmarks.corpora.measuring import connected, differs

ROWS = [(1, 2.5), (2, 2.5), (3, None), (3, None)]
TABLES = {"r": pa.table({"a": [row[0] for row in ROWS], "b": [row[1] for row in ROWS]})}


@pytest.mark.parametrize(
    ("ours", "text"),
    [
        (ROWS, "SELECT a, b FROM r"),
        (ROWS[::-1], "SELECT a, b FROM r"),
        ([(a, None if b is None else Decimal("2.5000001")) for a, b in ROWS], "SELECT a, b FROM r"),
        ([(2, 2.5), (3, None)], "SELECT a, b FROM r ORDER BY b DESC LIMIT 2 OFFSET 1"),
        ([(1, 2.5)], "SELECT a, b FROM r WHERE b > 0 ORDER BY b LIMIT 1"),
        ([(2, 2.5)], "SELECT a, b FROM r WHERE b > 0 ORDER BY b LIMIT 1"),
    ],
)
def test_rows_that_sql_allows_are_right(ours: list[Any], text: str) -> None:
    assert differs(ours, text, connected(TABLES)) == ""


@pytest.mark.parametrize(
    ("ours", "text"),
    [
        (ROWS[:3], "SELECT a, b FROM r"),
        ([*ROWS[:3], (4, None)], "SELECT a, b FROM r"),
        ([*ROWS[1:], (1, 2.6)], "SELECT a, b FROM r"),
        (ROWS[::-1], "SELECT a, b FROM r ORDER BY a"),
        ([(3, None)], "SELECT a, b FROM r WHERE b > 0 ORDER BY b LIMIT 1"),
        ([(2, 2.5)], "SELECT a, b FROM r ORDER BY a LIMIT 1"),
        ([], "SELECT a, b FROM r LIMIT 1"),
    ],
)
def test_rows_that_sql_does_not_allow_are_wrong(ours: list[Any], text: str) -> None:
    assert differs(ours, text, connected(TABLES)) != ""


def test_the_limit_and_the_order_of_the_query_itself_are_taken() -> None:
    text = "SELECT a AS x, b FROM (SELECT a, b FROM r ORDER BY b LIMIT 3) t ORDER BY b, 1, a + 1 LIMIT 2"
    assert without_limit(text) == "SELECT a AS x, b FROM (SELECT a, b FROM r ORDER BY b LIMIT 3) t ORDER BY b, 1, a + 1"
    assert ordered_by(text) == (1, 0)
    assert without_limit("SELECT a FROM (SELECT a FROM r LIMIT 3) t") == ""


def test_changes_leave_what_they_say() -> None:
    table = pa.table({"a": list(range(1000)), "b": [i % 7 for i in range(1000)]})
    contents = Contents({"r": table})
    left = 0
    for step in (contents.load, contents.inserts, contents.deletes, contents.updates, contents.mixed):
        batch = step()
        left += sum(rows.num_rows for rows in batch.inserted.values())
        left -= sum(rows.num_rows for rows in batch.deleted.values())
        assert left == contents.now["r"].num_rows > 0
    contents.emptied()
    assert contents.now["r"].num_rows == 0
    contents.refilled()
    assert contents.now["r"].num_rows == 950
