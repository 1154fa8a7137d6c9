-- AVG gives a float, over DOUBLE and over INTEGER columns; all results have a fractional part; expected by hand.
CREATE TABLE m(k TEXT, x DOUBLE, n INTEGER);
CREATE VIEW v(k, ax, an) AS SELECT k, AVG(x), AVG(n) FROM m GROUP BY k;
