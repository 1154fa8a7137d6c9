-- CASE with several branches, the first that holds wins, and a CASE inside an aggregate; expected: oracle (DuckDB).
CREATE TABLE reading(sensor TEXT, value INTEGER);
CREATE VIEW graded(sensor, grade) AS
  SELECT sensor, CASE WHEN value > 100 THEN 'high' WHEN value > 10 THEN 'mid' ELSE 'low' END FROM reading;
CREATE VIEW alarms(sensor, n) AS
  SELECT sensor, SUM(CASE WHEN value > 100 THEN 1 ELSE 0 END) FROM reading GROUP BY sensor;
