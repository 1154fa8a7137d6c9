-- A table is a set too: a line that occurs twice in the facts file is one row for COUNT and SUM; expected by hand.
CREATE TABLE sale(shop TEXT, amount INTEGER);
CREATE VIEW v(shop, n, total) AS SELECT shop, COUNT(*), SUM(amount) FROM sale GROUP BY shop;
