-- Regions of sensors in SQL: each region grows from a seed over triggered sensors nearby; the largest ones win.

CREATE TABLE sensor(id TEXT, x BIGINT, y BIGINT);
CREATE TABLE seed(region TEXT, sensor TEXT);
CREATE TABLE triggered(sensor TEXT);

CREATE VIEW near(one, other) AS
  SELECT a.id, b.id FROM sensor a, sensor b
  WHERE (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) <= 25;

CREATE RECURSIVE VIEW region(name, sensor) AS
  SELECT s.region, s.sensor FROM seed s JOIN triggered t ON t.sensor = s.sensor
  UNION
  SELECT r.name, n.other
  FROM region r JOIN near n ON n.one = r.sensor JOIN triggered t ON t.sensor = n.other;

CREATE VIEW size(name, sensors) AS
  SELECT name, COUNT(*) FROM region GROUP BY name;

CREATE VIEW largest(name) AS
  SELECT name FROM size WHERE sensors = (SELECT MAX(sensors) FROM size);
