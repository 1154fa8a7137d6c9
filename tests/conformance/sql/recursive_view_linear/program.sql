-- CREATE RECURSIVE VIEW with an extra filter in the recursive branch and text keys with spaces; expected by hand.
CREATE TABLE part_of(part TEXT, whole TEXT, sealed INTEGER);
CREATE RECURSIVE VIEW contained(part, whole) AS
  SELECT part, whole FROM part_of
  UNION
  SELECT c.part, p.whole FROM contained c JOIN part_of p ON c.whole = p.part WHERE p.sealed = 0;
