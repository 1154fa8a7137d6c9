"""SQL programs against sqlite, which answers the same queries over the same rows; and what is refused, literally."""

from __future__ import annotations

import math
import sqlite3
from functools import cache
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whence import Session
from whence.lang import Program, load
from whence.lang.diagnostics import Diagnostics, render
from whence.lang.printer import print_module
from whence.lang.source import Source
from whence.lang.sql import translate
from whence.reference import evaluate

Rows = set[tuple[object, ...]]
Tables = dict[str, Rows]

SCHEMA = """
CREATE TABLE edge (src TEXT, dst TEXT);
CREATE TABLE item (id BIGINT PRIMARY KEY, kind TEXT NOT NULL, size BIGINT, price DOUBLE);
CREATE TABLE owner (id BIGINT, name TEXT);
CREATE TABLE tag (kind TEXT, label TEXT);
"""

TEXT = st.sampled_from(["a", "b", "c", "ab", "a_b"])
NUMBER = st.integers(-2, 4)
HALF = st.integers(-4, 6).map(lambda number: number / 2)
TABLES = st.fixed_dictionaries(
    {
        "edge": st.sets(st.tuples(TEXT, TEXT), max_size=6),
        "item": st.sets(st.tuples(NUMBER, TEXT, NUMBER, HALF), max_size=6),
        "owner": st.sets(st.tuples(NUMBER, TEXT), max_size=4),
        "tag": st.sets(st.tuples(TEXT, TEXT), max_size=4),
    }
)

# Each query, and how to say it to sqlite where that differs.
QUERIES: dict[str, str | tuple[str, str]] = {
    # -- projections and expressions
    "columns": "SELECT dst, src FROM edge",
    "star": "SELECT * FROM item",
    "star_of_one_table": "SELECT o.*, i.size FROM item i, owner o",
    "distinct": "SELECT DISTINCT kind FROM item",
    "literals": "SELECT 1, 'it''s', 2.5, -3, kind FROM item",
    "no_from": "SELECT 1 AS one, 'x' AS two",
    "no_from_where": "SELECT 1 WHERE 2 < 1",
    "arithmetic": "SELECT id + size * 2 - 1, -(id), (id + 7) % 3, price * 2 FROM item",
    "integer_division": "SELECT (id * 7) / 2, size / 3 FROM item",
    "float_division": "SELECT price / 4, id / 2.0 FROM item",
    "mixed_numbers": "SELECT id + price, size * 1.5 FROM item WHERE id < price",
    "bits": "SELECT id & 3, id | 4, size << 2, ~id FROM item",
    "concatenation": "SELECT src || '->' || dst, src || 1 FROM edge",
    "casts": "SELECT CAST(id AS TEXT), CAST(size AS DOUBLE), CAST('12' AS BIGINT) FROM item",
    "float_as_integer": (  # SQLite cuts off; in DuckDB and PostgreSQL, halves become even
        "SELECT id, CAST(price AS INTEGER) FROM item",
        "SELECT id, CASE WHEN price - FLOOR(price) = 0.5 THEN CAST(2 * ROUND(price / 2) AS INTEGER)"
        " ELSE CAST(ROUND(price) AS INTEGER) END FROM item",
    ),
    "text_functions": "SELECT LENGTH(src), SUBSTR(src, 2), SUBSTR(dst, 1, 2), SUBSTR(dst, LENGTH(dst), 1) FROM edge",
    "substring_from": ("SELECT SUBSTRING(src FROM 2 FOR 1) FROM edge", "SELECT SUBSTR(src, 2, 1) FROM edge"),
    "concat": ("SELECT CONCAT(src, '+', dst) FROM edge", "SELECT src || '+' || dst FROM edge"),
    "least_greatest": (
        "SELECT LEAST(id, size, 1), GREATEST(id, size) FROM item",
        "SELECT min(id, size, 1), max(id, size) FROM item",
    ),
    "abs_mod": ("SELECT ABS(id), MOD(size + 9, 4) FROM item", "SELECT ABS(id), (size + 9) % 4 FROM item"),
    "power": "SELECT POWER(id + 3, -1), POWER(2, size), POWER(size, 2), POWER(4, 0.5) FROM item",
    "float_as_text": "SELECT CAST(price AS TEXT), 'costs ' || (price / 4) FROM item",
    "case": "SELECT id, CASE WHEN size > 2 THEN 'big' WHEN size = 2 THEN 'two' ELSE kind END FROM item",
    "simple_case": "SELECT CASE kind WHEN 'a' THEN 1 WHEN 'b' THEN 2 ELSE size END FROM item",
    "nested_case": "SELECT CASE WHEN id > 0 THEN CASE WHEN size > 0 THEN 1 ELSE 2 END ELSE 3 END + size FROM item",
    "case_of_mixed_numbers": "SELECT CASE WHEN id > 0 THEN price ELSE size END FROM item",
    # -- conditions
    "and_or_not": "SELECT id FROM item WHERE NOT (kind = 'a' AND size > 1) AND (id < 3 OR price >= 1)",
    "comparisons": "SELECT id FROM item WHERE size <> 2 AND id <= 3 AND kind != 'b' AND price > -1",
    "between": "SELECT id, size FROM item WHERE size BETWEEN 0 AND 2 AND id NOT BETWEEN 1 AND 2",
    "in_list": "SELECT src FROM edge WHERE dst IN ('a', 'b') AND src NOT IN ('c')",
    "row_in_list": (
        "SELECT src FROM edge WHERE (src, dst) IN (('a', 'b'), ('b', 'c'))",
        "SELECT src FROM edge WHERE (src, dst) IN (VALUES ('a', 'b'), ('b', 'c'))",
    ),
    "row_equality": "SELECT src FROM edge WHERE (src, dst) = ('a', 'b') OR (src, dst) <> (dst, 'b')",
    "like_and_not": "SELECT src FROM edge WHERE NOT src LIKE 'a%' OR NOT (dst NOT LIKE '%b')",
    "like": "SELECT src FROM edge WHERE src LIKE 'a%' AND dst NOT LIKE '_b'",
    "like_escape": "SELECT src FROM edge WHERE src LIKE 'a!_%' ESCAPE '!'",
    "like_without_wildcard": "SELECT src FROM edge WHERE src LIKE 'ab'",
    "text_order": "SELECT src FROM edge WHERE src < dst",
    "case_in_where": "SELECT id FROM item WHERE CASE WHEN kind = 'a' THEN size ELSE id END > 1",
    "case_in_negated_where": "SELECT id FROM item WHERE NOT (CASE WHEN kind = 'a' THEN size ELSE id END > 1)",
    "true_false": "SELECT id FROM item WHERE TRUE AND NOT FALSE",
    "is_distinct_from": (
        "SELECT id FROM item WHERE id IS DISTINCT FROM size",
        "SELECT id FROM item WHERE id IS NOT size",
    ),
    # -- joins
    "comma_join": "SELECT e.src, f.dst FROM edge e, edge f WHERE e.dst = f.src",
    "inner_join": "SELECT name, size FROM item JOIN owner ON item.id = owner.id INNER JOIN tag ON tag.kind = item.kind",
    "cross_join": "SELECT name, label FROM owner CROSS JOIN tag",
    "using": "SELECT * FROM item JOIN owner USING (id)",
    "using_unqualified": "SELECT id, name, label FROM item JOIN owner USING (id) JOIN tag USING (kind)",
    "natural_join": "SELECT * FROM owner NATURAL JOIN item",
    "parenthesised_join": "SELECT name FROM tag JOIN (item JOIN owner ON item.id = owner.id) ON tag.kind = item.kind",
    "join_on_inequality": "SELECT i.id, o.id FROM item i JOIN owner o ON i.id < o.id AND i.kind <> o.name",
    "int_equals_float": "SELECT id, name FROM item JOIN owner USING (id) WHERE size = price",
    "float_join": "SELECT i.id, j.id FROM item i, item j WHERE i.size = j.price",
    "repeated_column": "SELECT src FROM edge WHERE src = dst",
    "derived_table": """
        SELECT d.total FROM (SELECT id + size AS total, kind FROM item WHERE size > 0) AS d
        WHERE d.total < 5""",
    "derived_union": "SELECT x FROM (SELECT src AS x FROM edge UNION SELECT dst FROM edge) u",
    "renamed_columns": (
        "SELECT b FROM edge AS e (a, b)",
        "SELECT dst FROM edge",
    ),
    # -- subqueries
    "in_subquery": "SELECT id FROM item WHERE kind IN (SELECT kind FROM tag)",
    "not_in_subquery": "SELECT id FROM item WHERE kind NOT IN (SELECT kind FROM tag WHERE label <> 'a')",
    "expression_in_subquery": """
        SELECT id FROM item WHERE id + 1 IN (SELECT id FROM owner)
        OR size * 2 NOT IN (SELECT id FROM owner)""",
    "int_in_floats": "SELECT id FROM item WHERE size IN (SELECT price FROM item)",
    "float_not_in_ints": "SELECT id FROM item WHERE price NOT IN (SELECT size FROM item)",
    "float_in_correlated_ints": "SELECT id FROM item i WHERE price IN (SELECT j.size FROM item j WHERE j.id < i.id)",
    "in_repeated_column": "SELECT id FROM item WHERE kind NOT IN (SELECT kind FROM item WHERE id = size)",
    "row_in_subquery": "SELECT id FROM item WHERE (id, kind) IN (SELECT id, name FROM owner)",
    "correlated_in": "SELECT id FROM item i WHERE size IN (SELECT o.id FROM owner o WHERE o.name = i.kind)",
    "exists": "SELECT id FROM item WHERE EXISTS (SELECT * FROM owner WHERE owner.id = item.id)",
    "not_exists": """
        SELECT id FROM item i WHERE NOT EXISTS (SELECT 1 FROM owner o
        WHERE o.id = i.id AND o.name = i.kind)""",
    "exists_with_inequality": """
        SELECT id FROM item i WHERE NOT EXISTS (SELECT 1 FROM owner o
        WHERE o.id > i.id + i.size)""",
    "exists_uncorrelated": "SELECT id FROM item WHERE EXISTS (SELECT 1 FROM tag WHERE label = 'a')",
    "exists_in_or": "SELECT id FROM item i WHERE size > 2 OR NOT EXISTS (SELECT 1 FROM tag t WHERE t.kind = i.kind)",
    "nested_exists": """
        SELECT id FROM item i WHERE NOT EXISTS (
            SELECT 1 FROM tag t WHERE NOT EXISTS (SELECT 1 FROM owner o WHERE o.id = i.id AND o.name = t.label))""",
    "exists_union": """
        SELECT id FROM item i WHERE EXISTS (
            SELECT 1 FROM tag t WHERE t.kind = i.kind UNION SELECT 1 FROM owner o WHERE o.id = i.id)""",
    "exists_except": """
        SELECT id FROM item i WHERE EXISTS (
            SELECT kind FROM tag t WHERE t.label <> i.kind EXCEPT SELECT name FROM owner o WHERE o.id = i.id)""",
    "exists_grouped": """
        SELECT id FROM item i WHERE EXISTS (
            SELECT kind FROM tag t WHERE t.kind = i.kind GROUP BY kind HAVING COUNT(*) > 1)""",
    "scalar_subquery": "SELECT id FROM item WHERE size = (SELECT MAX(size) FROM item)",
    "correlated_count": "SELECT id, (SELECT COUNT(*) FROM tag t WHERE t.kind = i.kind) FROM item i",
    "scalar_in_case": "SELECT id, CASE WHEN size > (SELECT COUNT(*) FROM tag) THEN 1 ELSE 0 END FROM item",
    "empty_scalar_in_case": """
        SELECT id, CASE WHEN size > (SELECT MAX(id) FROM owner) THEN 1 WHEN size < 0 THEN 2 ELSE 0 END FROM item""",
    "empty_scalar_in_negated_case": """
        SELECT id, CASE WHEN NOT (size > (SELECT MAX(id) FROM owner) AND id > 0) THEN 1 ELSE 0 END FROM item""",
    "empty_scalars_in_case": """
        SELECT id, CASE WHEN size > (SELECT MAX(id) FROM owner) OR kind = (SELECT MIN(label) FROM tag) THEN 1 ELSE 0 END
        FROM item""",
    "empty_correlated_scalar_in_case": """
        SELECT id, CASE WHEN size > (SELECT MAX(o.id) FROM owner o WHERE o.name = i.kind) THEN 1 ELSE 0 END
        FROM item i""",
    "empty_scalar_in_grouped_case": """
        SELECT kind, CASE WHEN SUM(size) > (SELECT MIN(id) FROM owner) THEN 'more' ELSE 'less' END
        FROM item GROUP BY kind""",
    "empty_scalar_in_simple_case": "SELECT id, CASE (SELECT MAX(id) FROM owner) WHEN 1 THEN 1 ELSE 0 END FROM item",
    # -- aggregates
    "count_of_values": "SELECT COUNT(10 / size), COUNT(size % id), COUNT(DISTINCT 10 / size) FROM item",
    "count_of_values_by_group": "SELECT kind, COUNT(10 / size), COUNT(*), SUM(10 / (size - 9)) FROM item GROUP BY kind",
    "count_rows": "SELECT COUNT(*) FROM item",
    "count_of_nothing": "SELECT COUNT(*), COUNT(id) FROM item WHERE id > 100",
    "sum_of_nothing": "SELECT SUM(id) FROM item WHERE id > 100",
    "min_of_nothing": "SELECT MIN(id) FROM item WHERE id > 100",
    "group_by": "SELECT kind, COUNT(*), SUM(size), MIN(size), MAX(price) FROM item GROUP BY kind",
    "average": "SELECT kind, AVG(size), AVG(price) FROM item GROUP BY kind",
    "sum_counts_rows_not_values": "SELECT SUM(size) FROM item JOIN tag ON TRUE HAVING COUNT(*) > 0",
    "count_of_a_join": "SELECT src, COUNT(*) FROM edge, tag GROUP BY src",
    "count_distinct": "SELECT kind, COUNT(DISTINCT size), SUM(DISTINCT size) FROM item GROUP BY kind",
    "count_distinct_expression": "SELECT COUNT(DISTINCT id % 2), COUNT(DISTINCT kind) FROM item",
    "count_distinct_pair": (
        "SELECT COUNT(DISTINCT kind, size) FROM item",
        "SELECT COUNT(*) FROM (SELECT DISTINCT kind, size FROM item)",
    ),
    "aggregate_expression": "SELECT kind, MAX(size) - MIN(size) + 1, SUM(size * 2) FROM item GROUP BY kind",
    "aggregate_of_a_key": "SELECT kind, size, SUM(size), MAX(kind || 'x') FROM item GROUP BY kind, size",
    "having_alias": "SELECT kind AS k, COUNT(*) AS n FROM item GROUP BY k HAVING n > 1 AND k <> 'a'",
    "having_alias_not_in_subquery": """
        SELECT kind AS k, COUNT(*) AS name FROM item GROUP BY k HAVING EXISTS (SELECT 1 FROM owner WHERE name = 'a')""",
    "group_by_expression": "SELECT id % 2, COUNT(*), MAX(size) FROM item GROUP BY id % 2",
    "group_by_position": "SELECT kind, size % 2, COUNT(*) FROM item GROUP BY 1, 2",
    "group_by_alias": "SELECT size % 2 AS parity, COUNT(*) FROM item GROUP BY parity",
    "group_by_case": """
        SELECT CASE WHEN size > 1 THEN 'big' ELSE 'small' END, COUNT(*) FROM item
        GROUP BY CASE WHEN size > 1 THEN 'big' ELSE 'small' END""",
    "group_without_aggregate": "SELECT kind FROM item GROUP BY kind, size",
    "having": "SELECT kind FROM item GROUP BY kind HAVING COUNT(*) > 1 AND MIN(size) < 2",
    "having_subquery": "SELECT kind FROM item GROUP BY kind HAVING kind IN (SELECT kind FROM tag) AND COUNT(*) > 0",
    "having_correlated": """
        SELECT kind FROM item i GROUP BY kind HAVING NOT EXISTS (SELECT 1 FROM tag t WHERE t.kind = i.kind)""",
    "group_with_filters": "SELECT kind, COUNT(*) FROM item WHERE size > 0 AND price < 2 GROUP BY kind",
    "group_with_or": "SELECT kind, COUNT(*) FROM item WHERE size > 0 OR price < 2 GROUP BY kind",
    "group_with_exists": """
        SELECT kind, COUNT(*) FROM item i WHERE EXISTS (SELECT 1 FROM owner o WHERE o.id = i.id) GROUP BY kind""",
    "group_by_joined": "SELECT o.name, COUNT(*), SUM(i.size) FROM item i JOIN owner o ON i.id = o.id GROUP BY o.name",
    "equal_to_a_key": "SELECT i.id, COUNT(*) FROM item i JOIN owner o ON i.id = o.id GROUP BY o.id",
    "case_in_aggregate": "SELECT kind, SUM(CASE WHEN size > 1 THEN size ELSE 0 END) FROM item GROUP BY kind",
    "case_without_else": "SELECT kind, COUNT(CASE WHEN size > 1 THEN 1 END) FROM item GROUP BY kind",
    "filter": "SELECT kind, COUNT(*) FILTER (WHERE size > 1) FROM item GROUP BY kind",
    "aggregate_of_derived": """
        SELECT MAX(n) FROM (SELECT kind, COUNT(*) AS n FROM item GROUP BY kind)
        HAVING COUNT(*) > 0""",
    "correlated_aggregate": """
        SELECT id FROM item i WHERE price > (SELECT AVG(j.price) FROM item j WHERE j.kind = i.kind)""",
    # -- set operations
    "union": "SELECT src FROM edge UNION SELECT kind FROM item UNION SELECT label FROM tag",
    "union_all": ("SELECT src FROM edge UNION ALL SELECT src FROM edge", "SELECT src FROM edge"),
    "union_of_mixed_numbers": "SELECT size FROM item UNION SELECT price FROM item",
    "except": "SELECT kind FROM item EXCEPT SELECT kind FROM tag",
    "except_of_mixed_numbers": "SELECT size FROM item EXCEPT SELECT price FROM item",
    "intersect_of_mixed_numbers": "SELECT price FROM item INTERSECT SELECT size FROM item",
    "intersect": "SELECT kind FROM item INTERSECT SELECT kind FROM tag",
    "intersect_binds_tighter": (
        "SELECT src FROM edge UNION SELECT kind FROM item INTERSECT SELECT kind FROM tag",
        "SELECT src FROM edge UNION SELECT * FROM (SELECT kind FROM item INTERSECT SELECT kind FROM tag)",
    ),
    "parenthesised_except": (
        "SELECT src FROM edge EXCEPT (SELECT kind FROM item UNION SELECT kind FROM tag)",
        "SELECT src FROM edge EXCEPT SELECT * FROM (SELECT kind FROM item UNION SELECT kind FROM tag)",
    ),
    "except_chain": "SELECT src FROM edge EXCEPT SELECT kind FROM item EXCEPT SELECT kind FROM tag",
    # -- WITH
    "with": """
        WITH big AS (SELECT id, kind FROM item WHERE size > 1) SELECT b.id, t.label
        FROM big b JOIN tag t USING (kind)""",
    "with_two": "WITH a(x) AS (SELECT src FROM edge), b AS (SELECT x FROM a WHERE x > 'a') SELECT * FROM b",
    "with_hides_table": (
        "WITH tag AS (SELECT label AS kind FROM tag) SELECT kind FROM tag",
        "SELECT label FROM tag",
    ),
    "with_inside": "SELECT * FROM (WITH w AS (SELECT kind FROM tag) SELECT kind FROM w) d",
    "recursive": """
        WITH RECURSIVE reach(a, b) AS (
            SELECT src, dst FROM edge UNION SELECT edge.src, reach.b FROM edge, reach WHERE edge.dst = reach.a)
        SELECT a, b FROM reach WHERE a <> b""",
    "recursive_star": """
        WITH RECURSIVE reach AS (SELECT * FROM edge UNION SELECT r.src, e.dst FROM reach r JOIN edge e ON r.dst = e.src)
        SELECT * FROM reach""",
    "recursive_counter": """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 5)
        SELECT id, i FROM item, n WHERE id = i""",
    "recursive_in_subquery": """
        SELECT id FROM item WHERE kind IN (
            WITH RECURSIVE r(x) AS (SELECT 'a' UNION SELECT dst FROM edge, r WHERE src = x) SELECT x FROM r)""",
    "quoted_names": 'SELECT "edge"."src" AS "the source" FROM "edge"',
    "case_of_names": "SELECT E.SRC, Edge.dst FROM EDGE E, edge",
}


@cache
def program(query: str) -> Program:
    return load(SCHEMA + query, dialect="sql")


def ask_sqlite(tables: Tables, query: str) -> Rows:
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("PRAGMA case_sensitive_like = ON")
        connection.executescript(SCHEMA)
        for name, rows in tables.items():
            for row in rows:
                connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
        return set(connection.execute(query).fetchall())
    finally:
        connection.close()


def by_key(rows: Rows) -> Rows:
    """One row for each value of the first column: sqlite enforces the primary key, Whence does not."""
    return set({row[0]: row for row in sorted(rows, key=repr)}.values())


@pytest.mark.filterwarnings("ignore::whence.reference.EvaluationWarning")
@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=25, deadline=None)
@given(tables=TABLES)
def test_queries_answer_as_in_sqlite(name: str, tables: Tables) -> None:
    text = QUERIES[name]
    ours, theirs = (text, text) if isinstance(text, str) else text
    tables = tables | {"item": by_key(tables["item"])}
    assert evaluate(program(ours), tables)["result"] == ask_sqlite(tables, theirs)


# -- programs of several statements -----------------------------------------------------------------------------------

LINK = "CREATE TABLE link (src TEXT, dst TEXT);"
REACHABLE = """with recursive reachable(src,dst) as (select src,dst from link union
    select link.src, reachable.dst from link, reachable where link.dst = reachable.src)"""
PATH = """with recursive path(src,dst,vec,length) as (select src,dst,src||'.'||dst,1 from link union
    select link.src,path.dst,link.src||'.'||vec,length+1 from link,path where link.dst = path.src)"""
CHAIN = {"link": {("a", "b"), ("b", "c"), ("c", "d"), ("a", "c")}}
TWO_STEPS = {("a", "b"), ("b", "c"), ("c", "d"), ("a", "c"), ("b", "d"), ("a", "d")}


def run(text: str, facts: Tables, **functions: object) -> dict[str, Rows]:
    return evaluate(load(text, dialect="sql", functions=functions), facts)


def outputs(text: str) -> list[str]:
    return [transfer.relation for transfer in load(text, dialect="sql").transfers_of("output")]


def rules_of(text: str) -> str:
    made = translate(Source.of(text))
    module, found = made.module, made.found
    assert not found
    return print_module(module)


@pytest.mark.filterwarnings("ignore::whence.reference.EvaluationWarning")
@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=3, deadline=None)
@given(tables=TABLES)
def test_the_printed_rules_of_a_query_mean_the_same(name: str, tables: Tables) -> None:
    given = QUERIES[name]
    text = f"{SCHEMA}; {given if isinstance(given, str) else given[0]}"
    made = translate(Source.of(text))
    printed = load(print_module(made.module), functions=made.functions)
    assert evaluate(printed, tables) == run(text, tables)


def test_a_with_that_no_query_follows_is_a_view_of_its_name() -> None:
    assert outputs(LINK + REACHABLE) == ["reachable"]
    assert run(LINK + REACHABLE, CHAIN)["reachable"] == TWO_STEPS
    cycle = {"link": {("a", "b"), ("b", "a")}}
    assert run(LINK + REACHABLE, cycle)["reachable"] == {(x, y) for x in "ab" for y in "ab"}


def test_shortest_paths_of_the_papers() -> None:
    text = f"""{LINK} {PATH};
        create view minHops(src,dst,length) as select src,dst,min(length) from path group by src,dst;
        create view shortestPath as select P.src,P.dst,vec,P.length from path P, minHops H
            where P.src=H.src and P.dst=H.dst and P.length=H.length"""
    views = run(text, CHAIN)
    assert ("a", "d", "a.b.c.d", 3) in views["path"]
    assert views["minHops"] == {(*pair, 2 if pair in {("a", "d"), ("b", "d")} else 1) for pair in TWO_STEPS}
    assert views["shortestPath"] == {
        ("a", "b", "a.b", 1),
        ("b", "c", "b.c", 1),
        ("c", "d", "c.d", 1),
        ("a", "c", "a.c", 1),
        ("b", "d", "b.c.d", 2),
        ("a", "d", "a.c.d", 2),
    }


def distance(left: float, right: float) -> float:
    return math.fabs(left - right)


REGIONS = """
CREATE TABLE sensor (sensorid BIGINT, coord DOUBLE);
CREATE TABLE coordSensor (regionid BIGINT, sensorid BIGINT);
CREATE TABLE isTriggered (sensorid BIGINT);
with recursive activeRegion(regionid,sensorid) as (
    select M.regionid,S.sensorid from sensor S,coordSensor M,isTriggered T
        where M.sensorid=S.sensorid and S.sensorid=T.sensorid
    union select A.regionid,S2.sensorid from sensor S1,sensor S2,activeRegion A,isTriggered T
        where distance(S1.coord,S2.coord) < {k} and S1.sensorid=A.sensorid and S1.sensorid=T.sensorid);
"""


def test_regions_of_the_papers() -> None:
    text = f"""{REGIONS.format(k=10)}
        create view regionSizes(regionid,size) as select regionid,count(sensorid) from activeRegion group by regionid;
        create view largestRegion(size) as select max(size) from regionSizes;
        create view largestRegions as select R.regionid from regionSizes R,largestRegion L where R.size=L.size"""
    facts: Tables = {
        "sensor": {(1, 0.0), (2, 8.0), (3, 16.0), (4, 100.0)},
        "coordSensor": {(7, 1), (9, 4)},
        "isTriggered": {(1,), (2,), (4,)},
    }
    views = run(text, facts, distance=distance)
    assert views["activeRegion"] == {(7, 1), (7, 2), (7, 3), (9, 4)}
    assert views["regionSizes"] == {(7, 3), (9, 1)}
    assert views["largestRegion"] == {(3,)}
    assert views["largestRegions"] == {(7,)}


def test_an_unknown_constant_of_the_papers_is_explained() -> None:
    found = translate(Source.of(REGIONS.format(k="k")), {"distance": distance}).found
    assert [(each.text, each.advice) for each in found] == [
        (
            "column k is in no table of this query",
            "if a constant is meant, write its value, such as 10 or 'ten'; "
            "the columns here are sensorid, coord, regionid",
        )
    ]


def test_rules_read_like_rules() -> None:
    table = "CREATE TABLE link (src TEXT, dst TEXT, PRIMARY KEY (src, dst));"
    text = f"""{table} {REACHABLE};
        create view degree(node, n) as select src, count(*) from link group by src;
        create view sink as select distinct dst from link l where not exists (select * from link where src = l.dst)"""
    assert rules_of(text) == dedent("""\
        .decl link(src:symbol, dst:symbol)
        .input link
        .decl reachable(src:symbol, dst:symbol)
        reachable(src, dst) :- link(src, dst).
        reachable(src, reachable_dst) :- link(src, dst), reachable(dst, reachable_dst).
        .output reachable
        .decl degree(node:symbol, n:number)
        degree(src, count_rows) :- link(src, _), count_rows = count : { link(src, _dst) }.
        .output degree
        .decl sink(dst:symbol)
        sink(dst) :- link(_, dst), !link(dst, _).
        .output sink
    """)


def test_views_may_refer_to_each_other_in_any_order() -> None:
    text = """
        CREATE VIEW report AS SELECT odd.n, even.n AS m FROM odd, even WHERE odd.n = even.n + 1;
        CREATE RECURSIVE VIEW even (n) AS SELECT 0 UNION SELECT n + 1 FROM odd WHERE n < 5;
        CREATE OR REPLACE MATERIALIZED VIEW odd AS SELECT n + 1 AS n FROM even"""
    views = run(text, {})
    assert outputs(text) == ["report", "even", "odd"]
    assert views["report"] == {(1, 0), (3, 2), (5, 4)}


def test_a_view_and_its_own_recursive_query_are_one_relation() -> None:
    text = f"""{LINK} CREATE VIEW sources AS SELECT * FROM reachable;
        CREATE VIEW reachable AS {REACHABLE} SELECT * FROM reachable"""
    assert set(load(text, dialect="sql").relations) == {"link", "link.copies", "sources", "reachable"}
    assert run(text, CHAIN)["reachable"] == TWO_STEPS


def test_a_query_of_with_that_clashes_is_named_after_its_view() -> None:
    text = f"""{LINK}
        CREATE VIEW a AS WITH link AS (SELECT dst FROM link) SELECT * FROM link;
        CREATE VIEW b AS WITH a AS (SELECT src FROM link) SELECT * FROM a"""
    views = run(text, CHAIN)
    assert {"link", "a", "a.link", "b", "b.a"} <= set(views)
    assert views["a"] == {("b",), ("c",), ("d",)}
    assert views["b"] == {("a",), ("b",), ("c",)}


def test_bare_queries_are_numbered() -> None:
    text = f"{LINK} SELECT src FROM link; SELECT dst FROM link; {REACHABLE} SELECT src FROM reachable;"
    assert outputs(text) == ["result", "result2", "result3"]
    assert run(text, CHAIN)["result2"] == {("b",), ("c",), ("d",)}


def test_rows_can_be_inserted() -> None:
    text = """
        CREATE TABLE t (a BIGINT, b TEXT, c DOUBLE, d BIGINT UNSIGNED);
        INSERT INTO t VALUES (1, 'x', 2, 3), (-1, 'it''s', -2.5, 0);
        INSERT INTO t (b, a, d, c) VALUES ('y', 1 + 1, 7, 0.5);
        SELECT a, b FROM t"""
    assert run(text, {})["t"] == {(1, "x", 2.0, 3), (-1, "it's", -2.5, 0), (2, "y", 0.5, 7)}


def test_types_of_sql() -> None:
    types = {
        "number": "INT INTEGER BIGINT SMALLINT TINYINT INT8",
        "unsigned": "UBIGINT UINT64 BIGINT-UNSIGNED INT-UNSIGNED",
        "float": "DOUBLE REAL FLOAT DOUBLE-PRECISION",
        "decimal(18,3)": "DECIMAL NUMERIC",
        "decimal(9,2)": "DECIMAL(9,2) NUMERIC(9,2) DEC(9,2)",
        "decimal(9,0)": "DECIMAL(9)",
        "date": "DATE",
        "timestamp": "TIMESTAMP DATETIME TIMESTAMPTZ TIMESTAMP-WITH-TIME-ZONE TIMESTAMP(6)",
        "symbol": "TEXT VARCHAR VARCHAR(20) CHAR(3) STRING TIME",
    }
    pairs = [(name.replace("-", " "), kind) for kind, names in types.items() for name in names.split()]
    columns = ", ".join(f"c{at} {name}" for at, (name, _) in enumerate(pairs))
    fields = load(f"CREATE TABLE t ({columns})", dialect="sql").relations["t"].fields
    assert [str(field.kind) for field in fields] == [f"{kind}?" for _, kind in pairs]


def test_attributes_are_named_after_the_columns() -> None:
    text = """
        CREATE TABLE t (a BIGINT NOT NULL, b TEXT NOT NULL, "odd name" DOUBLE);
        SELECT min(a), COUNT(*), a + 1, b AS "a b", t.*, b FROM t GROUP BY a, b, t."odd name" """
    fields = load(text, dialect="sql").relations["result"].fields
    names = ["min", "count", "col3", "a_b", "a", "b", "odd_name", "b2"]
    types = ["number", "number", "number", "symbol", "number", "symbol", "float?", "symbol"]
    assert [(field.name, str(field.kind)) for field in fields] == list(zip(names, types, strict=True))


def test_registered_functions_hide_those_of_sql() -> None:
    def position(text: str, part: str) -> int:
        return text.find(part)

    text = f"{LINK} SELECT position(src || dst, 'b') + 1 FROM link"
    assert run(text, CHAIN, position=position)["result"] == {(2,), (1,), (0,)}


def test_an_integer_becomes_a_float_for_a_function_of_floats() -> None:
    text = "CREATE TABLE t (a BIGINT); INSERT INTO t VALUES (3); SELECT distance(a, 0.5) FROM t"
    assert run(text, {}, distance=distance)["result"] == {(2.5,)}


# -- what is refused --------------------------------------------------------------------------------------------------

TABLES_ON_ONE_LINE = "CREATE TABLE t (a BIGINT, b TEXT); CREATE TABLE u (a BIGINT, c DOUBLE);\n"

RENDERED = {
    "SELECT a FROM": """\
        q.sql:2:13: error[W0601]: the statement ends too early
            2 | SELECT a FROM
                            ^
          hint: expected table name""",
    "SELECT a b c FROM t": """\
        q.sql:2:12: error[W0601]: unexpected c
            2 | SELECT a b c FROM t
                           ^
          hint: check the clause before it""",
    "SELECT a FROM t SEMI JOIN u USING (a)": """\
        q.sql:2:27: error[W0602]: SEMI JOIN is not supported
            2 | SELECT a FROM t SEMI JOIN u USING (a)
                                          ^^^^^^^^^^
          hint: write EXISTS or NOT EXISTS""",
    "SELECT a FROM t, u": """\
        q.sql:2:8: error[W0603]: column a is ambiguous: it may be t.a or u.a
            2 | SELECT a FROM t, u
                       ^
          hint: write t.a or u.a""",
    "SELECT t.c FROM t": """\
        q.sql:2:8: error[W0603]: column c is not in t
            2 | SELECT t.c FROM t
                       ^^^
          hint: the columns here are a, b""",
    "SELECT a FROM tt": """\
        q.sql:2:15: error[W0604]: there is no table or view tt
            2 | SELECT a FROM tt
                              ^^
          hint: declare it with CREATE TABLE or CREATE VIEW; a WITH that refers to itself is WITH RECURSIVE""",
    "CREATE VIEW v (x) AS SELECT a, b FROM t": """\
        q.sql:2:29: error[W0606]: v lists 1 column, but its query has 2
            2 | CREATE VIEW v (x) AS SELECT a, b FROM t
                                            ^^^^^^^^^^^
          hint: list as many columns as the query selects""",
}


@pytest.mark.parametrize("text", RENDERED)
def test_errors_are_shown_with_their_place(text: str) -> None:
    source = Source.of(TABLES_ON_ONE_LINE + text, "q.sql")
    found = translate(source).found
    assert [render(each, source) for each in found] == [dedent(RENDERED[text])]


MESSAGES = {
    # -- W0601
    "CREATE VIEW v": "W0601 view v has no query",
    "INSERT VALUES (1)": "W0601 INSERT names no table",
    # -- W0602, statements
    "DROP TABLE t": "W0602 DROP TABLE is not supported",
    "UPDATE t SET a = 1": "W0602 UPDATE is not supported",
    "SELECT a FROM t WHERE NOW() > '2024-01-01'": "W0602 the function NOW is not supported",
    "SELECT CURRENT_DATE AS d FROM t": "W0602 CURRENT_DATE is not supported",
    "CREATE INDEX i ON t (a)": "W0602 CREATE INDEX is not supported",
    "VACUUM": "W0602 VACUUM is not supported",
    "CREATE TABLE v AS SELECT 1": "W0602 CREATE TABLE … AS is not supported",
    "INSERT INTO t SELECT * FROM t": "W0602 INSERT of a query is not supported",
    "CREATE TABLE v (x BLOB)": "W0602 the type VARBINARY is not supported",
    "CREATE TABLE v (x BIGINT[])": "W0602 the type ARRAY<BIGINT> is not supported",
    "CREATE TABLE v (x DECIMAL(19,2))": "W0602 the type DECIMAL(19, 2) is not supported",
    "CREATE TABLE v (x DECIMAL(2,3))": "W0602 the type DECIMAL(2, 3) is not supported",
    "CREATE TABLE v (x TIMESTAMP(3))": "W0602 the type TIMESTAMP(3) is not supported",
    "CREATE TABLE v (x INTERVAL)": "W0602 the type INTERVAL is not supported",
    "CREATE TABLE v (x BIGINT DEFAULT 1)": "W0602 DEFAULT is not supported",
    # -- W0602, clauses
    "SELECT a FROM t GROUP BY ROLLUP (a)": "W0602 ROLLUP is not supported",
    "SELECT a FROM t GROUP BY GROUPING SETS ((a), ())": "W0602 GROUPING SETS is not supported",
    "SELECT a FROM t FOR UPDATE": "W0602 FOR UPDATE is not supported",
    "WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n FROM g) CYCLE n SET again USING way SELECT n FROM g": (
        "W0602 CYCLE is not supported"
    ),
    "WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n FROM g) SEARCH DEPTH FIRST BY n SET o SELECT n FROM g": (
        "W0602 SEARCH is not supported"
    ),
    # -- W0602, tables
    "SELECT * FROM t SEMI JOIN u ON t.a = u.a": "W0602 SEMI JOIN is not supported",
    "SELECT a FROM t TABLESAMPLE (10)": "W0602 TABLESAMPLE is not supported",
    "SELECT x FROM UNNEST(1) x": "W0602 UNNEST is not supported",
    "SELECT * EXCEPT (a) FROM t": "W0602 * EXCEPT or REPLACE is not supported",
    # -- W0602, expressions
    "SELECT SOUNDEX(b) FROM t": "W0602 the function SOUNDEX is not supported",
    "SELECT a FROM t LIMIT a": "W0602 LIMIT of an expression is not supported",
    "SELECT SUM(a) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t": (
        "W0602 a frame of RANGE is not supported"
    ),
    "SELECT MEDIAN(a) OVER () FROM t": "W0602 the window function MEDIAN is not supported",
    "SELECT EXTRACT(JULIAN FROM b) FROM t": "W0602 EXTRACT of JULIAN is not supported",
    "SELECT DATE_TRUNC('century', DATE '2024-01-01')": "W0602 DATE_TRUNC by CENTURY is not supported",
    "SELECT DATE_DIFF('week', DATE '2024-01-01', DATE '2024-02-01')": "W0602 DATE_DIFF by WEEK is not supported",
    "SELECT DATE_TRUNC(b, DATE '2024-01-01') FROM t": "W0602 DATE_TRUNC with a unit that is not a string is not supported",
    "SELECT DATE_PART('year') FROM t": "W0606 the function DATE_PART takes 2 arguments, not 1",
    "SELECT DATE '2024-01-01' + INTERVAL '1 fortnight'": "W0602 this INTERVAL is not supported",
    "SELECT DATE '2024-01-01' + INTERVAL '1.5' MONTH": "W0602 this INTERVAL is not supported",
    "SELECT INTERVAL '1' DAY": "W0602 INTERVAL is not supported",
    "SELECT TIMESTAMP '2024-01-02 00:00:00' - TIMESTAMP '2024-01-01 00:00:00'": (
        "W0602 an INTERVAL, the difference of two timestamps, is not supported"
    ),
    "SELECT 0.1234567890 * 0.1234567890": "W0602 a product with 20 digits behind the point is not supported",
    "SELECT DATE '2024-02-30'": "W0103 '2024-02-30' is not a date",
    "SELECT TIMESTAMP '2024-02-28 25:00'": "W0103 '2024-02-28 25:00' is not a timestamp",
    "SELECT TIMESTAMP '2024-02-28 10:00+01'": "W0103 '2024-02-28 10:00+01' has a zone, and TIMESTAMP has none",
    "SELECT DATE '9999-12-31' + INTERVAL '1' DAY": "W0103 the result is not in the years 1 to 9999",
    "SELECT 1 WHERE DATE '2024-02-28' < 'soon'": "W0103 soon is not a date",
    "SELECT 1 WHERE 1.5 = 'much'": "W0103 much is not a decimal(18,1)",
    "CREATE TABLE v (x DECIMAL(4,2)); INSERT INTO v VALUES (123.45)": "W0103 123.45 has too many digits for decimal(4,2)",
    "CREATE TABLE v (x DATE); INSERT INTO v VALUES ('1.1.2024')": "W0103 1.1.2024 is not a date",
    "SELECT CAST(a AS BLOB) FROM t": "W0602 the type VARBINARY is not supported",
    "SELECT SUM(a ORDER BY a) FROM t": "W0602 SUM with ORDER BY is not supported",
    "SELECT STRING_AGG(b) OVER () FROM t": "W0602 the window function STRING_AGG is not supported",
    "SELECT SUBSTR(b, 0) FROM t": "W0602 SUBSTR from a position below 1 is not supported",
    "SELECT :x FROM t": "W0602 a parameter is not supported",
    "SELECT (SELECT a FROM u) FROM t": "W0602 a subquery that may have several rows as a value is not supported",
    "SELECT a FROM t WHERE b LIKE b": "W0602 LIKE with a pattern that is not a string is not supported",
    "SELECT a FROM t WHERE 1": "W0602 a value as a condition is not supported",
    "SELECT a FROM t WHERE a BETWEEN SYMMETRIC 2 AND 1": "W0602 BETWEEN with SYMMETRIC is not supported",
    # -- W0603
    'SELECT a FROM t WHERE b = "Word"': "W0603 column Word is in no table of this query",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE z = a)": "W0603 column z is in no table of this query",
    "SELECT b FROM t JOIN u USING (c)": "W0603 column c is on one side of the join only",
    "INSERT INTO t (a, z) VALUES (1, 2)": "W0603 column z is not in t",
    # -- W0604
    "SELECT z.a FROM t": "W0604 there is no table or view z",
    "SELECT z.* FROM t": "W0604 there is no table or view z",
    "SELECT * FROM t WHERE a IN (SELECT x FROM v)": "W0604 there is no table or view v",
    "WITH r AS (SELECT a FROM r) SELECT a FROM r": "W0604 there is no table or view r",
    "INSERT INTO v VALUES (1)": "W0604 there is no table or view v",
    # -- W0606
    "SELECT a FROM t UNION SELECT a, c FROM u": "W0606 the branches of UNION have 1 and 2 columns",
    "SELECT a, b FROM t EXCEPT SELECT a FROM u": "W0606 the branches of EXCEPT have 2 and 1 column",
    "SELECT a FROM t WHERE a IN (SELECT a, c FROM u)": ("W0606 1 value cannot be looked up in a subquery of 2 columns"),
    "SELECT a, COUNT(*) FROM t": "W0606 column a is neither grouped nor aggregated",
    "SELECT * FROM t GROUP BY a": "W0606 column b is neither grouped nor aggregated",
    "SELECT a FROM t WHERE COUNT(*) > 1": "W0606 the aggregate COUNT cannot stand here",
    "SELECT SUM(COUNT(*)) FROM t": "W0606 the aggregate COUNT cannot stand here",
    "SELECT MIN(a, 2) FROM t": "W0606 the aggregate MIN takes 1 argument, not 2",
    "SELECT STRING_AGG(b, b) FROM t": "W0606 the separator of STRING_AGG is not a string",
    "SELECT STRING_AGG(b, ',', b) FROM t": "W0606 the aggregate STRING_AGG takes 1 or 2 arguments, not 3",
    "SELECT STRING_AGG(DISTINCT b, ',' ORDER BY a) FROM t": (
        "W0606 STRING_AGG with DISTINCT is ordered by something else than its text"
    ),
    "SELECT MOD(a) FROM t": "W0606 the function MOD takes 2 arguments, not 1",
    "SELECT untyped(a) FROM t": "W0606 the function untyped does not say the types of its arguments and its result",
    "SELECT distance(a) FROM t": "W0606 the function distance takes 2 arguments, not 1",
    "SELECT a FROM t GROUP BY 2": "W0606 GROUP BY 2 names no column of the SELECT list",
    "SELECT 1 FROM t, t": "W0606 two tables of this query are called t",
    "INSERT INTO t VALUES (1)": "W0606 the row has 1 value for 2 columns",
    "CREATE VIEW v AS SELECT 1 AS x; INSERT INTO v VALUES (1)": "W0606 v is a view: its rows follow from its query",
    "CREATE VIEW v AS SELECT * FROM w; CREATE VIEW w AS SELECT * FROM v": (
        "W0606 the columns of v depend on themselves"
    ),
    # -- codes of the other dialect
    "SELECT 'x": "W0102 this string is never closed",
    "SELECT 1 /* x": "W0102 this comment is never closed",
    "SELECT 123456789012345678901 FROM t": "W0103 123456789012345678901 does not fit in 64 bits",
    f"SELECT {'(' * 5000}1": "W0110 this is nested too deeply",
    "CREATE TABLE t (x TEXT)": "W0206 table t is already defined",
    "CREATE VIEW t AS SELECT 1": "W0206 view t is already defined",
}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("EVERY(a > 1)", "BOOL_AND(a > 1)"),
        ("LISTAGG(b, '+') WITHIN GROUP (ORDER BY a DESC)", "STRING_AGG(b, '+' ORDER BY a DESC)"),
        ("STRING_AGG(b)", "STRING_AGG(b, ',' ORDER BY b)"),
        ("GROUP_CONCAT(a, '')", "STRING_AGG(a, '' ORDER BY CAST(a AS TEXT))"),
    ],
)
def test_two_ways_to_write_an_aggregate_are_one(one: str, other: str) -> None:
    tables = "CREATE TABLE t(a BIGINT, b TEXT); INSERT INTO t VALUES (10, 'x'), (2, 'w'), (3, NULL), (NULL, 'x');"
    views = f"CREATE VIEW one AS SELECT {one} AS c FROM t; CREATE VIEW other AS SELECT {other} AS c FROM t;"
    session = Session(load(f"{tables} {views}", dialect="sql"))
    assert session.bag("one") == session.bag("other") != [(None,)]


@pytest.mark.parametrize("text", MESSAGES, ids=lambda text: text[:60])
def test_what_cannot_be_translated_is_named(text: str) -> None:
    expected = MESSAGES[text]
    functions = {"distance": distance, "untyped": lambda value: value}
    found = translate(Source.of(TABLES_ON_ONE_LINE + text), functions).found
    assert [f"{each.code} {each.text}" for each in found] == ([expected] if isinstance(expected, str) else expected)


def test_every_error_of_a_text_is_reported() -> None:
    source = Source.of(
        f"{TABLES_ON_ONE_LINE} SELECT x, y FROM t; SELECT FROM; SELECT 1 FROM nowhere WHERE z = 1 LIMIT 1 + 1"
    )
    found = translate(source).found
    codes = [each.code for each in Diagnostics(source, found).errors]
    assert codes == ["W0603", "W0603", "W0601", "W0604", "W0602"]


# -- any text ---------------------------------------------------------------------------------------------------------

WORDS = """
    ( ) , ; * = < || 'x' "y" 1 2.5 . + - [ ] : ? @ /* -- ' a b c t u v AS SELECT FROM WHERE GROUP BY HAVING UNION ALL
    EXCEPT WITH RECURSIVE CREATE TABLE VIEW INSERT INTO VALUES BIGINT TEXT JOIN ON USING NATURAL LEFT CASE WHEN THEN
    ELSE END NOT AND OR IN EXISTS BETWEEN LIKE IS NULL COUNT( SUM( MAX( DISTINCT OVER LIMIT ORDER INTERVAL CAST( ANY
""".split()


@settings(max_examples=300, deadline=None)
@given(words=st.lists(st.sampled_from(WORDS), max_size=20), wild=st.text(max_size=5))
def test_no_text_makes_the_translation_fail(words: list[str], wild: str) -> None:
    text = f"{TABLES_ON_ONE_LINE} {' '.join(words)} {wild}"
    source = Source.of(text)
    found = translate(source).found
    assert all(0 <= each.span.start <= each.span.end <= len(text) for each in found)
    assert all(render(each, source) for each in found)


def test_a_float_as_text_keeps_its_value() -> None:
    rows = run("SELECT CAST(1e-8 AS TEXT), CAST(1e20 AS TEXT), 'x' || 0.1, CAST(2 AS TEXT);", {})["result"]
    assert rows == {("1e-08", "1e+20", "x0.1", "2")}
