-- Aggregates without GROUP BY give one row; COUNT over an empty table gives 0; expected: oracle (DuckDB).
CREATE TABLE t(a TEXT, b INTEGER);
CREATE TABLE nothing(a TEXT);
CREATE VIEW whole(n, s, lo, hi) AS SELECT COUNT(*), SUM(b), MIN(b), MAX(b) FROM t;
CREATE VIEW emptyCount(n) AS SELECT COUNT(*) FROM nothing;
