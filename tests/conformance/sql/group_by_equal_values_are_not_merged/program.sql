-- SUM adds the values of all rows of the group, equal values included, also over a join that repeats a value; expected: oracle (DuckDB).
CREATE TABLE orders(id INTEGER, customer TEXT, amount INTEGER);
CREATE TABLE region(customer TEXT, area TEXT);
CREATE VIEW total(area, amount, n) AS
  SELECT r.area, SUM(o.amount), COUNT(o.amount) FROM orders o JOIN region r ON o.customer = r.customer GROUP BY r.area;
