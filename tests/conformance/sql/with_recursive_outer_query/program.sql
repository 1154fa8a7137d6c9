-- WITH RECURSIVE inside a view whose outer query joins, filters and aggregates the recursive table; expected by hand.
CREATE TABLE reports(emp TEXT, boss TEXT);
CREATE TABLE pay(emp TEXT, amount INTEGER);
CREATE VIEW cost(boss, total) AS
WITH RECURSIVE under(emp, boss) AS (
  SELECT emp, boss FROM reports
  UNION
  SELECT r.emp, u.boss FROM reports r, under u WHERE r.boss = u.emp
)
SELECT u.boss, SUM(p.amount) FROM under u, pay p WHERE u.emp = p.emp AND u.boss <> 'root' GROUP BY u.boss;
