-- Source 004, section 2, deletion of the edge (:src, :dst), as printed but for erratum 8.

CREATE TEMP TABLE suspect AS
SELECT x.src, y.dst FROM tc x, tc y WHERE x.dst = :src AND y.src = :dst
UNION
SELECT src, :dst AS dst FROM tc WHERE dst = :src
UNION
SELECT :src AS src, dst FROM tc WHERE src = :dst
UNION
SELECT src, dst FROM tc WHERE src = :src AND dst = :dst;

-- Erratum 8: every edge but (:src, :dst) itself is trusty.
CREATE TEMP TABLE trusty AS
SELECT src, dst FROM tc
WHERE NOT EXISTS (SELECT * FROM suspect s WHERE s.src = tc.src AND s.dst = tc.dst)
UNION
SELECT src, dst FROM edge WHERE NOT (src = :src AND dst = :dst);

CREATE TEMP TABLE tc_new AS
SELECT src, dst FROM trusty
UNION
SELECT t1.src, t2.dst FROM trusty t1, trusty t2 WHERE t1.dst = t2.src
UNION
SELECT t1.src, t3.dst FROM trusty t1, trusty t2, trusty t3 WHERE t1.dst = t2.src AND t2.dst = t3.src;

DELETE FROM tc WHERE NOT EXISTS (SELECT * FROM tc_new t WHERE t.src = tc.src AND t.dst = tc.dst);
