-- Many edges at once, in the table changes. A hop is a new edge and an old path behind it, which may be empty; the
-- closure of the hops is found by doubling, in a number of rounds logarithmic in the new edges on a path.

CREATE TEMP TABLE hops AS
SELECT src, dst FROM changes
UNION
SELECT c.src, tc.dst FROM changes c JOIN tc ON tc.src = c.dst;

REPEAT;

CREATE TEMP TABLE longer AS
SELECT DISTINCT x.src, y.dst FROM hops x JOIN hops y ON y.src = x.dst
WHERE NOT EXISTS (SELECT * FROM hops h WHERE h.src = x.src AND h.dst = y.dst);

INSERT INTO hops SELECT src, dst FROM longer;

UNTIL EMPTY longer;

CREATE TEMP TABLE tc_new AS
SELECT src, dst FROM hops
UNION
SELECT tc.src, h.dst FROM tc JOIN hops h ON h.src = tc.dst;

CREATE TEMP TABLE cycle AS
SELECT src, dst FROM tc_new WHERE src = dst;

CREATE TEMP TABLE delta AS
SELECT src, dst FROM tc_new t
WHERE NOT EXISTS (SELECT * FROM tc WHERE tc.src = t.src AND tc.dst = t.dst);

INSERT INTO tc SELECT src, dst FROM delta;
