"""Rules that are more than one join against DuckDB, on both backends: each rule of `rule_queries.txt`, and the same in
SQL that a person wrote, under random batches with NULLs and duplicates.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from tests.fuzz.engines import Engine
from tests.properties.test_select import Both, check_followed, comparable

PAIRS = [
    pair.split("\n")
    for pair in (Path(__file__).parent / "rule_queries.txt").read_text(encoding="utf-8").strip().split("\n\n")
]


@pytest.mark.parametrize(
    ("backend", "batches"),
    [("native", 3), *(pytest.param(*each, marks=pytest.mark.long) for each in (("native", 6), ("pure", 3)))],
)
@pytest.mark.parametrize(("rule", "query"), PAIRS, ids=[rule for rule, _ in PAIRS])
def test_a_rule_is_answered_like_duckdb_answers_its_sql(
    rule: str, query: str, backend: str, batches: int, tmp_path: Path
) -> None:
    check_followed(Engine(backend, tmp_path), rule, query, batches)


REQUESTS = [
    ("Q(x | y) = R(x, y), not T(x, _)", "SELECT a FROM R WHERE b = ? AND NOT EXISTS (SELECT 1 FROM T WHERE T.a = R.a)"),
    ("Q(x | y) = R(x, y); Q(x | y) = T(y, x)", "SELECT a FROM R WHERE b = $1 UNION ALL SELECT d FROM T WHERE a = $1"),
    ("Q(x | z) = R(x, y), z = x + y", "SELECT a FROM R WHERE a + b = ?"),
    ("Q(SUM(x * d) | d) = R(x, y), T(y, d)", "SELECT SUM(R.a * d) FROM R JOIN T ON R.b = T.a WHERE d = ?"),
    ("Q(x, COUNT | select) = R(x, select), x > 0", "SELECT a, COUNT(*) FROM R WHERE b = ? AND a > 0 GROUP BY a"),
]


@pytest.mark.parametrize(("rule", "query"), REQUESTS, ids=[rule for rule, _ in REQUESTS])
def test_a_request_is_answered_like_duckdb_answers_its_sql(rule: str, query: str, tmp_path: Path) -> None:
    engine = Engine("native", tmp_path)
    both = Both(engine.database, seed=len(rule))
    view = engine.database.create_view("v", rule)
    (name,) = view.explain().query.parameters
    for _ in range(6):
        both.change()
        for value in range(5):
            expected = comparable(both.duckdb.execute(query, [value]).fetchall())
            assert comparable(list(view(**{name: value}))) == expected
        view.verify()


def test_a_head_without_outputs_counts_the_rows_of_the_body(tmp_path: Path) -> None:
    both = Both(Engine("native", tmp_path).database, seed=3)
    counted = both.database.create_view("v", "Q(.) = R(x, y), not S(y, _)")
    there = both.database.create_view("w", "Q(DISTINCT .) = R(x, y), not S(y, _); Q(DISTINCT .) = T(3, _)")
    for _ in range(8):
        both.change()
        found: Any = both.duckdb.execute(PAIRS[0][1].replace("SELECT a ", "SELECT COUNT(*) ")).fetchone()
        threes: Any = both.duckdb.execute("SELECT COUNT(*) FROM T WHERE a = 3").fetchone()
        assert dict(counted.items()) == ({(): found[0]} if found[0] else {})
        assert dict(there.items()) == ({(): 1} if found[0] or threes[0] else {})


def test_a_directory_is_opened_with_its_rules(tmp_path: Path) -> None:
    rules = [rule for rule, _ in PAIRS]
    with Database(tmp_path) as db:
        both = Both(db, seed=1)
        for number, rule in enumerate(rules):
            db.create_view(f"v{number}", rule)
        both.change()
        before = {name: dict(db.view(name).items()) for name in db.views}
    with Database(tmp_path) as db:
        assert before == {name: dict(db.view(name).items()) for name in db.views}
        db.insert("R", [(1, 1), (2, None)])
        for name in db.views:
            db.view(name).verify()
