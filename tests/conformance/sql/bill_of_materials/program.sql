-- Quantities along several ways: the path tells rows apart that UNION would make one. Without it 6 bolts. Expected: by hand.
CREATE TABLE part(whole TEXT, piece TEXT, n BIGINT);
INSERT INTO part VALUES
  ('bike', 'front', 1), ('bike', 'rear', 1), ('front', 'bolt', 4), ('rear', 'bolt', 4), ('bike', 'bolt', 2);

CREATE RECURSIVE VIEW needed(piece, n, path) AS
  SELECT piece, n, '/' || piece FROM part WHERE whole = 'bike'
  UNION
  SELECT p.piece, needed.n * p.n, needed.path || '/' || p.piece FROM needed JOIN part p ON p.whole = needed.piece;

CREATE VIEW total(piece, n) AS SELECT piece, SUM(n) FROM needed GROUP BY piece;
