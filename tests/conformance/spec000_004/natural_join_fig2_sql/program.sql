-- The three-way join Q of spec 004 TV-6 (Fig. 2); column names repeat between tables, so the view names its own; expected by hand.
CREATE TABLE A(x INTEGER, y INTEGER);
CREATE TABLE B(x INTEGER, u TEXT);
CREATE TABLE C(y INTEGER, v TEXT);
CREATE VIEW Q(ax, ay, bx, u, cy, v) AS SELECT * FROM A, B, C WHERE A.x = B.x AND A.y = C.y;
