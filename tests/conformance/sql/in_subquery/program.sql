-- IN and NOT IN with subqueries, one of them itself filtered, one over an empty answer; expected: oracle (DuckDB).
CREATE TABLE emp(name TEXT, dept INTEGER);
CREATE TABLE dept(id INTEGER, city TEXT);
CREATE VIEW inRome(name) AS SELECT name FROM emp WHERE dept IN (SELECT id FROM dept WHERE city = 'rome');
CREATE VIEW notInRome(name) AS SELECT name FROM emp WHERE dept NOT IN (SELECT id FROM dept WHERE city = 'rome');
CREATE VIEW notInParis(name) AS SELECT name FROM emp WHERE dept NOT IN (SELECT id FROM dept WHERE city = 'paris');
