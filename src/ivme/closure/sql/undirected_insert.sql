-- Source 004, section 3, insertion of the edge (:src, :dst): FOREST and THROUGH, with erratum 9. The forest's tables are
-- symmetric.

CREATE TEMP TABLE gnodes AS
SELECT src AS node FROM edge UNION SELECT dst AS node FROM edge UNION SELECT :src AS node UNION SELECT :dst AS node;

-- The edge, in both directions, if it joins two trees: judged by the old THROUGH.
CREATE TEMP TABLE joining AS
SELECT src, dst FROM (SELECT :src AS src, :dst AS dst UNION SELECT :dst AS src, :src AS dst) e
WHERE src <> dst AND NOT EXISTS (SELECT * FROM through WHERE a = :src AND b = :dst);

INSERT INTO forest SELECT src, dst FROM joining;

CREATE TEMP TABLE t_star AS
SELECT node AS a, node AS v, node AS b FROM gnodes
UNION
SELECT a, v, b FROM through;

INSERT INTO through
SELECT t1.a, n.node, t2.b FROM gnodes n, t_star t1, t_star t2
WHERE t1.b = :src AND t2.a = :dst AND n.node = t1.v AND EXISTS (SELECT * FROM joining)
UNION
SELECT t1.a, n.node, t2.b FROM gnodes n, t_star t1, t_star t2
WHERE t1.b = :src AND t2.a = :dst AND n.node = t2.v AND EXISTS (SELECT * FROM joining)
UNION
SELECT t2.b, n.node, t1.a FROM gnodes n, t_star t1, t_star t2
WHERE t1.b = :src AND t2.a = :dst AND n.node = t1.v AND EXISTS (SELECT * FROM joining)
UNION
SELECT t2.b, n.node, t1.a FROM gnodes n, t_star t1, t_star t2
WHERE t1.b = :src AND t2.a = :dst AND n.node = t2.v AND EXISTS (SELECT * FROM joining);
