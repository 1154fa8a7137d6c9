-- activeRegion, regionSizes, largestRegion, largestRegions as printed (spec 004 TV-6), k = 20, distance from functions.py; expected by hand.
CREATE TABLE sensor(sensorid TEXT, coord TEXT);
CREATE TABLE coordSensor(regionid TEXT, sensorid TEXT);
CREATE TABLE isTriggered(sensorid TEXT);
CREATE VIEW activeRegion AS
WITH RECURSIVE region(regionid, sensorid) AS (
  SELECT M.regionid, S.sensorid FROM sensor S, coordSensor M, isTriggered T
  WHERE M.sensorid = S.sensorid AND S.sensorid = T.sensorid
  UNION
  SELECT A.regionid, S2.sensorid FROM sensor S1, sensor S2, region A, isTriggered T
  WHERE distance(S1.coord, S2.coord) < 20 AND S1.sensorid = A.sensorid AND S1.sensorid = T.sensorid
)
SELECT regionid, sensorid FROM region;
CREATE VIEW regionSizes(regionid, size) AS
  SELECT regionid, COUNT(sensorid) FROM activeRegion GROUP BY regionid;
CREATE VIEW largestRegion(size) AS SELECT MAX(size) FROM regionSizes;
CREATE VIEW largestRegions(regionid) AS
  SELECT R.regionid FROM regionSizes R, largestRegion L WHERE R.size = L.size;
