-- JOIN ... USING over one and over two columns; the shared column appears once; expected: oracle (DuckDB).
CREATE TABLE r(a INTEGER, b INTEGER);
CREATE TABLE s(b INTEGER, c TEXT);
CREATE TABLE t(a INTEGER, b INTEGER, d TEXT);
CREATE VIEW one(a, b, c) AS SELECT a, b, c FROM r JOIN s USING (b);
CREATE VIEW two(a, b, d) AS SELECT a, b, d FROM r JOIN t USING (a, b);
