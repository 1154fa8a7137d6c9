-- DOUBLE columns: comparison with integer literals, arithmetic, least value per group; all results have a fractional part; expected by hand.
CREATE TABLE point(name TEXT, x DOUBLE, y REAL);
CREATE VIEW right_(name, s) AS SELECT name, x + y FROM point WHERE x > 1;
CREATE VIEW smallest(name, m) AS SELECT name, MIN(x * 0.5) FROM point GROUP BY name;
