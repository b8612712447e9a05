-- Many edges at once, in the table changes. A pair is suspect if one of its paths goes through one of them. With several
-- edges gone, three trusty paths are not always enough; doubling takes as many as there are.

CREATE TEMP TABLE kept AS
SELECT src, dst FROM edge e
WHERE NOT EXISTS (SELECT * FROM changes c WHERE c.src = e.src AND c.dst = e.dst);

CREATE TEMP TABLE suspect AS
SELECT src, dst FROM changes
UNION
SELECT tc.src, c.dst FROM tc JOIN changes c ON c.src = tc.dst
UNION
SELECT c.src, tc.dst FROM changes c JOIN tc ON tc.src = c.dst
UNION
SELECT x.src, y.dst FROM tc x JOIN changes c ON c.src = x.dst JOIN tc y ON y.src = c.dst;

CREATE TEMP TABLE trusty AS
SELECT src, dst FROM tc
WHERE NOT EXISTS (SELECT * FROM suspect s WHERE s.src = tc.src AND s.dst = tc.dst)
UNION
SELECT src, dst FROM kept;

REPEAT;

CREATE TEMP TABLE saved AS
SELECT DISTINCT x.src, y.dst FROM trusty x JOIN trusty y ON y.src = x.dst
JOIN suspect s ON s.src = x.src AND s.dst = y.dst
WHERE NOT EXISTS (SELECT * FROM trusty t WHERE t.src = x.src AND t.dst = y.dst);

INSERT INTO trusty SELECT src, dst FROM saved;

UNTIL EMPTY saved;

DELETE FROM tc WHERE NOT EXISTS (SELECT * FROM trusty t WHERE t.src = tc.src AND t.dst = tc.dst);
