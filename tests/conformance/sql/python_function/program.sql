-- A registered Python function in the select list and in a condition; hops(word, word) is in functions.py; expected by hand.
CREATE TABLE word(w TEXT);
CREATE VIEW neighbours(a, b, d) AS
  SELECT x.w, y.w, hops(x.w, y.w) FROM word x, word y WHERE hops(x.w, y.w) <= 1 AND x.w < y.w;
