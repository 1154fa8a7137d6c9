-- Cheapest cost path (spec 000 section VIII) in SQL with its vector on an acyclic network; a tie keeps both vectors; expected: oracle (networkx).
CREATE TABLE link(src TEXT, dst TEXT, cost INTEGER);
CREATE RECURSIVE VIEW path(src, dst, vec, cost) AS
  SELECT src, dst, src || '.' || dst, cost FROM link
  UNION
  SELECT L.src, P.dst, L.src || '.' || P.vec, L.cost + P.cost
  FROM link L, path P WHERE L.dst = P.src;
CREATE VIEW minCost(src, dst, cost) AS
  SELECT src, dst, MIN(cost) FROM path GROUP BY src, dst;
CREATE VIEW cheapestCostPath(src, dst, vec, cost) AS
  SELECT P.src, P.dst, P.vec, P.cost FROM path P, minCost M
  WHERE P.src = M.src AND P.dst = M.dst AND P.cost = M.cost;
