-- UNION merges equal rows of three branches with different sources and constants; expected: oracle (DuckDB).
CREATE TABLE a(x INTEGER);
CREATE TABLE b(x INTEGER, y INTEGER);
CREATE VIEW v(x) AS SELECT x FROM a UNION SELECT y FROM b UNION SELECT x + 1 FROM a WHERE x > 1;
