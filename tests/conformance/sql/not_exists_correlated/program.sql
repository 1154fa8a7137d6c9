-- Correlated NOT EXISTS with an extra condition inside, and one correlated with the same table; expected: oracle (DuckDB).
CREATE TABLE dept(id INTEGER, title TEXT);
CREATE TABLE emp(name TEXT, dept INTEGER, pay INTEGER);
CREATE VIEW unpaid(title) AS
  SELECT d.title FROM dept d WHERE NOT EXISTS (SELECT 1 FROM emp e WHERE e.dept = d.id AND e.pay > 10);
CREATE VIEW topPaid(name, dept) AS
  SELECT e.name, e.dept FROM emp e WHERE NOT EXISTS (SELECT 1 FROM emp f WHERE f.dept = e.dept AND f.pay > e.pay);
