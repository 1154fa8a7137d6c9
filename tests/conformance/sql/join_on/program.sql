-- JOIN ... ON chained over three tables, with an inequality in one ON; expected: oracle (DuckDB).
CREATE TABLE emp(name TEXT, dept INTEGER, pay INTEGER);
CREATE TABLE dept(id INTEGER, title TEXT);
CREATE TABLE band(lo INTEGER, hi INTEGER, label TEXT);
CREATE VIEW v(name, title, label) AS
  SELECT e.name, d.title, b.label FROM emp e JOIN dept d ON e.dept = d.id INNER JOIN band b ON e.pay >= b.lo AND e.pay < b.hi;
