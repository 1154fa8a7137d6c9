-- The corrected activeRegion (spec 004 TV-6 note: test the added sensor) with its sizes; two regions tie for largest; expected by hand.
CREATE TABLE sensor(sensorid TEXT, coord TEXT);
CREATE TABLE coordSensor(regionid TEXT, sensorid TEXT);
CREATE TABLE isTriggered(sensorid TEXT);
CREATE RECURSIVE VIEW activeRegion(regionid, sensorid) AS
  SELECT M.regionid, S.sensorid FROM sensor S, coordSensor M, isTriggered T
  WHERE M.sensorid = S.sensorid AND S.sensorid = T.sensorid
  UNION
  SELECT A.regionid, S2.sensorid FROM sensor S1, sensor S2, activeRegion A, isTriggered T
  WHERE distance(S1.coord, S2.coord) < 20 AND S1.sensorid = A.sensorid AND S2.sensorid = T.sensorid;
CREATE VIEW regionSizes(regionid, size) AS
  SELECT regionid, COUNT(sensorid) FROM activeRegion GROUP BY regionid;
CREATE VIEW largestRegion(size) AS SELECT MAX(size) FROM regionSizes;
CREATE VIEW largestRegions(regionid) AS
  SELECT R.regionid FROM regionSizes R, largestRegion L WHERE R.size = L.size;
