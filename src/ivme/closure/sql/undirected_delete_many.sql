-- Many edges at once, in the table changes: the forest loses those that are gone in both directions, and all other edges
-- are candidates to join what falls apart.

CREATE TEMP TABLE g AS
SELECT src, dst FROM edge e WHERE NOT EXISTS (SELECT * FROM changes c WHERE c.src = e.src AND c.dst = e.dst)
UNION
SELECT dst AS src, src AS dst FROM edge e WHERE NOT EXISTS (SELECT * FROM changes c WHERE c.src = e.src AND c.dst = e.dst);

CREATE TEMP TABLE torn AS
SELECT a, b FROM forest f WHERE NOT EXISTS (SELECT * FROM g WHERE g.src = f.a AND g.dst = f.b);

-- A pair is cut if a torn edge (a, b) is on its path: a is on the path from x to b, and b on the path from a to y.
CREATE TEMP TABLE cut AS
SELECT t1.a AS x, t2.b AS y FROM torn f
JOIN through t1 ON t1.v = f.a AND t1.b = f.b
JOIN through t2 ON t2.a = f.a AND t2.v = f.b;

DELETE FROM through WHERE EXISTS (SELECT * FROM cut c WHERE c.x = through.a AND c.y = through.b);

DELETE FROM forest WHERE EXISTS (SELECT * FROM torn f WHERE f.a = forest.a AND f.b = forest.b);

CREATE TEMP TABLE gnodes AS
SELECT src AS node FROM g UNION SELECT dst AS node FROM g;

CREATE TEMP TABLE candidates AS
SELECT src, dst FROM g WHERE src < dst AND EXISTS (SELECT * FROM torn);
