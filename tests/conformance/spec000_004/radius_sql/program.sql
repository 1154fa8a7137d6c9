-- Reachable pairs within a radius of two hops (spec 000 section II), on a cycle where the bound stops the recursion; expected: oracle (networkx).
CREATE TABLE link(src TEXT, dst TEXT);
CREATE RECURSIVE VIEW hop(src, dst, hops) AS
  SELECT src, dst, 1 FROM link
  UNION
  SELECT H.src, L.dst, H.hops + 1 FROM hop H JOIN link L ON H.dst = L.src WHERE H.hops < 2;
CREATE VIEW withinRadius(src, dst) AS SELECT DISTINCT src, dst FROM hop;
