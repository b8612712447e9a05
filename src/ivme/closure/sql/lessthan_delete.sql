-- Source 004, section 3: Shrink(:src) and Shrink(:dst), for nodes that have no edge left.

CREATE TEMP TABLE left_over AS
SELECT src AS node FROM edge WHERE NOT (src = :src AND dst = :dst)
UNION
SELECT dst AS node FROM edge WHERE NOT (src = :src AND dst = :dst);

CREATE TEMP TABLE without AS
SELECT n.node FROM (SELECT :src AS node UNION SELECT :dst AS node) n
WHERE NOT EXISTS (SELECT * FROM left_over l WHERE l.node = n.node);

DELETE FROM lessthan WHERE EXISTS (SELECT * FROM without w WHERE w.node = small OR w.node = large);
