-- Candidates join trees, the least first, as one after the other would: in each round every candidate that is the least at
-- both its trees. No tree takes part twice in a round, so the paths of a round are those of single edges.

REPEAT;

CREATE TEMP TABLE t_star AS
SELECT node AS a, node AS v, node AS b FROM gnodes
UNION
SELECT a, v, b FROM through;

CREATE TEMP TABLE crossing AS
SELECT c.src, c.dst FROM candidates c
WHERE NOT EXISTS (SELECT * FROM through t WHERE t.a = c.src AND t.b = c.dst);

-- For each crossing edge, the nodes of the two trees that it would join.
CREATE TEMP TABLE reach AS
SELECT DISTINCT c.src, c.dst, t.b AS node FROM crossing c JOIN t_star t ON t.a = c.src OR t.a = c.dst;

CREATE TEMP TABLE round AS
SELECT c.src, c.dst FROM crossing c
WHERE NOT EXISTS (SELECT * FROM reach r
                  WHERE (r.node = c.src OR r.node = c.dst)
                  AND (r.src < c.src OR (r.src = c.src AND r.dst < c.dst)));

INSERT INTO forest SELECT src, dst FROM round UNION SELECT dst, src FROM round;

INSERT INTO through
SELECT t1.a, t1.v, t2.b FROM round e JOIN t_star t1 ON t1.b = e.src JOIN t_star t2 ON t2.a = e.dst
UNION
SELECT t1.a, t2.v, t2.b FROM round e JOIN t_star t1 ON t1.b = e.src JOIN t_star t2 ON t2.a = e.dst
UNION
SELECT t2.b, t1.v, t1.a FROM round e JOIN t_star t1 ON t1.b = e.src JOIN t_star t2 ON t2.a = e.dst
UNION
SELECT t2.b, t2.v, t1.a FROM round e JOIN t_star t1 ON t1.b = e.src JOIN t_star t2 ON t2.a = e.dst;

UNTIL EMPTY round;
