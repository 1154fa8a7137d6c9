-- A table without a key holds equal rows as often as its file does, and COUNT and SUM count each; expected by hand.
CREATE TABLE sale(shop TEXT, amount INTEGER);
CREATE VIEW v(shop, n, total) AS SELECT shop, COUNT(*), SUM(amount) FROM sale GROUP BY shop;
