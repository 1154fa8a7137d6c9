-- AND binds tighter than OR, NOT tighter still; comparisons on text and numbers; expected: oracle (DuckDB).
CREATE TABLE t(a TEXT, b INTEGER);
CREATE VIEW loose(a, b) AS SELECT a, b FROM t WHERE a = 'x' OR a = 'y' AND b > 5;
CREATE VIEW tight(a, b) AS SELECT a, b FROM t WHERE (a = 'x' OR a = 'y') AND b > 5;
CREATE VIEW negated(a, b) AS SELECT a, b FROM t WHERE NOT a = 'x' AND NOT (b <= 5 OR b >= 9);
