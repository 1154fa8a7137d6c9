-- Arithmetic in the select list and in conditions, with negative numbers and precedence; expected: oracle (DuckDB).
CREATE TABLE t(a INTEGER, b INTEGER);
CREATE VIEW v(a, b, r) AS SELECT a, b, a + b * 2 - 1 FROM t WHERE a * b >= 0 AND (a + b) * 2 <> 6;
