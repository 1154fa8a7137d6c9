-- Negation over a finished recursion: pairs of nodes without a path; expected by hand.
CREATE TABLE link(src TEXT, dst TEXT);
CREATE VIEW node(name) AS SELECT src FROM link UNION SELECT dst FROM link;
CREATE RECURSIVE VIEW reach(src, dst) AS
  SELECT src, dst FROM link
  UNION
  SELECT r.src, l.dst FROM reach r, link l WHERE r.dst = l.src;
CREATE VIEW cut(src, dst) AS
  SELECT a.name, b.name FROM node a, node b
  WHERE NOT EXISTS (SELECT 1 FROM reach r WHERE r.src = a.name AND r.dst = b.name) AND a.name <> b.name;
