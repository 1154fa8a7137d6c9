-- HAVING filters groups after WHERE filtered rows, on an aggregate that is not selected; expected: oracle (DuckDB).
CREATE TABLE sale(shop TEXT, item TEXT, amount INTEGER);
CREATE VIEW busy(shop, total) AS
  SELECT shop, SUM(amount) FROM sale WHERE amount > 0 GROUP BY shop HAVING COUNT(*) >= 2 AND MAX(amount) < 50;
