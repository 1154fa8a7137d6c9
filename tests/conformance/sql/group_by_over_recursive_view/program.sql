-- Counting over a recursive view, then comparing with an aggregate of that count; expected by hand.
CREATE TABLE link(src TEXT, dst TEXT);
CREATE RECURSIVE VIEW reach(src, dst) AS
  SELECT src, dst FROM link
  UNION
  SELECT r.src, l.dst FROM reach r, link l WHERE r.dst = l.src;
CREATE VIEW fanout(src, n) AS SELECT src, COUNT(dst) FROM reach GROUP BY src;
CREATE VIEW widest(src) AS SELECT f.src FROM fanout f, (SELECT MAX(n) AS n FROM fanout) m WHERE f.n = m.n;
