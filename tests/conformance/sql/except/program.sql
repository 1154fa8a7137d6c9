-- EXCEPT as set difference over two columns, and nodes without incoming links; expected: oracle (DuckDB).
CREATE TABLE link(src TEXT, dst TEXT);
CREATE TABLE down(src TEXT, dst TEXT);
CREATE VIEW up(src, dst) AS SELECT src, dst FROM link EXCEPT SELECT src, dst FROM down;
CREATE VIEW roots(node) AS SELECT src FROM link EXCEPT SELECT dst FROM link;
