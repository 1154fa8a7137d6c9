-- INTERSECT of two projections; expected: oracle (DuckDB).
CREATE TABLE buyer(name TEXT, item TEXT);
CREATE TABLE seller(name TEXT, item TEXT);
CREATE VIEW traders(name) AS SELECT name FROM buyer INTERSECT SELECT name FROM seller;
CREATE VIEW sameItem(name, item) AS SELECT name, item FROM buyer INTERSECT SELECT name, item FROM seller;
