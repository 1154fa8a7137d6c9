"""Views in SQL under random updates, against DuckDB on the rows that are there."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from math import isclose

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.properties.counting import count_sequence

from whence import Session, Update, load
from whence.lang.types import Tuple, Value

EXAMPLES = max(15, int(os.environ.get("WHENCE_EXAMPLES", "0")) // 10)
TABLES = "CREATE TABLE m(k BIGINT, x DOUBLE);\nCREATE TABLE t(a BIGINT, b BIGINT);\nCREATE TABLE w(s TEXT, n BIGINT);\n"
TABLES += "CREATE TABLE e(d DATE, p DECIMAL(12,2));\nCREATE TABLE f(h TIMESTAMP, q DECIMAL(9,4));\n"
VIEWS = {
    "sums of floats": "SELECT k, SUM(x) AS total, COUNT(*) AS n FROM m GROUP BY k",
    "averages": "SELECT k, AVG(x) AS mean, MIN(x) AS low, MAX(x) AS high FROM m GROUP BY k",
    "one sum": "SELECT SUM(x) AS total FROM m HAVING COUNT(*) > 0",
    "groups of a join": "SELECT t.a, SUM(m.x) AS total FROM t JOIN m ON t.b = m.k GROUP BY t.a",
    "groups left out": "SELECT a, SUM(b) AS total FROM t GROUP BY a HAVING SUM(b) < 0 OR COUNT(*) > 1",
    "differences": "SELECT a FROM t EXCEPT SELECT k FROM m",
    "no partner": "SELECT DISTINCT a, b FROM t WHERE NOT EXISTS (SELECT 1 FROM m WHERE m.k = t.b AND m.x > 0.0)",
    "members": "SELECT DISTINCT a FROM t WHERE b IN (SELECT n FROM w) AND a NOT IN (SELECT k FROM m)",
    "texts": "SELECT s, COUNT(*) AS n, MIN(n) AS low, MAX(n) AS high FROM w GROUP BY s",
    "upper and lower": "SELECT DISTINCT s, CASE WHEN n < 0 THEN 'neg' WHEN n = 0 THEN '' ELSE s END AS c FROM w",
    "rows as they are": "SELECT a FROM t",
    "both": "SELECT a, b FROM t UNION ALL SELECT k, k FROM m",
    "pairs": "SELECT t.a, w.n FROM t LEFT JOIN w ON w.n = t.b",
    "all pairs": "SELECT t.a, m.x FROM t FULL JOIN m ON m.k = t.a",
    "what is left": "SELECT a FROM t EXCEPT ALL SELECT k FROM m",
    "sums of decimals": "SELECT d, SUM(p) AS total, AVG(p) AS mean, MAX(p) AS most FROM e GROUP BY d",
    "months": "SELECT DATE_TRUNC('month', d) AS m, COUNT(*) AS n, SUM(p * 1.5) AS total FROM e GROUP BY DATE_TRUNC('month', d)",
    "prices of a day": "SELECT DISTINCT e.d, e.p * f.q AS x FROM e JOIN f ON e.d = CAST(f.h AS DATE) WHERE f.q <> e.p",
    "after": "SELECT DISTINCT d, h FROM e JOIN f ON h >= d + INTERVAL '1' MONTH AND e.p - f.q <= 0.005",
    "equal amounts": "SELECT DISTINCT p, d - DATE '2024-02-29' AS days FROM e WHERE p IN (SELECT q FROM f)",
    "closure": (
        "WITH RECURSIVE r(a, b) AS (SELECT a, b FROM t UNION SELECT r.a, t.b FROM r JOIN t ON r.b = t.a) SELECT a, b FROM r"
    ),
}
DATES = (date(2024, 1, 31), date(2024, 2, 29), date(1969, 12, 31), date(9999, 1, 1))
TIMES = (datetime(2024, 2, 29), datetime(2024, 2, 29, 0, 0, 0, 1), datetime(1969, 12, 31, 23, 59, 59))  # noqa: DTZ001
DECIMALS = tuple(map(Decimal, ("0", "0.01", "-2.5", "99999.99", "-9999999999.99")))
ROWS: dict[str, st.SearchStrategy[Tuple]] = {
    "m": st.tuples(st.integers(-2, 2), st.sampled_from((0.0, 0.5, -0.5, 1.25, -1.25, 4096.0, 0.0009765625))),
    "t": st.tuples(st.sampled_from((-1, 0, 1, 2, 2**40)), st.sampled_from((-1, 0, 1, 2, -(2**40)))),
    "w": st.tuples(
        st.sampled_from(("", "a", "A", "é", "日本", "a'b", '"', " ")), st.sampled_from((-1, 0, 1, 2**62, -(2**62)))
    ),
    "e": st.tuples(st.sampled_from(DATES), st.sampled_from(DECIMALS)),
    "f": st.tuples(st.sampled_from(TIMES), st.sampled_from([*DECIMALS[:3], Decimal("0.0051")])),
}


@st.composite
def epochs(draw: st.DrawFn) -> list[list[Update]]:
    """Of few rows, so that groups empty and fill again; some deletions are of what is not there."""
    rows = [(name, draw(row)) for name, row in ROWS.items() for _ in range(draw(st.integers(1, 4)))]
    update = st.tuples(st.sampled_from("+++--"), st.sampled_from(rows)).map(lambda each: Update(each[0], *each[1]))
    return draw(st.lists(st.lists(update, max_size=6), min_size=1, max_size=5))


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_duckdbs(view: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = load(f"{TABLES}CREATE VIEW v AS {VIEWS[view]};", dialect="sql")
    database = duckdb.connect()
    database.execute(TABLES)

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(epochs())
    def follows(listed: list[list[Update]]) -> None:
        session = Session(program)
        base: dict[str, Counter[Tuple]] = {name: Counter() for name in ROWS}
        for epoch in listed:
            for op, name, row, _ in epoch:
                base[name][row] = max(0, base[name][row] + (1 if op == "+" else -1))
            session.apply(epoch)
            for name in ROWS:
                database.execute(f"DELETE FROM {name}")
                for row in base[name].elements():
                    database.execute(f"INSERT INTO {name} VALUES (?, ?)", row)
            expected = database.execute(VIEWS[view]).fetchall()
            assert_same(sorted(session.bag("v"), key=repr), sorted(expected, key=repr))
        count_sequence()

    follows()


def assert_same(found: list[Tuple], expected: list[Tuple]) -> None:
    assert len(found) == len(expected), (found, expected)
    for one, other in zip(found, expected, strict=True):
        assert all(map(is_same, one, other)), (found, expected)


def is_same(one: Value, other: Value) -> bool:
    """Averages may be rounded once more on one side; nothing else may differ."""
    return isclose(one, other, rel_tol=1e-12) if isinstance(one, float) and isinstance(other, float) else one == other
