-- Several tables and views in one file, comments of both kinds, any letter case of keywords, text that looks like a comment; expected by hand.
create table T(a text, b integer);   -- trailing comment
/* a block
   comment; with a semicolon */
Create View first_(a) As Select a From T Where b > 1;
CREATE VIEW second_(a, note)
AS
  SELECT f.a, '-- kept; /* kept */' FROM first_ AS f
;
