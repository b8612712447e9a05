-- The least replacement by the table lessthan, for nodes without an order of their own.

CREATE TEMP TABLE rep_ranked AS
SELECT r.src, r.dst, (SELECT COUNT(*) FROM lessthan l WHERE l.large = r.src) AS src_rank,
       (SELECT COUNT(*) FROM lessthan l WHERE l.large = r.dst) AS dst_rank
FROM rep_all r;

CREATE TEMP TABLE rep AS
SELECT src, dst FROM rep_ranked r
WHERE NOT EXISTS (SELECT * FROM rep_ranked o
                  WHERE o.src_rank < r.src_rank OR (o.src_rank = r.src_rank AND o.dst_rank < r.dst_rank));
