-- The query of the dissertation, example 14: free machines with Word in open rooms.
SELECT m.mid, sr.rid
FROM machines m, machinesoftware ms, seatsensor ss, roomsensor sr
WHERE ms.software = 'Word' AND ms.mid = m.mid AND ss.mid = m.mid AND ss.weightlevel < 20000 AND sr.rid = ss.rid AND sr.status = 'open'
