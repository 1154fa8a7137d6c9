-- Non-linear recursion: the view joined with itself must see all of itself, not only the newest rows; expected: oracle (networkx).
CREATE TABLE link(src INTEGER, dst INTEGER);
CREATE RECURSIVE VIEW closure(src, dst) AS
  SELECT src, dst FROM link
  UNION
  SELECT a.src, b.dst FROM closure a, closure b WHERE a.dst = b.src;
