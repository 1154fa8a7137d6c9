-- Relational division by two nested NOT EXISTS: suppliers of every red part; expected: oracle (DuckDB).
CREATE TABLE supplies(supplier TEXT, part TEXT);
CREATE TABLE part(name TEXT, colour TEXT);
CREATE VIEW allRed(supplier) AS
  SELECT s.supplier FROM supplies s WHERE NOT EXISTS (
    SELECT 1 FROM part p WHERE p.colour = 'red' AND NOT EXISTS (
      SELECT 1 FROM supplies t WHERE t.supplier = s.supplier AND t.part = p.name));
