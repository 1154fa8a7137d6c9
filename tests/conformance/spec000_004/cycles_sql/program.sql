-- Nodes on a cycle in SQL (spec 000 section II) by comparing two columns of the recursive view; expected by hand.
CREATE TABLE link(src TEXT, dst TEXT);
CREATE RECURSIVE VIEW reachable(src, dst) AS
  SELECT src, dst FROM link
  UNION
  SELECT link.src, reachable.dst FROM link, reachable WHERE link.dst = reachable.src;
CREATE VIEW onCycle(node) AS SELECT src FROM reachable WHERE src = dst;
