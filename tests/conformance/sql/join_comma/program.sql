-- Comma join with a WHERE over three tables, one of them joined twice under different names; expected: oracle (DuckDB).
CREATE TABLE flight(src TEXT, dst TEXT, carrier TEXT);
CREATE TABLE city(code TEXT, name TEXT);
CREATE VIEW trips(origin, target, carrier) AS
  SELECT a.name, b.name, f.carrier FROM flight f, city a, city b WHERE f.src = a.code AND f.dst = b.code;
