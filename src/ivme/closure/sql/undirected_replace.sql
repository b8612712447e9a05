-- Steps 2 to 4: the tuples of paths through the edge go, the replacement comes, the edge leaves the forest.

CREATE TEMP TABLE delta AS
SELECT t.a, t.v, t.b FROM through t, through t1, through t2
WHERE t1.v = :src AND t1.b = :dst AND t2.a = :src AND t2.v = :dst AND t1.a = t.a AND t2.b = t.b
AND EXISTS (SELECT * FROM torn)
UNION
SELECT t.a, t.v, t.b FROM through t, through t1, through t2
WHERE t1.v = :src AND t1.b = :dst AND t2.a = :src AND t2.v = :dst AND t1.a = t.b AND t2.b = t.a
AND EXISTS (SELECT * FROM torn);

DELETE FROM through WHERE EXISTS (SELECT * FROM delta d WHERE d.a = through.a AND d.v = through.v AND d.b = through.b);

DELETE FROM forest WHERE ((a = :src AND b = :dst) OR (a = :dst AND b = :src)) AND EXISTS (SELECT * FROM torn);

INSERT INTO forest SELECT src, dst FROM rep UNION SELECT dst, src FROM rep;

CREATE TEMP TABLE gnodes AS
SELECT src AS node FROM g UNION SELECT dst AS node FROM g;

CREATE TEMP TABLE t_star AS
SELECT node AS a, node AS v, node AS b FROM gnodes
UNION
SELECT a, v, b FROM through;

INSERT INTO through
SELECT t1.a, n.node, t2.b FROM gnodes n, t_star t1, t_star t2
WHERE t1.b = (SELECT MIN(src) FROM rep) AND t2.a = (SELECT MIN(dst) FROM rep) AND n.node = t1.v
UNION
SELECT t1.a, n.node, t2.b FROM gnodes n, t_star t1, t_star t2
WHERE t1.b = (SELECT MIN(src) FROM rep) AND t2.a = (SELECT MIN(dst) FROM rep) AND n.node = t2.v
UNION
SELECT t2.b, n.node, t1.a FROM gnodes n, t_star t1, t_star t2
WHERE t1.b = (SELECT MIN(src) FROM rep) AND t2.a = (SELECT MIN(dst) FROM rep) AND n.node = t1.v
UNION
SELECT t2.b, n.node, t1.a FROM gnodes n, t_star t1, t_star t2
WHERE t1.b = (SELECT MIN(src) FROM rep) AND t2.a = (SELECT MIN(dst) FROM rep) AND n.node = t2.v;
