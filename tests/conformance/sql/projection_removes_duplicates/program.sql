-- DISTINCT makes a view a set: projecting away the key leaves each value once; expected by hand.
CREATE TABLE emp(name TEXT, dept TEXT, salary INTEGER);
CREATE VIEW depts(dept) AS SELECT DISTINCT dept FROM emp;
