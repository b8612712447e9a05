-- Many edges at once, in the table changes: each that joins two trees is a candidate.

CREATE TEMP TABLE gnodes AS
SELECT src AS node FROM edge UNION SELECT dst AS node FROM edge
UNION SELECT src AS node FROM changes UNION SELECT dst AS node FROM changes;

CREATE TEMP TABLE candidates AS
SELECT src, dst FROM changes WHERE src < dst
UNION
SELECT dst AS src, src AS dst FROM changes WHERE src > dst;
