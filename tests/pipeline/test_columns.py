from __future__ import annotations

from whence import Session, load
from whence.lang.types import Tuple
from whence.pipeline.snapshots import as_table, from_table

PROGRAM = load("""
.type Pair = [left: number, right: symbol]
.decl thing(name: symbol, size: number, count: unsigned, weight: float, pair: Pair)
.input thing
.decl big(pair: Pair, name: symbol, count: unsigned, weight: float)
big(p, n, c, w) :- thing(n, s, c, w, p), s > 0.
.decl any()
any() :- big(_, _, _, _).
.output big, any
""")
THINGS: list[Tuple] = [
    ("ant", 1, 2**64 - 1, -0.5, (1, "a")),
    ("bee", 2, 0, 1e300, None),
    ("ant", -3, 5, 0.0, (1, "b")),
    ("a\tb\nc", 4, 5, 2.5, (1, "a")),
]


def test_a_view_becomes_the_table_that_its_tuples_do() -> None:
    session = Session(PROGRAM, facts={"thing": THINGS})
    for name in ("big", "any"):
        relation, view = PROGRAM.relations[name], session.relation(name)
        table = as_table(view, relation, PROGRAM.types)
        assert table.equals(as_table(list(view), relation, PROGRAM.types))
        assert set(from_table(table, relation, PROGRAM.types)) == set(view)
    assert len(session.relation("big")) == 3


def test_half_of_a_surrogate_pair_is_kept_in_a_table() -> None:
    things: list[Tuple] = [("\ud800", 1, 0, 0.0, None), ("bee", 1, 0, 0.0, (2, "\udfff"))]
    session = Session(PROGRAM, facts={"thing": things})
    table = as_table(session.relation("big"), PROGRAM.relations["big"], PROGRAM.types)
    rows = from_table(table, PROGRAM.relations["big"], PROGRAM.types)
    assert set(rows) == {(None, "\ud800", 0, 0.0), ((2, "\udfff"), "bee", 0, 0.0)}
