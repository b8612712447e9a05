-- Source 004, section 3: a total order of the nodes, new ones last. Expand(:src), then Expand(:dst), which must see :src
-- (the source's does not, and leaves two new nodes without an order).

CREATE TEMP TABLE known AS
SELECT src AS node FROM edge UNION SELECT dst AS node FROM edge;

INSERT INTO lessthan
SELECT k.node, :src FROM known k WHERE NOT EXISTS (SELECT * FROM known o WHERE o.node = :src);

CREATE TEMP TABLE known_too AS
SELECT node FROM known UNION SELECT :src AS node;

INSERT INTO lessthan
SELECT k.node, :dst FROM known_too k WHERE NOT EXISTS (SELECT * FROM known_too o WHERE o.node = :dst);
