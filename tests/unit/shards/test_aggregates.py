"""Aggregates over shards answer as in the embedded database: added up from parts, or with groups that stay whole."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from tests.aggregate_calls import CALLS, SCHEMA, Row, some_rows
from tests.example_counts import some_of
from tests.sharded_databases import local_database

ADDED = (
    *("COUNT_IF(b)", "BOOL_AND(b)", "SOME(b)", "ANY_VALUE(s)", "VAR_POP(i)", "STDDEV_POP(f)", "MAX_BY(s, i)"),
    *("MIN_BY(d, f)", "REGR_COUNT(i, f)", "REGR_AVGX(i, f)", "REGR_SXX(i, f)", "COUNT(i, s)"),
)
"""Aggregates that shards add up from parts, group by group."""


def views(db: Any, texts: dict[str, str]) -> dict[str, Any]:
    db.create_table("t", SCHEMA)
    return {name: db.create_view(name, text) for name, text in texts.items()}


def compare(tmp_path: Path, texts: dict[str, str]) -> Any:
    """The same views over shards and embedded, under inserts and deletes; the sharded database."""
    sharded, embedded = local_database(tmp_path, 3), Database()
    mine, wanted = views(sharded, texts), views(embedded, texts)
    choose = random.Random(4)
    rows: list[Row] = []
    for step in range(3):
        gone, rows = rows[::3], [row for number, row in enumerate(rows) if number % 3]
        new = some_rows(choose, 25 if step < 2 else 0)
        rows += new
        for db in (sharded, embedded):
            with db.batch() as batch:
                batch.delete("t", gone)
                batch.insert("t", new)
        for name, view in mine.items():
            assert sorted(wanted[name], key=repr) == sorted(view, key=repr), texts[name]
            view.verify()
    return sharded


def test_parts_of_a_group_add_up(tmp_path: Path) -> None:
    columns = ", ".join(f"{call} AS c{number}" for number, call in enumerate(ADDED))
    grouped, whole = f"SELECT g, {columns} FROM t GROUP BY g", f"SELECT {columns} FROM t"
    db = compare(tmp_path, {"grouped": grouped, "whole": whole})
    assert "over 3 shards" in str(db.view("whole").explain())


@pytest.mark.parametrize("part", some_of(range(3), 0))
def test_every_aggregate_is_right_over_shards(tmp_path: Path, part: int) -> None:
    calls = list(CALLS)[part::3]
    columns = ", ".join(f"{call} AS c{number}" for number, call in enumerate(calls))
    compare(tmp_path, {"grouped": f"SELECT g, {columns} FROM t GROUP BY g", "whole": f"SELECT {columns} FROM t"})


def test_what_does_not_add_up_over_all_rows_is_in_one_shard(tmp_path: Path) -> None:
    db = compare(tmp_path, {"v": "SELECT MEDIAN(i) AS m, COUNT(*) AS n FROM t"})
    assert "alone" in str(db.view("v").explain())
