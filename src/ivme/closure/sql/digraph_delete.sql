-- Source 004, section 4, deletion of the edge (:src, :dst): every path through it goes. Numbers are made consecutive when
-- more than half of them are unused; a rank counts the numbers that are not greater (erratum 11).

CREATE TEMP TABLE deadpath AS
SELECT DISTINCT pnum FROM paths WHERE ints = :src AND intd = :dst;

DELETE FROM paths WHERE EXISTS (SELECT * FROM deadpath d WHERE d.pnum = paths.pnum);

CREATE TEMP TABLE nm1 AS
SELECT DISTINCT pnum FROM paths
WHERE (SELECT MAX(pnum) FROM paths) > 2 * (SELECT COUNT(DISTINCT pnum) FROM paths);

CREATE TEMP TABLE nm3 AS
SELECT r.pnum AS first, COUNT(s.pnum) AS second FROM nm1 r JOIN nm1 s ON s.pnum <= r.pnum GROUP BY r.pnum;

CREATE TEMP TABLE renumbered AS
SELECT n.second AS pnum, p.st, p.en, p.ints, p.intd FROM paths p JOIN nm3 n ON n.first = p.pnum;

DELETE FROM paths WHERE EXISTS (SELECT * FROM nm3 n WHERE n.first = paths.pnum);

INSERT INTO paths SELECT pnum, st, en, ints, intd FROM renumbered;
