-- A recursive view with two base and two recursive branches; expected: oracle (networkx).
CREATE TABLE train(src TEXT, dst TEXT);
CREATE TABLE ferry(a TEXT, b TEXT);
CREATE RECURSIVE VIEW trip(src, dst) AS
  SELECT src, dst FROM train
  UNION
  SELECT a, b FROM ferry
  UNION
  SELECT trip.src, train.dst FROM trip, train WHERE trip.dst = train.src
  UNION
  SELECT trip.src, ferry.b FROM trip, ferry WHERE trip.dst = ferry.a;
