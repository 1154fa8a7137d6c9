"""Rounds in which derivations are counted word by word leave what those counted one by one leave."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from tests.engine.kept import batch_by_batch, followed

from whence import Session, Update, load
from whence.backends.local import blocks, chaining, parallel
from whence.backends.local.backend import LocalBackend
from whence.backends.local.chaining import find_chains
from whence.backends.local.hashing import BITS
from whence.backends.local.kernels import RANK
from whence.limits import Limits, RunawayError
from whence.plan import compile_plan

LINK = ".decl link(x: number, y: number) .input link\n"
STORE = ".decl store(x: number, y: number) .input store\n"
REACH = LINK + "reach(x, y) :- link(x, y). "
SQUARED = REACH + "reach(x, z) :- reach(x, y), reach(y, z)."
CUBED = REACH + "reach(x, z) :- reach(x, y), reach(y, w), reach(w, z)."
SAME = LINK + "same(x, y) :- link(x, p), link(y, p). same(x, y) :- link(x, p), same(p, q), link(y, q)."
POINTS_TO = (
    LINK
    + STORE
    + "pt(v, o) :- link(v, o). pt(v, o) :- store(v, w), pt(w, o). pt(v, o) :- store(v, w), pt(w, p), heap(p, o). "
    + "heap(p, o) :- pt(p, o). heap(p, o) :- store(v, p), store(v, w), pt(w, o)."
)
TWO = (
    REACH
    + STORE
    + "far(x, z) :- reach(x, y), reach(y, z). reach(x, z) :- far(x, y), store(y, w), far(w, z). far(x, y) :- store(y, x)."
)
LONG = LINK + "reach(x, y) :- link(x, y). reach(x, z) :- link(a, x), link(a, b), reach(b, c), link(d, c), link(d, z)."
PROGRAMS = {
    "squared": SQUARED,
    "cubed": CUBED,
    "same generation": SAME,
    "points to": POINTS_TO,
    "two relations": TWO,
    "long": LONG,
}


@pytest.fixture(autouse=True, params=["", "blocks", "changing"])
def layout(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "FORCED", request.param)
    monkeypatch.setattr(blocks, "SMALL", 64)
    monkeypatch.setattr(chaining, "LARGE", 1)
    monkeypatch.setattr(chaining, "SHARE", 1 << 20)
    monkeypatch.setattr(chaining, "WORDS_A_ROW", 1 << 20)
    monkeypatch.setattr(parallel, "LARGE", 16)
    monkeypatch.setattr(parallel, "CORES", 3)


@pytest.mark.parametrize("scale", [1, -37, 1 << 33])
@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("leaving", [False, True], ids=["all rounds", "some rounds"])
def test_chains_are_like_rows(text: str, scale: int, leaving: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    follow = chaining.Chaining.follow

    def watched(self: chaining.Chaining, *args: object) -> None:
        follow(self, *args)  # type: ignore[arg-type]
        taken.append(self.rounds)

    monkeypatch.setattr(chaining.Chaining, "follow", watched)
    # A grid takes many words where values are far from each other.
    monkeypatch.setattr(chaining, "WORDS_A_NEW_ROW", (16 if scale == 1 else 1 << 10) if leaving else 1 << 30)
    monkeypatch.setattr(chaining, "PATIENCE", 0)
    if leaving:
        monkeypatch.setattr(chaining, "FUEL", 50)
    program = load(text)

    for seed in range(3):
        in_chains = followed(program, seed, scale)
        with batch_by_batch():
            assert followed(program, seed, scale) == in_chains
    assert taken or (blocks.FORCED == "" and scale != 1)


def test_each_derivation_of_a_closure_is_counted() -> None:
    """By brute force: two ways of a row to be derived, and the rounds they come in."""
    graph = nx.gnp_random_graph(90, 0.03, seed=5, directed=True)
    session = Session(load(SQUARED + " .output reach"), facts={"link": sorted(graph.edges)})
    nodes = len(graph)
    links, ranks = np.zeros((nodes, nodes), dtype=np.int64), np.zeros((nodes, nodes), dtype=np.int64)
    links[tuple(zip(*graph.edges, strict=True))] = 1
    now, rank = links, 0
    while ((now > 0) & (ranks == 0)).any():
        rank += 1
        ranks[(now > 0) & (ranks == 0)] = rank
        now = ((now + now @ now) > 0).astype(np.int64)
    there = (ranks > 0).astype(np.int64)
    counts = links + there @ there
    table = session.backend.tables["reach"]
    ids = table.ids()
    keys = table.keys(ids)
    assert {(x, y) for x, y in keys.tolist()} == set(zip(*(each.tolist() for each in np.nonzero(there)), strict=True))
    assert (table.counts(ids) == counts[keys[:, 0], keys[:, 1]]).all()
    assert (table._halves(ids, RANK) == ranks[keys[:, 0], keys[:, 1]]).all()


@pytest.mark.parametrize(("most", "is_taken"), [(2 * 40 + 1, True), (2 * 40, False)])
def test_counts_that_might_not_fit_are_left_to_others(
    most: int, is_taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two plans, and 40 nodes that can stand between the ends of each."""
    monkeypatch.setattr(chaining, "COUNTABLE", most)
    taken: list[bool] = []
    begin = chaining.Chaining.follow
    monkeypatch.setattr(chaining.Chaining, "follow", lambda *args: taken.append(True) or begin(*args))
    session = Session(
        load(SQUARED + " .output reach"), facts={"link": [(x, (x + step) % 40) for x in range(40) for step in (1, 2)]}
    )
    assert len(session.relation("reach")) == 1600
    assert bool(taken) == is_taken


@pytest.mark.parametrize("step", [1, 64], ids=["close", "apart"])
def test_tables_of_rows_share_lines_meanwhile(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And go on with them only if enough rows share one. With nodes 64 apart, each row has a line of its own."""
    monkeypatch.setattr(blocks, "FEW_LINES", 0)
    monkeypatch.setattr(blocks, "SOME_LINES", 0)
    taken: list[bool] = []
    follow = chaining.Chaining.follow
    monkeypatch.setattr(chaining.Chaining, "follow", lambda *args: taken.append(True) or follow(*args))
    monkeypatch.setattr(chaining, "WORDS_A_NEW_ROW", 1 << 30)
    edges = [(step * x, step * (x + 1)) for x in range(30)]
    session = Session(load(SQUARED + " .output reach"), facts={"link": edges})
    expected = nx.transitive_closure(nx.DiGraph(edges)).edges
    assert set(session.relation("reach")) == set(expected)
    assert taken
    if not blocks.FORCED:
        assert bool(session.backend.tables["reach"].fields[BITS]) == (step == 1)
    gone = session.apply([Update("-", "link", edges[7])]).deleted["reach"]
    assert set(gone) == {(x, y) for x, y in expected if x <= edges[7][0] and y >= edges[7][1]}
    session.apply([Update("+", "link", edges[7])])
    assert set(session.relation("reach")) == set(expected)


def test_tables_that_are_to_keep_rows_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "FORCED", "rows")
    monkeypatch.setattr(chaining, "WORDS_A_NEW_ROW", 1 << 30)
    monkeypatch.setattr(chaining.Chaining, "follow", lambda *_: pytest.fail("rows were asked to share lines"))
    session = Session(load(SQUARED + " .output reach"), facts={"link": [(x, x + 1) for x in range(30)]})
    assert len(session.relation("reach")) == 30 * 31 // 2
    assert not session.backend.tables["reach"].fields[BITS]


@pytest.mark.parametrize("limits", [Limits(max_rounds=3), Limits(max_tuples=500)], ids=str)
def test_limits_are_kept(limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds end where they would if rows were followed one by one."""
    monkeypatch.setattr(chaining, "WORDS_A_NEW_ROW", 1 << 30)
    told = []
    for is_taken in (True, False):
        if not is_taken:
            monkeypatch.setattr(LocalBackend, "spread_gain", lambda *_, **__: None)
        with pytest.raises(RunawayError) as stopped:
            Session(load(SQUARED), facts={"link": [(x, x + 1) for x in range(90)]}, limits=limits)
        told.append(str(stopped.value).partition("reach(")[0])  # but for which row came last
    assert told[0] == told[1]


def test_what_is_a_chain() -> None:
    def found(text: str) -> list[str] | None:
        program = load(text)
        stratum = next(each for each in compile_plan(program).strata if each.recursive)
        plans = [plan for plan in stratum.deltas if plan.scan is not None and plan.scan.relation in stratum.relations]
        chains = find_chains(plans, {name: program.relations[name].arity for name in stratum.relations})
        if chains is None:
            return None
        return [" ".join(("-" if step.is_turned else "") + step.relation for step in chain) for chain in chains]

    assert found(SQUARED) == ["reach reach", "reach reach"]
    assert found(SAME) == ["link same -link"]
    assert found(SQUARED.replace("reach(y, z).", "reach(y, z), x != z.")) is None, "it is looked at"
    assert found(SQUARED.replace("reach(y, z).", "reach(y, z), link(y, 7).")) is None, "a branch"
    assert found(SQUARED.replace("reach(y, z).", "reach(y, z), link(y, w).")) is None, "a branch that goes nowhere"
    assert found(SQUARED.replace("reach(y, z).", "reach(y, z), link(x, z).")) is None, "two ways to the end"
    assert found(SQUARED.replace("reach(y, z).", "reach(z, y).")) is None, "a relation of the recursion that is turned"
    assert found(SQUARED.replace("reach(x, z) :-", "reach(x, x) :-")) is None, "one end only"
    assert found(SQUARED.replace("reach(x, z) :-", "reach(x, 7) :-")) is None, "a constant"
