"""Tables with arrays and structs, queries that compare and count them, and rows of both."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

TAGS, PLACE, NUMBERS, DEEP = (
    "array<string>",
    "struct<x int, y float>",
    "int[]",
    "array<struct<a decimal(20, 2), d date>>",
)
R = {"id": "int", "tags": TAGS, "place": PLACE, "numbers": NUMBERS, "deep": DEEP}
S = {"id": "int", "tags": TAGS, "place": PLACE}

EQUALITIES = {
    "joined": "SELECT r.id, s.id AS other, s.tags FROM r JOIN s ON r.tags = s.tags",
    "outer": "SELECT r.id, s.id AS other, s.place FROM r LEFT JOIN s ON r.place = s.place AND r.id <> s.id",
    "both": "SELECT r.tags AS one, s.tags AS other FROM r FULL JOIN s ON r.tags = s.tags",
    "same": "SELECT r.id, s.id AS other FROM r JOIN s ON r.tags IS NOT DISTINCT FROM s.tags",
    "grouped": "SELECT tags, place, COUNT(*) AS n, SUM(id) AS total FROM r GROUP BY tags, place",
    "counted": "SELECT COUNT(tags) AS n, COUNT(DISTINCT deep) AS deep, COUNT(DISTINCT numbers) AS numbers FROM r",
    "distinct": "SELECT DISTINCT deep, tags FROM r",
    "in": "SELECT id FROM r WHERE tags IN (SELECT tags FROM s)",
    "not in": "SELECT id FROM r WHERE tags NOT IN (SELECT tags FROM s WHERE tags IS NOT NULL)",
    "exists": "SELECT id FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.place = r.place)",
    "union": "SELECT tags FROM r UNION SELECT tags FROM s",
    "except": "SELECT place FROM r EXCEPT ALL SELECT place FROM s",
    "chosen": "SELECT id, COALESCE(tags, CAST(NULL AS VARCHAR[])) AS t, CASE WHEN id > 3 THEN place END AS p FROM r",
    "compared": "SELECT a.id, b.id AS other FROM r a JOIN r b ON a.id = b.id + 1 WHERE a.tags <> b.tags OR a.id = 1",
    "rolled": "SELECT tags, COUNT(*) AS n FROM r GROUP BY ROLLUP (tags)",
}
"""What DuckDB answers alike."""

ORDERS = {
    "extremes": "SELECT MIN(tags) AS a, MAX(tags) AS b, MIN(place) AS c, MAX(place) AS d, MAX(deep) AS e FROM r",
    "by group": "SELECT id % 3 AS g, MIN(numbers) AS low, MAX(numbers) AS high FROM r GROUP BY id % 3",
    "less": "SELECT a.id, b.id AS other FROM r a JOIN r b ON a.id = b.id + 1 WHERE a.place < b.place",
    "greatest": "SELECT id, GREATEST(tags, CAST(NULL AS ARRAY<STRING>)) AS t FROM r",
    "constant": "SELECT id, COALESCE(tags, ARRAY('none')) AS t FROM r WHERE tags IS NULL OR tags > ARRAY('a', NULL)",
}
"""What only Spark answers alike: a NULL in an array comes first there, and last in DuckDB."""


def some_rows(choose: random.Random, count: int) -> list[tuple[Any, ...]]:
    """Rows of R, with few distinct values."""
    return [(choose.randrange(9), *(make(choose) for make in (_tags, _place, _numbers, _deep))) for _ in range(count)]


def some_others(choose: random.Random, count: int) -> list[tuple[Any, ...]]:
    """Rows of S."""
    return [(choose.randrange(9), _tags(choose), _place(choose)) for _ in range(count)]


def _tags(choose: random.Random) -> Any:
    return choose.choice([None, [], ["a"], ["a", "b"], ["b"], [None], ["a", None], ["a\0", ""], ["żółw"]])


def _place(choose: random.Random) -> Any:
    made = {"x": choose.choice([None, 1, -(2**40)]), "y": choose.choice([None, 0.0, -0.0, -2.5, 1e300])}
    return choose.choice([None, made, made, made])


def _numbers(choose: random.Random) -> Any:
    return choose.choice([None, [], [1], [1, 2], [2], [-5, None], [None]])


def _deep(choose: random.Random) -> Any:
    part = {"a": choose.choice([None, Decimal("1.50"), Decimal(-(10**17))]), "d": datetime.date(2024, 2, 29)}
    return choose.choice([None, [], [part], [part, None]])
