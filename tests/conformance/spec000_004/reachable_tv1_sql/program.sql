-- The reachable query of spec 004 TV-6 as printed, on the links of TV-1; expected: table of TV-1.
CREATE TABLE link(src TEXT, dst TEXT);
CREATE VIEW reachable AS
WITH RECURSIVE reachable(src, dst) AS (
  SELECT src, dst FROM link
  UNION
  SELECT link.src, reachable.dst FROM link, reachable WHERE link.dst = reachable.src
)
SELECT * FROM reachable;
