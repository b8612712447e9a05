"""A row whose join key has no value joins with everything, and so it reaches every shard where a partner may be.

Such rows were refused where they were routed, whether somebody saw them or not, and a view over tables that had some
could not be made.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import ivme
from ivme.errors import ExpressionError
from tests.example_counts import some_of
from tests.sharded_databases import local_database, reopened

QUERIES = [
    "SELECT a.x, b.q FROM a JOIN b ON a.x / a.y = b.q AND a.k = b.k WHERE b.ok",
    "SELECT COUNT(*) AS n FROM a JOIN b ON a.x / a.y = b.q WHERE b.ok",
    "SELECT l.k, COUNT(*) AS n FROM a l JOIN a r ON l.x / l.y = r.x / r.y AND l.k = r.k GROUP BY l.k",
    "SELECT a.k, SUM(b.k) AS s FROM a JOIN b ON 12 % a.y = b.k JOIN c ON b.k = c.k GROUP BY a.k",
    "SELECT x / y AS q, COUNT(*) AS n FROM a WHERE 6 / k > 1 GROUP BY x / y",
    "SELECT a.k FROM a JOIN b ON a.k = b.k WHERE b.ok AND a.x / a.y = :q",
]
TABLES = {
    "a": {"x": "int", "y": "int", "k": "int"},
    "b": {"q": "float", "k": "int", "ok": "bool"},
    "c": {"k": "int"},
}


def rows_of(view: Any) -> list[Any]:
    asked = [{"q": q} for q in (0.5, 1.0, 2.0, 3.0)] if view.parameters else [{}]
    return [sorted(view(**each)) for each in asked]


def random_row(chance: random.Random, table: str) -> tuple[Any, ...]:
    if table == "a":
        return chance.randrange(1, 7), chance.choice([0, 1, 1, 2, 2, 3]), chance.choice([0, 1, 2, 3, 4, 5, 6, 7])
    k = chance.randrange(1, 8)
    return (float(chance.randrange(1, 4)), k, chance.random() < 0.4) if table == "b" else (k,)


def applied(db: Any, batch: list[tuple[str, tuple[Any, ...], int]]) -> str:
    """How a batch ends: an empty text, or the view and the expression of its refusal."""
    try:
        with db.batch() as changes:
            for table, row, weight in batch:
                changes.apply(table, [row], [weight])
    except ExpressionError as error:
        return str(error).split(" for the row")[0]
    return ""


@pytest.mark.parametrize("query", some_of(QUERIES, QUERIES[0]))
def test_shards_refuse_the_batches_that_one_engine_refuses(query: str, tmp_path: Path) -> None:
    chance = random.Random(query)
    with ivme.Database() as one, local_database(tmp_path, 3) as several:
        there: list[tuple[str, tuple[Any, ...]]] = []
        for name, columns in TABLES.items():
            one.create_table(name, columns)
            several.create_table(name, columns)
        views: list[Any] = [one.create_view("v", query), several.create_view("v", query)]
        refused = 0
        for number in range(40):
            new = [(table, random_row(chance, table)) for table in chance.choices("aabc", k=chance.randrange(1, 3))]
            gone = chance.sample(there, min(len(there), chance.randrange(2 if number < 20 else 3)))
            batch = [(*each, 1) for each in new] + [(*each, -1) for each in gone]
            ended = applied(one, batch)
            assert ended == applied(several, batch)
            refused += bool(ended)
            if not ended:
                for each in gone:
                    there.remove(each)
                there += new
            assert rows_of(views[0]) == rows_of(views[1])
        assert 0 < refused < 40
        views[1].verify()
        made = several.create_view("made_later", query)
        assert rows_of(views[0]) == rows_of(made)
        again = reopened(several)
        assert rows_of(views[0]) == rows_of(again.view("v"))
