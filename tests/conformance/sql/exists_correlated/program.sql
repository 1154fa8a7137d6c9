-- Correlated EXISTS: a row appears once however many partners it has; expected: oracle (DuckDB).
CREATE TABLE dept(id INTEGER, title TEXT);
CREATE TABLE emp(name TEXT, dept INTEGER, pay INTEGER);
CREATE VIEW staffed(title) AS
  SELECT d.title FROM dept d WHERE EXISTS (SELECT 1 FROM emp e WHERE e.dept = d.id AND e.pay > 10);
