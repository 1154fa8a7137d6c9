-- path, minHops and shortestPath of spec 004 TV-6 as printed, on the acyclic TV-4 graph; A to F has two shortest paths; expected: oracle (networkx).
CREATE TABLE link(src TEXT, dst TEXT);
CREATE RECURSIVE VIEW path(src, dst, vec, length) AS
  SELECT src, dst, src || '.' || dst, 1 FROM link
  UNION
  SELECT link.src, path.dst, link.src || '.' || vec, length + 1
  FROM link, path WHERE link.dst = path.src;
CREATE VIEW minHops(src, dst, length) AS
  SELECT src, dst, MIN(length) FROM path GROUP BY src, dst;
CREATE VIEW shortestPath(src, dst, vec, length) AS
  SELECT P.src, P.dst, vec, P.length FROM path P, minHops H
  WHERE P.src = H.src AND P.dst = H.dst AND P.length = H.length;
