-- The least replacement by the order of the values, which the database has.

CREATE TEMP TABLE rep AS
SELECT src, dst FROM rep_all r
WHERE NOT EXISTS (SELECT * FROM rep_all o WHERE o.src < r.src OR (o.src = r.src AND o.dst < r.dst));
