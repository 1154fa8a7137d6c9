-- Views over empty tables and contradictory conditions are empty files; grouping an empty table gives no row; expected: oracle (DuckDB).
CREATE TABLE t(a TEXT, b INTEGER);
CREATE TABLE u(a TEXT);
CREATE VIEW impossible(a) AS SELECT a FROM t WHERE b > 5 AND b < 5;
CREATE VIEW grouped(a, n) AS SELECT a, COUNT(*) FROM u GROUP BY a;
CREATE VIEW crossed(a, b) AS SELECT t.a, u.a FROM t, u;
CREATE VIEW alone(a) AS SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a);
