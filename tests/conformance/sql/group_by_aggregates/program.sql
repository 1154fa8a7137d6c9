-- COUNT, SUM, MIN and MAX per group, including a group of one and negative values; expected: oracle (DuckDB).
CREATE TABLE sale(shop TEXT, item TEXT, amount INTEGER);
CREATE VIEW perShop(shop, n, total, least, most) AS
  SELECT shop, COUNT(*), SUM(amount), MIN(amount), MAX(amount) FROM sale GROUP BY shop;
CREATE VIEW perPair(item, shop, total) AS SELECT item, shop, SUM(amount) FROM sale GROUP BY shop, item;
