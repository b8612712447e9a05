-- Source 004, section 2, insertion of the edge (:src, :dst) into an acyclic graph. tc is the closure; no other table.

-- Whoever runs this refuses the edge if it would close a cycle.
CREATE TEMP TABLE cycle AS
SELECT :dst AS src, :src AS dst WHERE :src = :dst
UNION
SELECT src, dst FROM tc WHERE src = :dst AND dst = :src;

-- Paths with the edge at their end, at their start, in their middle, and the edge itself.
CREATE TEMP TABLE tc_new AS
SELECT src, :dst AS dst FROM tc WHERE dst = :src
UNION
SELECT :src AS src, dst FROM tc WHERE src = :dst
UNION
SELECT x.src, y.dst FROM tc x, tc y WHERE x.dst = :src AND y.src = :dst
UNION
SELECT :src AS src, :dst AS dst;

CREATE TEMP TABLE delta AS
SELECT src, dst FROM tc_new t
WHERE NOT EXISTS (SELECT * FROM tc WHERE tc.src = t.src AND tc.dst = t.dst);

INSERT INTO tc SELECT src, dst FROM delta;
