-- Highest-bandwidth path (spec 000 section II) in SQL, CASE takes the narrower link, acyclic graph; expected: oracle (thresholded reachability).
CREATE TABLE link(src TEXT, dst TEXT, bandwidth INTEGER);
CREATE RECURSIVE VIEW path(src, dst, bandwidth) AS
  SELECT src, dst, bandwidth FROM link
  UNION
  SELECT L.src, P.dst, CASE WHEN L.bandwidth < P.bandwidth THEN L.bandwidth ELSE P.bandwidth END
  FROM link L, path P WHERE L.dst = P.src;
CREATE VIEW highest(src, dst, bandwidth) AS
  SELECT src, dst, MAX(bandwidth) FROM path GROUP BY src, dst;
