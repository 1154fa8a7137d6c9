-- Spec 004 TV-2 in SQL with the recursive view form; expected: TV-2.
CREATE TABLE link(src TEXT, dst TEXT);
CREATE RECURSIVE VIEW reachable(src, dst) AS
  SELECT src, dst FROM link
  UNION
  SELECT link.src, reachable.dst FROM link, reachable WHERE link.dst = reachable.src;
