-- Set semantics also feed aggregates: a view projected to (dept, salary) has merged equal rows before the sum sees them; expected by hand.
CREATE TABLE emp(name TEXT, dept TEXT, salary INTEGER);
CREATE VIEW pay(dept, salary) AS SELECT dept, salary FROM emp;
CREATE VIEW viaView(dept, n, total) AS SELECT dept, COUNT(*), SUM(salary) FROM pay GROUP BY dept;
CREATE VIEW viaTable(dept, n, total) AS SELECT dept, COUNT(*), SUM(salary) FROM emp GROUP BY dept;
