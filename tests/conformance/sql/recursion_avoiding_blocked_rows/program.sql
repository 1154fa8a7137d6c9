-- NOT EXISTS on a base table inside a recursive view: blocked nodes are not passed through; expected by hand.
CREATE TABLE link(src TEXT, dst TEXT);
CREATE TABLE blocked(node TEXT);
CREATE RECURSIVE VIEW reach(node) AS
  SELECT 'a'
  UNION
  SELECT l.dst FROM reach r, link l
  WHERE r.node = l.src AND NOT EXISTS (SELECT 1 FROM blocked b WHERE b.node = l.dst);
