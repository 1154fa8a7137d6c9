-- Routing resilience in SQL, keeping the pairs with at least two routes (spec 000 section II), TV-4 graph; expected: oracle (networkx).
CREATE TABLE link(src TEXT, dst TEXT);
CREATE RECURSIVE VIEW path(src, dst, vec) AS
  SELECT src, dst, src || dst FROM link
  UNION
  SELECT link.src, path.dst, link.src || vec FROM link, path WHERE link.dst = path.src;
CREATE VIEW resilience(src, dst, routes) AS
  SELECT src, dst, COUNT(*) FROM path GROUP BY src, dst HAVING COUNT(*) >= 2;
