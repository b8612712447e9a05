"""A refusal is at a place of the user's text and in the user's words, whatever blocks the text has become."""

from __future__ import annotations

import duckdb
import pytest

import ivme
from ivme.errors import QueryError

TABLES = {
    "r": {"a": "int", "b": "string", "d": "date", "f": "float"},
    "s": {"a": "int", "c": "string", "t": "timestamp"},
    "e": {"src": "int", "dst": "int"},
}
MISTAKEN = """
SELECT r.a FROM r JOIN s ON r.a = s.c
SELECT r.a FROM r LEFT JOIN s ON r.a = s.c
SELECT r.a FROM r RIGHT JOIN s ON r.a = s.c
SELECT r.a FROM r FULL JOIN s ON r.a = s.c
SELECT r.a FROM r LEFT SEMI JOIN s ON r.a = s.c
SELECT r.a FROM r LEFT ANTI JOIN s ON r.a = s.c
SELECT r.a FROM r LEFT JOIN s ON r.a = s.a AND r.b > 3
SELECT r.a FROM r LEFT JOIN s ON r.a = s.a AND r.d < s.a
SELECT r.a FROM r JOIN s ON r.d < s.a
SELECT r.a FROM r JOIN s ON r.a = s.a OR r.d = s.a
SELECT r.a FROM r LEFT JOIN s ON r.a = s.a AND s.zzz = 1
SELECT r.a FROM r LEFT JOIN s ON r.a = s.a AND s.c
SELECT r.a FROM r LEFT JOIN s USING (zzz)
SELECT r.a FROM (SELECT b AS a FROM r) r LEFT JOIN s USING (a)
SELECT * FROM (SELECT b AS a FROM r) r NATURAL JOIN s
SELECT * FROM (SELECT b AS a FROM r) r NATURAL LEFT JOIN s
SELECT a FROM r UNION SELECT c FROM s
SELECT a FROM r UNION ALL SELECT c FROM s
SELECT a, b FROM r UNION ALL SELECT a, t FROM s
SELECT a FROM r EXCEPT SELECT c FROM s
SELECT a FROM r INTERSECT ALL SELECT c FROM s
SELECT a FROM r UNION SELECT a, c FROM s
SELECT a FROM r UNION SELECT a FROM s UNION SELECT c FROM s
SELECT a FROM r WHERE a IN (SELECT c FROM s)
SELECT a FROM r WHERE a NOT IN (SELECT c FROM s)
SELECT a FROM r WHERE (a, b) IN (SELECT c, a FROM s)
SELECT a FROM r WHERE a IN (SELECT a, c FROM s)
SELECT a FROM r WHERE a = (SELECT MAX(c) FROM s)
SELECT a FROM r WHERE a > (SELECT MAX(c) FROM s)
SELECT a FROM r WHERE d > ALL (SELECT a FROM s)
SELECT a FROM r WHERE a = ANY (SELECT c FROM s)
SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.c = r.a)
SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.c = r.a)
SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.t < r.a)
SELECT a, (SELECT COUNT(*) FROM s WHERE s.c = r.a) AS n FROM r
SELECT a, (SELECT MAX(t) FROM s WHERE s.a = r.a) + 1 AS n FROM r
SELECT a, (SELECT MAX(zzz) FROM s WHERE s.a = r.a) AS n FROM r
SELECT a, b + (SELECT MAX(a) FROM s) AS n FROM r
WITH x AS (SELECT c AS k FROM s) SELECT r.a FROM r JOIN x ON r.a = x.k
WITH x AS (SELECT c AS k, COUNT(*) AS n FROM s GROUP BY c) SELECT r.a FROM r JOIN x ON r.a = x.k
WITH x AS (SELECT c AS k, COUNT(*) AS n FROM s GROUP BY c) SELECT r.a FROM r LEFT JOIN x ON r.a = x.k
WITH x AS (SELECT c AS k FROM s) SELECT zzz FROM x
WITH x(k, l) AS (SELECT c AS k FROM s) SELECT k FROM x
WITH x AS (SELECT c + 1 AS k FROM s) SELECT k FROM x
WITH x AS (SELECT MAX(c) + 1 AS k FROM s) SELECT k FROM x
SELECT b, COUNT(*) AS n FROM r GROUP BY b HAVING COUNT(*) > 'x'
SELECT b, COUNT(*) AS n FROM r GROUP BY b HAVING MAX(b) > 3
SELECT b, COUNT(*) AS n FROM r GROUP BY b HAVING MAX(d)
SELECT b, COUNT(*) AS n FROM r GROUP BY b HAVING b = 3
SELECT b, COUNT(*) AS n FROM r GROUP BY b HAVING zzz = 3
SELECT b, COUNT(*) AS n FROM r GROUP BY b HAVING a = 3
SELECT b, MAX(d) + MAX(f) AS n FROM r GROUP BY b
SELECT b, SUM(d) AS n FROM r GROUP BY b
SELECT b, SUM(d) * 2 AS n FROM r GROUP BY b
SELECT b, UPPER(MAX(a)) || LN(MAX(b)) AS n FROM r GROUP BY b
SELECT a FROM r ORDER BY zzz
SELECT a FROM r ORDER BY b + 1
SELECT a FROM r ORDER BY 7
SELECT a FROM r ORDER BY a LIMIT 'x'
SELECT b, COUNT(*) AS n FROM r GROUP BY b ORDER BY MAX(d) + MAX(f)
SELECT * FROM (VALUES (1, 'x'), (DATE '2020-01-01', 'y')) AS v(p, q)
SELECT * FROM (VALUES (1, 'x'), (2)) AS v(p, q)
SELECT * FROM (VALUES (1, 'x')) AS v(p)
SELECT r.a FROM r JOIN (VALUES (1, 'x')) AS v(p, q) ON r.a = v.q
SELECT r.a FROM r LEFT JOIN (VALUES (1, 'x')) AS v(p, q) ON r.a = v.q
SELECT COUNT(*) FILTER (WHERE b) AS n FROM r
SELECT COUNT(*) FILTER (WHERE a) AS n FROM r
SELECT COUNT(*) FILTER (WHERE zzz > 1) AS n FROM r
SELECT b, a, COUNT(*) AS n FROM r GROUP BY ROLLUP (b, zzz)
SELECT b, a, SUM(d) AS n FROM r GROUP BY ROLLUP (b, a)
SELECT b, a, COUNT(*) AS n FROM r GROUP BY GROUPING SETS ((b), (zzz))
SELECT b, a, f, COUNT(*) AS n FROM r GROUP BY CUBE (b, a)
SELECT b, GROUPING(f) AS n FROM r GROUP BY CUBE (b, a)
SELECT b + 1 AS x, COUNT(*) AS n FROM r GROUP BY CUBE (b + 1, a)
SELECT b + d AS x FROM r WHERE a = :p
SELECT a FROM r WHERE b = :p AND a = :p
SELECT a FROM r WHERE a + b = :p
SELECT a FROM r WHERE zzz = :p
SELECT r.a FROM r, s WHERE r.d = :p AND s.c = :p
SELECT x.a FROM (SELECT a FROM r WHERE b = :p) x WHERE x.a = :p
SELECT a FROM r WHERE a IN (1, 'x', DATE '2020-01-01')
SELECT a FROM r WHERE a BETWEEN 'x' AND d
SELECT CASE WHEN a = 1 THEN b ELSE d END AS x FROM r
SELECT CASE WHEN r.a = 1 THEN r.b ELSE s.t END AS x FROM r JOIN s ON r.a = s.a
SELECT COALESCE(r.b, s.t, 1) AS x FROM r LEFT JOIN s ON r.a = s.a
SELECT r.d + s.t AS x FROM r JOIN s ON r.a = s.a
SELECT r.d + s.t AS x FROM r LEFT JOIN s ON r.a = s.a
SELECT SUM(r.a * s.c) AS x FROM r LEFT JOIN s ON r.a = s.a
SELECT SUM(r.a * s.t) AS x FROM r JOIN s ON r.a = s.a
SELECT SUM(r.d * s.a) AS x FROM r JOIN s ON r.a = s.a
SELECT r.a FROM r JOIN s ON r.a = s.a WHERE r.d = s.a OR s.c = 'x'
SELECT r.a FROM r JOIN s ON r.a = s.a WHERE UPPER(r.a + s.t) = 'x'
SELECT zzz.a FROM r
SELECT a FROM zzz
SELECT a FROM r, s
SELECT r.a FROM r JOIN s ON r.a = s.a JOIN e ON a = src
SELECT r.a FROM r LEFT JOIN (s JOIN e ON s.c = e.src) ON r.a = s.a
SELECT r.a FROM r LEFT JOIN (s LEFT JOIN e ON s.c = e.src) ON r.a = s.a
SELECT NULL AS x FROM r UNION ALL SELECT NULL FROM s
SELECT NULL AS x FROM r
SELECT x.n + 1 AS y FROM (SELECT MAX(t) AS n FROM s) x
SELECT x.n + 1 AS y FROM (SELECT t AS n FROM s) x
SELECT y.n + 1 AS y FROM (SELECT x.n FROM (SELECT MAX(t) AS n FROM s) x LEFT JOIN r ON x.n = r.a) y
SELECT a FROM r WHERE a = (SELECT c FROM s LIMIT 1)
SELECT a FROM r WHERE d = (SELECT a FROM s WHERE s.c = r.b)
SELECT a FROM r WHERE a IN (SELECT c FROM s) OR b = 'x'
SELECT a FROM r WHERE a IN (SELECT c FROM s UNION SELECT b FROM r)
SELECT CAST(d AS INT) AS x FROM r
SELECT MEDIAN(b) AS x FROM r
SELECT CORR(a, b) AS x FROM r
SELECT MAX_BY(a, zzz) AS x FROM r
SELECT STRING_AGG(a, b) AS x FROM r
SELECT SUM(DISTINCT d) AS x, COUNT(*) + 1 AS y FROM r
SELECT r.a FROM r JOIN s ON r.a <=> s.c
SELECT r.a FROM r LEFT JOIN s ON r.a <=> s.c
SELECT a FROM r WHERE NOT b
SELECT a FROM r WHERE a AND d = DATE '2020-01-01'
SELECT r.a FROM r JOIN s ON r.a = s.a WHERE r.a AND s.t = r.d
SELECT a FROM r GROUP BY a, b HAVING SUM(b) > 1
SELECT SUM(x) FROM (SELECT a AS x FROM r UNION ALL SELECT c FROM s) u
""".strip().split("\n")
_CLOSURE = "WITH RECURSIVE q(x, y) AS (SELECT src, dst FROM e UNION SELECT q.x, e.dst FROM q JOIN e ON q.y = e.src)"


def _refused(query: str) -> QueryError:
    db = ivme.Database()
    for name, columns in TABLES.items():
        db.create_table(name, columns)
    with pytest.raises(QueryError) as raised:
        db.create_view("v", query)
    return raised.value


@pytest.mark.parametrize("query", [*MISTAKEN, f"{_CLOSURE} SELECT q.x FROM q JOIN s ON q.y = s.c"])
def test_a_refusal_has_a_place_and_names_nothing_that_the_user_has_not_written(query: str) -> None:
    error = _refused(query)

    assert error.position is not None
    assert "#" not in error.message + error.instead
    assert "block" not in error.message + error.instead


@pytest.mark.parametrize(
    ("query", "words", "at"),
    [
        ("SELECT r.a FROM r LEFT JOIN s ON r.a = s.c", "r.a is of type int and s.c of type string", "s.c"),
        ("SELECT r.a FROM s LEFT JOIN r USING (zzz)", "'zzz'", "zzz"),
        ("SELECT a FROM r UNION SELECT c FROM s", "a is of type int and c of type string", "c FROM"),
        ("SELECT a FROM r WHERE a NOT IN (SELECT c FROM s)", "a is of type int and c of type string", "c FROM"),
        ("SELECT a FROM r WHERE a > (SELECT MAX(c) FROM s)", "(SELECT MAX(c) FROM s) compares int with string", "a > "),
        ("SELECT b FROM r GROUP BY b HAVING MAX(d)", "MAX(d) is of type date", "MAX(d)"),
        ("SELECT r.a FROM r JOIN s ON r.d < s.a", "r.d < s.a compares date with int", "r.d <"),
        ("SELECT COALESCE(r.b, s.t) AS x FROM r JOIN s ON r.a = s.a", "coalesce(r.b, s.t)", "COALESCE"),
        ("SELECT x.n + 1 AS y FROM (SELECT MAX(t) AS n FROM s) x", "x.n + 1 computes", "x.n + 1"),
        ("WITH x AS (SELECT c + 1 AS k FROM s) SELECT k FROM x", "c + 1 computes", "c + 1"),
        ("SELECT b, SUM(d) FROM r GROUP BY ROLLUP (b)", "SUM(d) adds up", "SUM(d)"),
        (
            "SELECT a FROM r\nWHERE a IN (SELECT c FROM s)\n OR b = 'x'",
            "a is of type int and c of type string",
            "c FROM",
        ),
    ],
)
def test_the_place_is_that_of_the_expression_in_the_users_words(query: str, words: str, at: str) -> None:
    error = _refused(query)

    assert words in error.message
    assert query.index(at) == error.position


def test_a_text_is_no_condition_of_a_left_join() -> None:
    assert "a condition is needed here" in _refused("SELECT r.a FROM r LEFT JOIN s ON r.a = s.a AND s.c").message


def test_grouping_is_of_a_key() -> None:
    assert "f is not in GROUP BY" in _refused("SELECT b, GROUPING(f) AS n FROM r GROUP BY CUBE (b, a)").message


def test_the_hint_for_an_aggregate_of_a_partition_gives_the_same_rows() -> None:
    window = "SELECT a, MEDIAN(a) OVER (PARTITION BY b) AS x FROM r"
    joined = "SELECT r.a, g.value AS x FROM r JOIN (SELECT b, MEDIAN(a) AS value FROM r GROUP BY b) g ON r.b {} g.b"
    rows = [(1, "x", None, None), (2, "x", None, None), (3, None, None, None), (None, "y", None, None)]
    db, duck = ivme.Database(), duckdb.connect()
    db.create_table("r", TABLES["r"])
    duck.execute("CREATE TABLE r (a BIGINT, b VARCHAR, d DATE, f DOUBLE)")
    duck.executemany("INSERT INTO r VALUES (?, ?, ?, ?)", rows)
    db.insert("r", rows)

    view = db.create_view("v", joined.format("<=>"))

    hint = "(SELECT b, MEDIAN(a) AS value FROM ... GROUP BY b), on b by <=>"
    assert hint in _refused(window).instead
    assert sorted(duck.execute(window).fetchall(), key=repr) == sorted(view, key=repr)
