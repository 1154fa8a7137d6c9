-- Two recursive views that read each other: walks of even and of odd length from a; expected by hand.
CREATE TABLE link(src TEXT, dst TEXT);
CREATE RECURSIVE VIEW evenWalk(node) AS
  SELECT 'a'
  UNION
  SELECT l.dst FROM oddWalk o JOIN link l ON o.node = l.src;
CREATE RECURSIVE VIEW oddWalk(node) AS
  SELECT l.dst FROM evenWalk e JOIN link l ON e.node = l.src;
