-- COUNT(DISTINCT column) as used by SegTollS (spec 004 TV-6) beside a plain COUNT; expected: oracle (DuckDB).
CREATE TABLE carLoc(carid INTEGER, seg INTEGER, xpos INTEGER);
CREATE VIEW v(seg, positions, reports) AS SELECT seg, COUNT(DISTINCT xpos), COUNT(*) FROM carLoc GROUP BY seg;
