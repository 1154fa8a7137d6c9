-- Several common tables in one WITH, the second reading the first; expected: oracle (DuckDB).
CREATE TABLE sale(shop TEXT, amount INTEGER, day INTEGER);
CREATE VIEW best(shop, total) AS
WITH totals AS (SELECT shop, SUM(amount) AS total FROM sale GROUP BY shop),
     most AS (SELECT MAX(total) AS total FROM totals)
SELECT totals.shop, totals.total FROM totals, most WHERE totals.total = most.total;
