-- Concatenation of columns and literals, a quote inside a literal, and joining on a concatenated value; expected by hand.
CREATE TABLE person(given TEXT, family TEXT);
CREATE TABLE login(name TEXT, id INTEGER);
CREATE VIEW greeting(text) AS SELECT given || ' ' || family || '''s page' FROM person;
CREATE VIEW matched(family, id) AS SELECT p.family, l.id FROM person p, login l WHERE p.given || '.' || p.family = l.name;
