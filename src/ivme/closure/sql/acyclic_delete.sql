-- Source 004, section 2, deletion of the edge (:src, :dst): SUSPECT, TRUSTY and three-way concatenation, with the middle
-- of the three taken as an edge.
--
-- Let heads be :src and what leads to it, tails be :dst and what it leads to. SUSPECT is heads x tails. On a path from a
-- head to a tail that is left, take the last head u and the node v after it: u is no tail and v is no head, so the
-- parts before u and after v are TRUSTY, and (u, v) is an edge. So only edges that leave the heads are looked at.

CREATE TEMP TABLE heads AS
SELECT :src AS node
UNION
SELECT src AS node FROM tc WHERE dst = :src;

CREATE TEMP TABLE tails AS
SELECT :dst AS node
UNION
SELECT dst AS node FROM tc WHERE src = :dst;

CREATE TEMP TABLE suspect AS
SELECT h.node AS src, t.node AS dst FROM heads h CROSS JOIN tails t;

CREATE TEMP TABLE trusty AS
SELECT src, dst FROM tc
WHERE NOT EXISTS (SELECT * FROM suspect s WHERE s.src = tc.src AND s.dst = tc.dst)
UNION
SELECT src, dst FROM edge WHERE NOT (src = :src AND dst = :dst);

CREATE TEMP TABLE leaving AS
SELECT e.src, e.dst FROM edge e JOIN heads h ON h.node = e.src
WHERE NOT (e.src = :src AND e.dst = :dst) AND NOT EXISTS (SELECT * FROM heads o WHERE o.node = e.dst);

CREATE TEMP TABLE before AS
SELECT t.src, t.dst FROM trusty t JOIN heads h ON h.node = t.src JOIN heads o ON o.node = t.dst
UNION
SELECT node AS src, node AS dst FROM heads;

CREATE TEMP TABLE after AS
SELECT t.src, t.dst FROM trusty t JOIN tails n ON n.node = t.dst
UNION
SELECT node AS src, node AS dst FROM tails;

CREATE TEMP TABLE saved AS
SELECT DISTINCT b.src, a.dst FROM before b JOIN leaving e ON e.src = b.dst JOIN after a ON a.src = e.dst;

CREATE TEMP TABLE lost AS
SELECT src, dst FROM suspect s
WHERE NOT EXISTS (SELECT * FROM saved t WHERE t.src = s.src AND t.dst = s.dst);

DELETE FROM tc WHERE EXISTS (SELECT * FROM lost l WHERE l.src = tc.src AND l.dst = tc.dst);
