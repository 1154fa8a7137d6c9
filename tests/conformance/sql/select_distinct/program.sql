-- SELECT DISTINCT on several columns with a constant; expected: oracle (DuckDB).
CREATE TABLE t(a TEXT, b INTEGER, c INTEGER);
CREATE VIEW v(a, b, tag) AS SELECT DISTINCT a, b, 'seen' FROM t WHERE c <> 3;
