-- Source 004, section 3, deletion of the edge (:src, :dst), step 1: all replacements, with erratum 10. The edge is its own
-- replacement if the table has it the other way round, too; then nothing changes.

CREATE TEMP TABLE g AS
SELECT src, dst FROM edge WHERE NOT (src = :src AND dst = :dst)
UNION
SELECT dst AS src, src AS dst FROM edge WHERE NOT (src = :src AND dst = :dst);

CREATE TEMP TABLE torn AS
SELECT a, b FROM forest
WHERE a = :src AND b = :dst AND NOT EXISTS (SELECT * FROM g WHERE src = :src AND dst = :dst);

CREATE TEMP TABLE rep_all AS
SELECT src, dst FROM g
WHERE EXISTS (SELECT * FROM through t1, through t2
              WHERE t1.a = g.src AND t1.v = :src AND t1.b = :dst AND t2.a = :src AND t2.v = :dst AND t2.b = g.dst)
AND EXISTS (SELECT * FROM torn);
