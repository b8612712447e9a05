"""Aggregates beyond counts and sums, under random inserts and deletes, against DuckDB. On both backends."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import UnsupportedError
from tests.aggregate_calls import CALLS, SCHEMA, Row, assert_same, expected, some_rows, t_rows
from tests.databases import rows_of
from tests.example_counts import some_of

NAMES = {call: f"c{number}" for number, call in enumerate(CALLS)}
EVERY = [list(CALLS)[start::6] for start in range(6)]
"""The calls in six views: several aggregates share what is maintained."""

ON_DATABASES = pytest.mark.parametrize("db", some_of(("native", "pure", "durable", "sharded"), "native"), indirect=True)
"""A directory has every aggregate in a test of its own."""


def selected(calls: list[str], *, duck: bool = False) -> str:
    return ", ".join(f"{CALLS[call] if duck else call} AS {NAMES[call]}" for call in calls)


def compare(view: Any, calls: list[str], wanted: list[Row], keys: int) -> None:
    found = {row[:keys]: row[keys:] for row in view}
    assert len(wanted) == len(found)
    for row in wanted:
        for call, value, mine in zip(calls, row[keys:], found[row[:keys]], strict=True):
            assert_same(call, value, mine)


def change(db: Database, choose: random.Random, rows: list[Row], step: int) -> None:
    """A batch of inserts, deletes, or single rows; in the end nothing is left."""
    if step == 5:
        db.delete("t", rows)
        rows.clear()
        return
    gone = [rows.pop(choose.randrange(len(rows))) for _ in range(len(rows) // 3)]
    new = some_rows(choose, [12, 1, 40, 5, 1][step])
    rows += new
    if step == 3:
        for row in gone:
            db.delete("t", [row])
        for row in new:
            db.insert("t", [row])
    else:
        with db.batch() as batch:
            batch.delete("t", gone)
            batch.insert("t", new)


@pytest.mark.parametrize("calls", EVERY, ids=range(6))
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
@ON_DATABASES
def test_every_aggregate_agrees_with_duckdb(db: Database, calls: list[str], seed: int) -> None:
    db.create_table("t", SCHEMA)
    grouped = db.create_view("grouped", f"SELECT g, {selected(calls)} FROM t GROUP BY g")
    whole = db.create_view("whole", f"SELECT {selected(calls)} FROM t")
    choose, rows = random.Random(seed), list[Row]()
    for step in range(6):
        change(db, choose, rows, step)
        tables = {"t": t_rows(rows)}
        columns = selected(calls, duck=True)
        compare(grouped, calls, expected(f"SELECT g, {columns} FROM t GROUP BY g", tables), 1)
        compare(whole, calls, expected(f"SELECT {columns} FROM t", tables), 0)
        grouped.verify()
        whole.verify()


@pytest.mark.parametrize("calls", some_of(EVERY, EVERY[0]))
def test_rows_of_other_tables_multiply_the_values_of_a_group(db: Database, calls: list[str]) -> None:
    db.create_table("t", SCHEMA)
    db.create_table("u", {"g": "int", "k": "int"})
    body = "FROM t JOIN u ON t.g = u.g"
    by_key = db.create_view("by_key", f"SELECT u.k, {selected(calls)} {body} GROUP BY u.k")
    asked = db.create_view("asked", f"SELECT {selected(calls)} {body} WHERE u.k = :k")
    followed = db.create_view("followed", f"SELECT u.k AS k, t.g AS g, {selected(calls)} {body} GROUP BY u.k, t.g")
    choose, rows = random.Random(3), list[Row]()
    others = [(choose.randrange(3), choose.randrange(2)) for _ in range(8)]
    db.insert("u", others)
    for step in range(4):
        change(db, choose, rows, step)
        tables = {"t": t_rows(rows), "u": ("g BIGINT, k BIGINT", others)}
        columns = selected(calls, duck=True)
        compare(by_key, calls, expected(f"SELECT u.k, {columns} {body} GROUP BY u.k", tables), 1)
        compare(followed, calls, expected(f"SELECT u.k, t.g, {columns} {body} GROUP BY u.k, t.g", tables), 2)
        compare(asked(k=1), calls, expected(f"SELECT {columns} {body} WHERE u.k = 1", tables), 0)
        for view in (by_key, asked, followed):
            view.verify()
        others.append((0, step % 2))
        db.insert("u", others[-1:])


@pytest.mark.parametrize("calls", EVERY, ids=range(6))
@ON_DATABASES
def test_changes_and_views_on_views_follow_every_aggregate(db: Database, calls: list[str]) -> None:
    db.create_table("t", SCHEMA)
    view = db.create_view("v", f"SELECT g, {selected(calls)} FROM t GROUP BY g")
    first = NAMES[calls[0]]
    above = db.create_view("above", f"SELECT {first}, COUNT(*) AS n FROM v GROUP BY {first}")
    choose, rows, seen = random.Random(5), list[Row](), Counter[Any]()
    with view.changes() as feed:
        for step in range(6):
            change(db, choose, rows, step)
            for delta in feed:
                seen.update(dict(delta))
            assert Counter(view) == +seen
            above.verify()


@pytest.mark.parametrize("calls", EVERY, ids=range(6))
def test_a_directory_that_is_opened_again_has_every_aggregate(tmp_path: Path, calls: list[str]) -> None:
    with Database(tmp_path / "db", durability="async") as db:
        db.create_table("t", SCHEMA)
        view = db.create_view("v", f"SELECT g, {selected(calls)} FROM t GROUP BY g")
        rows = some_rows(random.Random(9), 40)
        db.insert("t", rows)
        before = rows_of(view)
    with Database(tmp_path / "db") as again:
        assert before == rows_of(again.view("v"))
        again.delete("t", rows[:10])
        again.view("v").verify()


RULES = {
    "MEDIAN(I)": "MEDIAN(i)",
    "COUNT_IF(B)": "COUNT_IF(b)",
    "EVERY(B)": "EVERY(b)",
    "ANY_VALUE(S)": "ANY_VALUE(s)",
    "MAX_BY(S, I)": "MAX_BY(s, i)",
    "CORR(I, F)": "CORR(i, f)",
    "REGR_AVGX(I, F)": "REGR_AVGX(i, f)",
    "SUM(DISTINCT I)": "SUM(DISTINCT i)",
    "BIT_XOR(I)": "BIT_XOR(i)",
    "STDDEV_POP(F)": "STDDEV_POP(f)",
    "MODE(S)": "MODE(s)",
    "APPROX_COUNT_DISTINCT(S)": "APPROX_COUNT_DISTINCT(s)",
}


def test_rules_know_the_same_words(db: Database) -> None:
    db.create_table("t", SCHEMA)
    rule = db.create_view("r", f"Q(G, {', '.join(RULES)}) = t(G, B, I, F, D, S, _)")
    view = db.create_view(
        "v", f"SELECT g, {', '.join(f'{c} AS c{i}' for i, c in enumerate(RULES.values()))} FROM t GROUP BY g"
    )
    assert ["G", *RULES] == rule.to_arrow().column_names
    db.insert("t", some_rows(random.Random(11), 60))
    assert rows_of(view) == rows_of(rule)
    rule.verify()


def test_a_strategy_of_deltas_has_every_aggregate(db: Database) -> None:
    db.create_table("t", SCHEMA)
    db.create_table("u", {"g": "int", "k": "int"})
    calls = "MEDIAN(t.i) AS m, STRING_AGG(t.s, ',') AS s, CORR(t.i, t.f) AS c, MAX_BY(t.s, t.i) AS b, BOOL_OR(t.b) AS o"
    views = [
        db.create_view(f"v{i}", f"SELECT u.k, {calls} FROM t JOIN u ON t.g = u.g GROUP BY u.k", strategy=strategy)
        for i, strategy in enumerate(("view-tree", "classical", "recursive", "factorised", "recompute"))
    ]
    choose, rows = random.Random(2), list[Row]()
    for step in range(6):
        db.insert("u", [(step % 3, step % 2)])
        change(db, choose, rows, step)
        for view in views:
            view.verify()
            assert rows_of(views[0]) == rows_of(view)


REFUSED = {
    "FIRST(i)": "the aggregate FIRST depends on the order in which rows come",
    "LAST(s) IGNORE NULLS": "the aggregate LAST depends on the order",
    "ARRAY_AGG(DISTINCT i ORDER BY s)": "in the order of another expression has no answer",
    "ARRAY_CONCAT_AGG(i)": "the aggregate ARRAY_CONCAT_AGG puts arrays together",
    "PERCENTILE_APPROX(i, 0.5)": "the aggregate PERCENTILE_APPROX is not supported",
    "SKEWNESS(i)": "the aggregate SKEWNESS is not supported",
    "PERCENTILE(i, 0.5, 2)": "a frequency in PERCENTILE is not supported",
    "PERCENTILE(i, 1.5)": "PERCENTILE needs a constant from 0 to 1",
    "PERCENTILE_CONT(g) WITHIN GROUP (ORDER BY i)": "PERCENTILE_CONT needs a constant from 0 to 1",
    "STRING_AGG(s, s)": "the separator of STRING_AGG is not a constant text",
    "LISTAGG(DISTINCT s, ',') WITHIN GROUP (ORDER BY i)": r"LISTAGG\(DISTINCT x\) in the order of another expression",
    "MEDIAN(s)": r"MEDIAN\(s\) is over values of type string",
    "BIT_AND(b)": r"BIT_AND\(b\) is over values of type bool",
    "BOOL_AND(i)": r"BOOL_AND\(i\) is over values of type int",
    "EVERY(i)": r"EVERY\(i\) is over values of type int",
    "COUNT_IF(s)": r"COUNT_IF\(s\) is over values of type string",
    "CORR(s, i)": r"CORR\(s, i\) is over values of type string",
    "MEDIAN(DISTINCT i)": r"MEDIAN\(DISTINCT ...\) is not supported",
    "SUM(i ORDER BY f)": "ORDER BY",
    "MAX(i, f)": "MAX has several arguments",
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused_is_refused_by_the_word_that_the_user_wrote(call: str) -> None:
    db = Database()
    db.create_table("t", SCHEMA)
    db.create_table("u", {"h": "int", "k": "int"})
    with pytest.raises(UnsupportedError, match=REFUSED[call]):
        db.create_view("v", f"SELECT g, {call} AS x FROM t JOIN u ON t.g = u.h GROUP BY g")


def test_explain_says_what_all_values_of_a_group_cost() -> None:
    db = Database()
    db.create_table("t", SCHEMA)
    view = db.create_view("v", "SELECT g, MEDIAN(i) AS m, MAX(f) AS x, MODE(i) AS o FROM t GROUP BY g")
    notes = view.explain().notes
    assert [note for note in notes if "linear in the group" in note and "MODE(i)" in note and "MEDIAN" not in note]
    assert [note for note in notes if "MEDIAN(i)" in note and "by position" in note]


def test_a_request_over_nothing_that_shows_an_aggregate_twice_is_verified(db: Database) -> None:
    db.create_table("r", {"x": "int"})
    query = "SELECT MAX(a.x) AS m, MAX(b.x) AS n FROM r a JOIN r b ON a.x = b.x WHERE b.x = :x AND a.x > 9"
    view = db.create_view("v", query)
    db.insert("r", [(1,)])
    assert [(None, None)] == list(view(x=1))
    view.verify()
