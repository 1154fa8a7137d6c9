-- A view projected to (dept, salary) keeps equal rows, and the sum over it sees each of them; expected by hand.
CREATE TABLE emp(name TEXT, dept TEXT, salary INTEGER);
CREATE VIEW pay(dept, salary) AS SELECT dept, salary FROM emp;
CREATE VIEW viaView(dept, n, total) AS SELECT dept, COUNT(*), SUM(salary) FROM pay GROUP BY dept;
CREATE VIEW viaTable(dept, n, total) AS SELECT dept, COUNT(*), SUM(salary) FROM emp GROUP BY dept;
