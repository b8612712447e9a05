"""SELECTs that the fuzzer found to be wrong once, or to raise something else than a refusal."""

from __future__ import annotations

from random import Random

import pytest

from tests.example_counts import some_of
from tests.fuzz.cases import TableSpec
from tests.fuzz.streams import StreamMaker
from tests.fuzz.values import column
from tests.select.cases import SelectCase, SelectView
from tests.select.running import run_case

TABLES = (
    TableSpec("r0", (column("i"), column("j"), column("s"))),
    TableSpec("r1", (column("k"), column("b"), column("dt"))),
    TableSpec("r2", (column("i"), column("d2"), column("s"))),
)
ENGINES = ("native", "pure", "native on disk")
FOUND = (
    """WITH w AS (SELECT COUNT(*) AS n FROM r0 WHERE i = 3 /* parameter */ OR j > 3)
       SELECT MAX(j) AS m FROM r0 WHERE i = 1 /* parameter */ HAVING 1 = 1""",
    "SELECT c.s AS x FROM r2 a FULL JOIN r2 b ON TRUE JOIN r2 c ON b.s = c.s AND c.i IS NOT DISTINCT FROM a.i",
    """SELECT ROW_NUMBER() OVER (PARTITION BY i ORDER BY j) AS n, SUM(j) OVER (PARTITION BY i) AS m FROM r0
       WHERE i = 1 /* parameter */ UNION SELECT i AS a, j AS b FROM r0""",
    """SELECT i, ROW_NUMBER() OVER (PARTITION BY i ORDER BY j) AS n FROM r0 WHERE i = 1 /* parameter */
       EXCEPT SELECT i, j FROM r0""",
    """SELECT (SELECT COUNT(*) FROM (SELECT j, ROW_NUMBER() OVER (PARTITION BY i ORDER BY j) AS n FROM r0
       WHERE i = 1 /* parameter */) x) + j AS m FROM r0""",
    "SELECT MAX(i) OVER () AS m, m AS n FROM r0",
    "SELECT i, SUM(i) OVER (ORDER BY j) AS s, s * 2 AS d, d + 1 AS e FROM r0",
    "SELECT SUM(j) OVER () AS i, i + 1 AS k FROM r0",
    "SELECT ROW_NUMBER() OVER (ORDER BY i, j) AS n, n + 1 AS k FROM r0",
    "SELECT i, SUM(j) AS s, RANK() OVER (ORDER BY SUM(j)) AS n, n + i AS k FROM r0 GROUP BY i",
    "WITH w AS (SELECT i AS a, j AS b FROM r0) SELECT MAX(a) OVER (PARTITION BY b) AS m, m - a AS d FROM w",
    "SELECT i, MAX(i) OVER () AS m, m AS q FROM r0 QUALIFY q > 1",
    "SELECT 1 AS one, SUM(j) AS n FROM r0 WHERE i = 1 /* parameter */ ORDER BY n % 3 LIMIT 4",
    """WITH RECURSIVE w(x, y) AS (SELECT i, j FROM r0 UNION SELECT p.x, e.j FROM w p JOIN r0 e ON p.y = e.i)
       SELECT x, MAX_BY(y, y) AS m, COUNT(DISTINCT x, y) AS n FROM w GROUP BY x""",
    "SELECT 3 AS c FROM (VALUES (2), (3)) AS t(n)",
    "SELECT t.m FROM (SELECT 1 AS n, 1.50 AS m) t WHERE (t.n, t.m) IN (SELECT i, 1.50 AS d FROM r0)",
    "SELECT a.y AS z FROM (SELECT b.x AS y FROM (SELECT c.dt AS x FROM r1 AS c) AS b) AS a",
    "SELECT a.x AS y FROM (SELECT j AS x FROM r0) AS a ORDER BY y",
    "SELECT c.k FROM r1 AS a ANTI JOIN r1 AS b ON TRUE RIGHT JOIN r1 AS c ON a.b",
    "SELECT 0 AS z FROM ((r0 AS t))",
    "SELECT t.n FROM (VALUES ('2026-11-15', 'ab')) AS t(n, m)",
    "SELECT b.x FROM (r0 AS a JOIN (SELECT s AS x FROM r2) AS b ON TRUE) LIMIT 1",
    "SELECT i AS x FROM r0 AS t ORDER BY x % 3 DESC NULLS FIRST",
    "SELECT n AS x FROM (VALUES (7)) AS t(n) ORDER BY x % 3",
    "WITH w AS (SELECT * FROM r0 AS a LEFT JOIN r1 AS b ON b.k = 1) SELECT b FROM w LIMIT 5",
    "WITH w(x, y) AS (SELECT s, i FROM r2 AS a) SELECT c.* FROM w AS c",
    "SELECT * FROM (VALUES (1.50)) AS t(n)",
    "SELECT c.s FROM r1 AS a RIGHT JOIN (r0 AS b LEFT JOIN r2 AS c ON b.i < c.i) ON a.k = c.i ORDER BY s DESC",
    "SELECT MAX(s) AS m FROM r0 GROUP BY CUBE (s, j) HAVING COUNT(*) > 0",
    """SELECT b.x FROM r0 AS a
       JOIN ((SELECT 'a' AS x FROM r0) AS b JOIN LATERAL (SELECT i FROM r2) AS c ON TRUE) ON TRUE""",
    "SELECT AVG(3) AS m FROM (SELECT s FROM r0 INTERSECT ALL SELECT 'zz' AS s FROM (VALUES (2)) AS t(n)) AS u",
    "SELECT b.k FROM ((SELECT dt AS x FROM r1) AS a CROSS JOIN r1 AS b)",
    "SELECT a.x FROM ((SELECT i AS x FROM r0) AS a JOIN r2 AS b ON a.x = 2)",
    """WITH w AS (SELECT * FROM r1 AS a WHERE a.k = 1 /* parameter */)
       SELECT MAX(b.k) AS m FROM w AS b JOIN r2 AS c ON b.k = c.i UNION ALL SELECT i AS x FROM r0""",
    "SELECT a.k FROM r1 AS a WHERE a.k <> (SELECT COALESCE(AVG(b.k), 0) AS x FROM r1 AS b WHERE b.dt = a.dt)",
    "SELECT SUM(a.j) AS s FROM r0 AS a HAVING EXISTS (SELECT b.i FROM r2 AS b GROUP BY ALL)",
    "SELECT a.i FROM r0 AS a JOIN (r2 AS b) ON a.i = b.i FULL JOIN r1 AS c ON TRUE",
    "SELECT a.i, c.k FROM r0 AS a JOIN (r2 AS b JOIN r2 AS d ON TRUE) ON a.i = b.i FULL JOIN r1 AS c ON a.i = c.k",
    "SELECT s AS x, b.s, a.i AS y FROM (r0 AS a NATURAL FULL JOIN r0 AS b) ORDER BY s",
    "SELECT x.z FROM LATERAL (SELECT i AS z FROM r0) AS x",
    "SELECT i FROM r0 ORDER BY i LIMIT 9223372036854775807 OFFSET 1",
    """SELECT e.i FROM r1 AS a JOIN (r0 AS b FULL JOIN r2 AS c ON TRUE) ON TRUE
       FULL JOIN (r2 AS e JOIN r1 AS f ON TRUE) ON TRUE""",
    "SELECT t.n FROM (SELECT 1 AS n) AS t WHERE t.n < ALL (SELECT 1 AS m FROM r0 AS t)",
    """SELECT (SELECT 3 AS x FROM r1 AS c, r2 AS d WHERE d.i = b.i LIMIT 1) AS y
       FROM r0 AS a RIGHT JOIN r0 AS b ON a.i = 1""",
    "SELECT a.i FROM (r0 AS a ANTI JOIN r1 AS b ON TRUE)",
    "SELECT COUNT(*) AS n FROM (r0 AS a SEMI JOIN r1 AS b ON TRUE)",
    """SELECT b.i FROM r0 AS a, r2 AS b, r2 AS d
       WHERE a.s <> ALL (SELECT d.s AS x FROM (SELECT 2.25 AS n) AS a LEFT JOIN r2 AS d ON TRUE)""",
    """SELECT t.n FROM (VALUES (0.00, TRUE)) AS t(n, m)
       WHERE t.n >= ALL (SELECT d2 FROM r2 AS a WHERE d2 = t.n LIMIT 2)""",
    "SELECT b.s FROM r1 AS a JOIN (r0 AS b NATURAL FULL JOIN r2 AS c) ON i = 1",
    "SELECT a.i, c.s FROM r0 AS a JOIN (r0 AS b JOIN r2 AS c USING (i)) ON a.j = 1",
    """SELECT t.i FROM r0 AS t
       WHERE t.i IN (SELECT u.k FROM r1 AS u JOIN LATERAL (SELECT 2 AS x FROM r2 WHERE r2.i = u.k) t ON TRUE)""",
    "SELECT i FROM r0 GROUP BY i HAVING (i = 1 /* parameter */ OR i IS NULL) UNION ALL SELECT i FROM r2",
    "SELECT COUNT(j) AS n, MAX(s) AS m FROM r0 WHERE i = 7 /* parameter */ GROUP BY CUBE (s) HAVING COUNT(*) > 0",
    """SELECT i FROM r0 AS a
       WHERE EXISTS (SELECT 1 FROM r2 AS b WHERE b.i = a.i GROUP BY GROUPING SETS ((b.s), ()) HAVING COUNT(*) > 0)""",
    """SELECT j FROM r0 AS a WHERE i = 1 /* parameter */
       AND NOT EXISTS (SELECT 1 FROM r2 AS b WHERE b.i = 1 /* parameter */ AND b.s = a.s)""",
    "SELECT a.i FROM r0 AS a ANTI JOIN (r1 AS b JOIN r2 AS c ON b.k = c.i) ON a.i = c.i",
    "SELECT d.k FROM r1 AS d, (r0 AS a SEMI JOIN (r1 AS b JOIN r2 AS c ON b.k = c.i) ON TRUE)",
    "SELECT a.s, c.s AS t FROM r0 AS a JOIN (r1 AS b JOIN r2 AS c ON b.k = c.i) USING (i)",
    """SELECT a.i FROM r0 AS a LEFT JOIN LATERAL (SELECT b.i AS x FROM r2 AS b WHERE b.i = a.i
       GROUP BY GROUPING SETS ((b.i, b.s), ()) HAVING COUNT(*) > 0) AS t ON TRUE""",
    "SELECT j FROM r0 WHERE j >= ANY (SELECT MAX(i) FROM r2 GROUP BY s)",
    "SELECT j FROM r0 WHERE j > ALL (SELECT MAX(i) FROM r2)",
    "SELECT t.j FROM r0 AS t UNION SELECT *, a.j FROM r0 AS a",
    "SELECT * FROM (SELECT i, i FROM r0) AS t",
    "SELECT t.j FROM r0 AS t WHERE (t.j, t.i) IN (SELECT i, 1 AS c FROM r2 GROUP BY i)",
    "SELECT t.j FROM r0 AS t WHERE (t.i, t.j) IN (SELECT 2 AS c, i FROM r2 GROUP BY i, s)",
    "SELECT t.j FROM r0 AS t WHERE (t.s, t.j) IN (SELECT s, 1.50 AS c FROM r2 GROUP BY s)",
    "SELECT x, i, COUNT(*) AS n FROM (SELECT i AS x, i FROM r0) AS t GROUP BY CUBE (x, i) HAVING COUNT(*) > 0",
    "SELECT t.i FROM r0 AS t WHERE t.i IN (SELECT t.j FROM r2 AS u WHERE u.i BETWEEN u.i AND t.j)",
    """SELECT a.j FROM r0 AS a, LATERAL (SELECT b.i FROM r2 AS b
       WHERE EXISTS (SELECT 1 FROM r1 AS c WHERE c.k = a.i)) AS t""",
    """SELECT a.s FROM r2 AS a LEFT JOIN (r0 AS b JOIN r1 AS c ON TRUE) ON a.i = c.k
       FULL JOIN (VALUES (TRUE, 1)) AS t(n, m) ON TRUE""",
    "SELECT a.i, a.j, (SELECT MAX(b.j) FROM r0 AS b WHERE b.i = a.i AND b.j <= a.j) AS m FROM r0 AS a",
    "SELECT a.i, (SELECT COUNT(b.i) FROM r2 AS b WHERE b.i > a.i OR a.s IS NULL) AS n FROM r0 AS a",
    "SELECT a.i FROM r0 AS a WHERE a.j < (SELECT SUM(b.i) + 1 FROM r2 AS b WHERE b.i <> a.i AND b.s >= a.s)",
    "SELECT a.i FROM r0 AS a WHERE a.i IN (SELECT MAX(b.i) FROM r2 AS b WHERE b.s >= a.s)",
    """SELECT a.i, (SELECT b.i FROM r2 AS b WHERE b.i <= a.i AND b.s IS NOT DISTINCT FROM a.s
       ORDER BY b.i DESC LIMIT 1) AS l FROM r0 AS a""",
    "SELECT COUNT(*) AS n FROM r0 WHERE i = 1 /* parameter */ HAVING COLLECT_LIST(j) IS NULL",
    "SELECT COLLECT_SET(s) AS l FROM r0 WHERE i = 2 /* parameter */",
    "SELECT a.j, (SELECT COLLECT_LIST(b.i) FROM r2 AS b WHERE b.i = a.j) AS l FROM r0 AS a",
    "SELECT a.j, t.l FROM r0 AS a, LATERAL (SELECT COLLECT_SET(b.s) AS l FROM r2 AS b WHERE b.i = a.j) AS t",
    "SELECT a.j FROM r0 AS a WHERE ARRAY[1] > (SELECT COLLECT_LIST(b.i) FROM r2 AS b WHERE b.i = a.j)",
    "SELECT i, MAX_BY(j, j) FILTER (WHERE j < 2) AS m FROM r0 GROUP BY i",
    "SELECT i, MIN_BY(j % 3, j) FILTER (WHERE s = 'a') AS m, COUNT(*) AS n FROM r0 GROUP BY i",
    "SELECT i, STRING_AGG(s, ',' ORDER BY j DESC, s) FILTER (WHERE j > 0) AS m FROM r0 GROUP BY i",
    "SELECT STRING_AGG(DISTINCT s, ',' ORDER BY s) FILTER (WHERE i > 1) AS m FROM r0",
    """SELECT i, CASE WHEN COUNT(j) > 1 THEN ARRAY_AGG(j ORDER BY s DESC, j) FILTER (WHERE j IS NOT NULL) END AS m
       FROM r0 GROUP BY i HAVING COUNT(j) > 0""",
    "SELECT i, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY j) FILTER (WHERE s <> 'b') AS m FROM r0 GROUP BY i",
    """SELECT ARRAY_AGG(DISTINCT s ORDER BY s) FILTER (WHERE s <> 'b') AS m FROM r0
       HAVING COUNT(s) FILTER (WHERE s <> 'b') > 0""",
    "SELECT NULLIF(ARRAY_AGG(j ORDER BY j) FILTER (WHERE j IS NOT NULL), ARRAY[1, 2]) AS m FROM r0 HAVING COUNT(j) > 0",
    """SELECT i, CASE WHEN COUNT(j) > 0 THEN ARRAY_AGG(j ORDER BY j DESC) FILTER (WHERE j IS NOT NULL) END AS down,
       CASE WHEN COUNT(j) > 0 THEN ARRAY_AGG(j ORDER BY j) FILTER (WHERE j IS NOT NULL) END AS up FROM r0 GROUP BY i""",
    """SELECT i, PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY j) + 1 AS up,
       PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY j DESC) + 1 AS down,
       CAST(PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY j) AS DOUBLE) + 1 AS one FROM r0 GROUP BY i""",
    """SELECT a.i, (SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY b.i) FROM r2 AS b) AS up,
       (SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY b.i DESC) FROM r2 AS b) AS down FROM r0 AS a""",
    "SELECT 1 AS one FROM r1 AS a LEFT JOIN (r1 AS b JOIN (r0 AS c NATURAL JOIN r2 AS d) ON TRUE) ON a.k = c.i",
    "SELECT * FROM r1 AS a JOIN (SELECT * FROM (r0 AS c FULL JOIN (SELECT i, d2 FROM r2) AS d USING (i))) ON k = j",
    "SELECT t.i, u.k FROM r0 AS t LEFT JOIN ((SELECT b AS x FROM r1) JOIN r1 AS u ON u.b = x) ON t.i = u.k",
    """SELECT a.j FROM r0 AS a LEFT JOIN r2 AS b ON a.i = b.i AND b.s = 'a'
       WHERE EXISTS (SELECT 1 FROM r1 AS c WHERE c.k IS NOT DISTINCT FROM b.i)""",
    "SELECT b.s FROM r1 AS a LEFT JOIN r2 AS b ON a.k = b.i WHERE b.i >= ALL (SELECT j FROM r0 WHERE j < 0)",
    """SELECT a.s, c.d2 FROM r0 AS a LEFT JOIN (r1 AS b JOIN r2 AS c ON b.k = c.i) ON a.i = b.k WHERE EXISTS (
       SELECT 1 FROM r1 AS d JOIN (r0 AS e JOIN r2 AS f USING (i)) ON d.k = e.j WHERE e.i = b.k AND f.s <= c.s)""",
    "SELECT i FROM (SELECT i FROM r0) WHERE EXISTS (SELECT 1 FROM (SELECT j AS m FROM r0) WHERE m = i)",
    "SELECT i, (SELECT COUNT(*) FROM (SELECT j AS m FROM r0) WHERE m = i) AS n FROM (SELECT i FROM r0)",
    "SELECT i, k FROM (SELECT i FROM r0), (SELECT k FROM r1) WHERE i = k",
    """SELECT i, (SELECT SUM(v) FROM (SELECT i AS v FROM r0 WHERE s = 'a') JOIN r2 AS b ON v = b.i WHERE b.i <= q) AS n
       FROM (SELECT i, j AS q FROM r0 WHERE i > 0)""",
    """SELECT a.s, b.i, t.n FROM r0 AS a LEFT JOIN r2 AS b ON a.i = b.i AND b.s = 'a',
       LATERAL (SELECT COUNT(*) AS n FROM r1 AS c WHERE c.k = b.i) AS t""",
    "SELECT a.s, t.n FROM r0 AS a FULL JOIN r2 AS b USING (i), LATERAL (SELECT SUM(k) AS n FROM r1 WHERE k = b.i) AS t",
    "SELECT a.s, b.d2 FROM r0 AS a LEFT JOIN r2 AS b ON a.i < b.i AND a.j = 1",
    "SELECT a.s, b.d2 FROM r0 AS a RIGHT JOIN r2 AS b ON a.i < b.i AND b.s = 'a'",
)


@pytest.mark.parametrize("engine", some_of(ENGINES, "native on disk"))
@pytest.mark.parametrize("sql", FOUND)
def test_a_select_that_was_wrong_is_right(sql: str, engine: str) -> None:
    view = SelectView("v0", sql)
    seed = ENGINES.index(engine)
    steps = StreamMaker(Random(seed), TABLES, [view]).steps()
    difference = run_case(SelectCase(seed, TABLES, (view,), steps, (engine,), 16))
    assert difference is None, str(difference)
