-- A self join under two aliases, pairs in one direction only; expected: oracle (DuckDB).
CREATE TABLE emp(name TEXT, boss TEXT);
CREATE VIEW colleagues(a, b) AS
  SELECT x.name, y.name FROM emp AS x, emp AS y WHERE x.boss = y.boss AND x.name < y.name;
CREATE VIEW grandboss(name, boss) AS SELECT x.name, y.boss FROM emp x JOIN emp y ON x.boss = y.name;
