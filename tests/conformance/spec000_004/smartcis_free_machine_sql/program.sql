-- SmartCIS query (spec 004 TV-6 Ex. 14), weight below the threshold means a free seat, room must be open; expected by hand.
CREATE TABLE Machines(mid INTEGER);
CREATE TABLE MachineSoftware(mid INTEGER, software TEXT);
CREATE TABLE SeatSensor(mid INTEGER, rid TEXT, weightLevel INTEGER);
CREATE TABLE RoomSensor(rid TEXT, status TEXT);
CREATE VIEW freeMachine(mid, rid) AS
  SELECT m.mid, sr.rid FROM Machines m, MachineSoftware ms, SeatSensor ss, RoomSensor sr
  WHERE software = 'Word' AND ms.mid = m.mid AND ss.mid = m.mid AND ss.weightLevel < 10
    AND sr.rid = ss.rid AND sr.status = 'open';
