-- Source 004, section 4, insertion of the edge (:src, :dst) into any digraph: numbered paths, with erratum 11. A path is
-- simple: no node comes twice, but its last may be its first. Only paths that are not such cycles are made longer.

-- A path that ends at :src, or none (0), with a path that starts at :dst, or none.
CREATE TEMP TABLE heads AS
SELECT DISTINCT pnum, st FROM paths WHERE en = :src AND st <> en AND :src <> :dst
UNION ALL
SELECT 0 AS pnum, :src AS st;

CREATE TEMP TABLE tails AS
SELECT DISTINCT pnum, en FROM paths WHERE st = :dst AND st <> en AND :src <> :dst
UNION ALL
SELECT 0 AS pnum, :dst AS en;

CREATE TEMP TABLE on_head AS
SELECT h.pnum, p.ints AS node FROM heads h JOIN paths p ON p.pnum = h.pnum
UNION
SELECT pnum, :src AS node FROM heads;

CREATE TEMP TABLE on_tail AS
SELECT t.pnum, p.intd AS node FROM tails t JOIN paths p ON p.pnum = t.pnum
UNION
SELECT pnum, :dst AS node FROM tails;

-- Their nodes differ, but the first of the one may be the last of the other.
CREATE TEMP TABLE clash AS
SELECT h.pnum AS comp1, t.pnum AS comp2 FROM on_head h JOIN on_tail t ON t.node = h.node
JOIN heads hh ON hh.pnum = h.pnum JOIN tails tt ON tt.pnum = t.pnum
WHERE NOT (h.node = hh.st AND h.node = tt.en);

-- The number of a path: the greatest so far and its place among the new ones. :src to :dst itself is among them.
CREATE TEMP TABLE v1 AS
SELECT (SELECT COALESCE(MAX(pnum), 0) FROM paths) + ROW_NUMBER() OVER (ORDER BY h.pnum, t.pnum) AS pair,
       h.pnum AS comp1, t.pnum AS comp2, h.st AS st, t.en AS en
FROM heads h CROSS JOIN tails t
WHERE NOT EXISTS (SELECT * FROM clash c WHERE c.comp1 = h.pnum AND c.comp2 = t.pnum);

CREATE TEMP TABLE vins AS
SELECT v1.pair AS pnum, v1.st, v1.en, p.ints, p.intd FROM v1 JOIN paths p ON p.pnum = v1.comp1
UNION
SELECT v1.pair AS pnum, v1.st, v1.en, p.ints, p.intd FROM v1 JOIN paths p ON p.pnum = v1.comp2
UNION
SELECT v1.pair AS pnum, v1.st, v1.en, :src AS ints, :dst AS intd FROM v1;

INSERT INTO paths SELECT pnum, st, en, ints, intd FROM vins;
