"""Worked examples of "Incremental Processing of Update Streams", chapter 3, in every strategy they speak of.

Numbered as the vectors are: TV-3 is test_3. Absorption by itself (TV-1, 2, 4, 5, 10) is in `test_absorption`, networks (TV-12)
in `tests/network`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest

from whence import Session, Update, load
from whence.backends.local.backend import LocalBackend
from whence.engine import dred
from whence.engine.protocol import SUSPENDED
from whence.lang.types import Tuple
from whence.limits import Limits, RunawayError
from whence.reference import evaluate
from whence.semiring.bdd import FormulaDiagrams
from whence.semiring.depth_first import DepthFirstOrder

STRATEGIES = ["support", "dred", "absorption", "recompute"]
REACHABLE = """
.decl link(src: symbol, dst: symbol) .input link
reachable(x, y) :- link(x, y).
reachable(x, y) :- link(x, z), reachable(z, y).
"""


def words(text: str) -> set[Tuple]:
    return {tuple(word) for word in text.split()}


# -- TV-3: what delete and rederive does where absorption sets one variable to false ----------------------------------


def test_3_delete_and_rederive_takes_all_away_and_puts_all_back(monkeypatch: pytest.MonkeyPatch) -> None:
    deleted: list[set[Tuple]] = []
    present: list[set[Tuple]] = []
    note_lost = dred._DredEpoch._note_lost

    def noting(self: dred._DredEpoch, name: str, ids: Sequence[int]) -> None:  # type: ignore[type-arg]
        if name == "reachable" and len(ids):
            deleted.append(set(self.backend.decode(name, ids)))  # type: ignore[attr-defined]
        note_lost(self, name, ids)

    session = Session(load(REACHABLE), strategy="dred", on_round=lambda name, *_: name == "reachable" and note())
    backend = session.backend

    def note() -> None:
        table = backend.table("reachable")
        present.append(set(backend.decode("reachable", table.with_flags(table.ids(), off=SUSPENDED))))

    session.apply([Update("+", "link", link) for link in words("AB BC CA CB")])
    present.clear()
    monkeypatch.setattr(dred._DredEpoch, "_note_lost", noting)
    for name in ("spread_loss", "spread_gain"):
        monkeypatch.setattr(LocalBackend, name, lambda *_, **__: None)  # batch by batch, to see each
    changes = session.apply([Update("-", "link", ("C", "B"))])
    # Steps 0 to 4: (C,B) by itself, then what began at C, at B, and at A.
    assert deleted == [words("CB"), words("CA CC"), words("BA BB BC"), words("AA AB AC")]
    # Steps 5 to 8: what is a link, then what follows in one step and in two; the rest would be duplicates.
    links, one_step, two_steps = words("AB BC CA"), words("AC BA CB"), words("AA BB CC")
    note()
    assert present == [set(), links, links | one_step, links | one_step | two_steps]
    assert (session.last_epoch["suspended"], session.last_epoch["rederived"]) == (10, 9)  # the link itself stays away
    assert not changes.inserted
    assert changes.deleted == {"link": [("C", "B")]}


def test_3_support_counting_takes_less_away() -> None:
    session = Session(load(REACHABLE), facts={"link": words("AB BC CA CB")})
    session.apply([Update("-", "link", ("C", "B"))])
    assert (session.last_epoch["suspended"], session.last_epoch["rederived"]) == (4, 3)
    assert set(session.relation("reachable")) == {*product("ABC", repeat=2)}


# -- TV-5: links that come from the far end ---------------------------------------------------------------------------


def test_5_links_that_come_backwards_are_put_in_depth_first_order() -> None:
    edges = {"e0": "AB", "e1": "BF", "e2": "BC", "e3": "CF", "e4": "AD", "e5": "DF", "e6": "AE", "e7": "ED"}
    order: DepthFirstOrder[str] = DepthFirstOrder()
    for edge in ("e3", "e7", "e5", "e2", "e1", "e6", "e4", "e0"):
        order.insert(edge, *edges[edge])
    found = order.edges()
    # What leaves a node comes right after the edge that enters it, or after what a sibling leads to.
    assert sorted(found) == sorted(edges)
    assert found.index("e3") == found.index("e2") + 1
    assert found.index("e5") == found.index("e7") + 1


# -- TV-6: the queries as printed, under updates ----------------------------------------------------------------------

PATHS = """
CREATE TABLE link(src TEXT, dst TEXT);
CREATE VIEW reachable AS
  WITH RECURSIVE reachable(src, dst) AS (
    SELECT src, dst FROM link UNION
    SELECT link.src, reachable.dst FROM link, reachable WHERE link.dst = reachable.src)
  SELECT src, dst FROM reachable;
CREATE RECURSIVE VIEW path(src, dst, vec, length) AS
  SELECT src, dst, src || '.' || dst, 1 FROM link UNION
  SELECT link.src, path.dst, link.src || '.' || vec, length + 1 FROM link, path WHERE link.dst = path.src;
CREATE VIEW minHops(src, dst, length) AS SELECT src, dst, MIN(length) FROM path GROUP BY src, dst;
CREATE VIEW shortestPath(src, dst, vec, length) AS
  SELECT P.src, P.dst, vec, P.length FROM path P, minHops H
  WHERE P.src = H.src AND P.dst = H.dst AND P.length = H.length;
"""
DIAMOND = words("AB BF BC CF AD DF AE ED")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_6_shortest_paths_follow_their_links(strategy: str) -> None:
    program = load(PATHS, dialect="sql")
    session = Session(program, facts={"link": DIAMOND}, strategy=strategy)

    def shortest() -> set[str]:
        return {row[2] for row in session.relation("shortestPath") if row[:2] == ("A", "F")}  # type: ignore[misc]

    links = set(DIAMOND)
    for op, link, expected in (
        ("-", "DF", {"A.B.F"}),
        ("-", "BF", {"A.B.C.F"}),
        ("-", "CF", set()),
        ("+", "DF", {"A.D.F"}),
        ("-", "AD", {"A.E.D.F"}),
        ("+", "BF", {"A.B.F"}),
        ("+", "AF", {"A.F"}),
    ):
        session.apply([Update(op, "link", tuple(link))])
        (links.add if op == "+" else links.discard)(tuple(link))
        assert shortest() == expected
        assert session.views() == evaluate(program, {"link": links})


def test_6_all_paths_of_a_cycle_are_too_many() -> None:
    with pytest.raises(RunawayError, match="path"):
        Session(load(PATHS, dialect="sql"), facts={"link": words("AB BA")}, limits=Limits(max_rounds=50))


JOIN = """
CREATE TABLE A(x INT, y INT);
CREATE TABLE B(x INT, z INT);
CREATE TABLE C(y INT, w INT);
CREATE VIEW Q AS SELECT A.x, A.y, B.z, C.w FROM A, B, C WHERE A.x = B.x AND A.y = C.y;
"""


@pytest.mark.parametrize("strategy", [*STRATEGIES, "counting"])
def test_6_a_join_of_three(strategy: str) -> None:
    facts = {"A": [(1, 2), (3, 2)], "B": [(1, 10), (3, 30)], "C": [(2, 20)]}
    session = Session(load(JOIN, dialect="sql"), facts=facts, strategy=strategy)
    assert set(session.relation("Q")) == {(1, 2, 10, 20), (3, 2, 30, 20)}
    changes = session.apply([Update("-", "B", (1, 10)), Update("+", "B", (1, 11)), Update("+", "C", (2, 21))])
    assert set(changes.inserted["Q"]) == {(1, 2, 11, 20), (1, 2, 11, 21), (3, 2, 30, 21)}
    assert changes.deleted["Q"] == [(1, 2, 10, 20)]


# Both readings: the sensor that spreads has to be triggered, as printed, or the one that joins, as the text says.
REGIONS = """
.decl near(a: symbol, b: symbol) .input near
.decl main(region: symbol, sensor: symbol) .input main
.decl triggered(sensor: symbol) .input triggered
active(r, s) :- main(r, s), triggered(s).
active(r, t) :- active(r, s), near(s, t), triggered({}).
"""


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("who", "before", "after"), [("s", "abcd", "ab"), ("t", "abc", "a")], ids=["as printed", "as meant"]
)
def test_6_both_readings_of_active_regions(strategy: str, who: str, before: str, after: str) -> None:
    chain = words("ab ba bc cb cd dc de ed")
    facts = {"near": chain, "main": [("R", "a")], "triggered": words("a b c")}
    session = Session(load(REGIONS.format(who)), facts=facts, strategy=strategy)
    assert "".join(sorted(sensor for _, sensor in session.relation("active"))) == before  # type: ignore[misc]
    session.apply([Update("-", "triggered", ("b",))])
    assert "".join(sorted(sensor for _, sensor in session.relation("active"))) == after  # type: ignore[misc]


# -- TV-14: two aggregates over one group -----------------------------------------------------------------------------

BEST = """
.decl route(name: symbol, src: symbol, dst: symbol, length: number, cost: number) .input route
kept(t) :- route(t, s, d, l, _), l = min x : { route(_, s, d, x, _) }.
kept(t) :- route(t, s, d, _, c), c = min x : { route(_, s, d, _, x) }.
"""


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_14_a_route_that_is_best_in_one_way_is_kept(strategy: str) -> None:
    routes = {
        name: (name, "A", "B", length, cost)
        for name, length, cost in (("t1", 1, 9), ("t2", 2, 3), ("t3", 3, 5), ("t4", 1, 10))
    }
    session = Session(load(BEST), strategy=strategy)

    def changed(op: str, name: str) -> str:
        changes = session.apply([Update(op, "route", routes[name])])
        return " ".join(sorted(f"{each.op}{each.tuple[0]}" for each in changes if each.relation == "kept"))

    assert changed("+", "t1") == "+t1"
    assert changed("+", "t2") == "+t2", "t1 is still the shortest"
    assert changed("+", "t3") == ""
    assert changed("+", "t4") == "+t4", "as short as t1"
    assert changed("-", "t4") == "-t4"
    assert changed("-", "t2") == "+t3 -t2"
    assert changed("-", "t1") == "-t1", "t3 is there already"
    assert changed("-", "t3") == "-t3"


# -- TV-15: what a lazy sender needs to know of formulas --------------------------------------------------------------


def test_15_formulas_tell_what_need_not_be_sent() -> None:
    diagrams: FormulaDiagrams[str] = FormulaDiagrams("abcd")
    a, b, c, d = map(diagrams.literal, "abcd")
    sent, held = a, diagrams.zero  # +(t, a) is sent

    def is_absorbed(formula: object) -> bool:
        return diagrams.leq(formula, diagrams.plus(sent, held))  # type: ignore[arg-type]

    assert is_absorbed(diagrams.times(a, b))
    assert not is_absorbed(c)
    held = diagrams.plus(held, c)
    assert is_absorbed(diagrams.times(c, d)), "by what is held back"
    # -a: what was sent is gone, so what was held back has to be sent first.
    sent, held = diagrams.restrict(sent, ["a"]), diagrams.restrict(held, ["a"])
    assert (sent, held) == (diagrams.zero, c)
    sent, held = held, diagrams.zero
    # -c: nothing is left of t.
    assert diagrams.restrict(sent, ["c"]) == diagrams.restrict(held, ["c"]) == diagrams.zero
