"""Minima and maxima inside recursion, whose rounds are taken in one call: against NetworkX, and what is known of each row."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

import networkx as nx
import pytest
from tests.engine.kept import state

from whence import Session, Update, load, reference
from whence.backends.local import best_rounds, cascade, settling
from whence.backends.local.backend import LocalBackend
from whence.engine.epoch import StratumEpoch
from whence.engine.protocol import EXTERNAL
from whence.lang.types import Tuple
from whence.limits import Limits, RunawayError

LINK = ".decl link(x: number, y: number, w: number) .input link\n"
ALL_PAIRS = (
    LINK
    + """
.decl path(x: number, y: number, c: number) .decl cost(x: number, y: number, c: number)
path(x, y, w) :- link(x, y, w).
path(x, z, c + w) :- cost(x, y, c), link(y, z, w).
cost(x, y, m) :- path(x, y, _), m = min c : { path(x, y, c) }.
"""
)
FED = ALL_PAIRS + ".input path\n"
WIDEST = ALL_PAIRS.replace("path(x, z, c + w)", "path(x, z, min(c, w))").replace("m = min", "m = max")
DOUBLING = ALL_PAIRS.replace("cost(x, y, c), link(y, z, w)", "cost(x, y, c), cost(y, z, w)")
FLOATS = ALL_PAIRS.replace("w: number", "w: float").replace("c: number", "c: float")
FROM_ONE = (
    LINK
    + """
.decl path(y: number, c: number) .decl cost(y: number, c: number)
path(0, 0).
path(y, c + w) :- cost(x, c), link(x, y, w).
cost(y, m) :- path(y, _), m = min c : { path(y, c) }.
"""
)
COMPONENTS = (
    LINK
    + """
.decl label(x: number, l: number) .decl component(x: number, l: number)
edge(x, y) :- link(x, y, _).
edge(y, x) :- link(x, y, _).
label(x, x) :- edge(x, _).
label(y, l) :- component(x, l), edge(x, y).
component(x, m) :- label(x, _), m = min l : { label(x, l) }.
"""
)
# Two aggregates in one recursion, of different relations: the shortest ways of an even and of an odd number of links.
BY_TURNS = (
    LINK
    + """
.decl one(y: number, c: number) .decl other(y: number, c: number) .decl even(y: number, c: number) .decl odd(y: number, c: number)
one(0, 0).
one(y, c + w) :- odd(x, c), link(x, y, w).
other(y, c + w) :- even(x, c), link(x, y, w).
even(y, m) :- one(y, _), m = min c : { one(y, c) }.
odd(y, m) :- other(y, _), m = min c : { other(y, c) }.
"""
)
# Two of the same relation: the least and the greatest node that leads to one.
BOTH_ENDS = (
    LINK
    + """
.decl label(x: number, l: number, h: number) .decl least(x: number, l: number) .decl most(x: number, h: number)
label(x, x, x) :- link(x, _, _).
label(x, x, x) :- link(_, x, _).
label(y, l, h) :- least(x, l), most(x, h), link(x, y, _).
least(x, m) :- label(x, _, _), m = min l : { label(x, l, _) }.
most(x, m) :- label(x, _, _), m = max h : { label(x, _, h) }.
"""
)
# A relation in between, and one that follows from rows of groups and is read by the recursion.
STEPWISE = (
    LINK
    + """
.decl path(x: number, y: number, c: number) .decl cost(x: number, y: number, c: number)
step(x, y, c) :- cost(x, y, c), link(y, _, _).
path(x, y, w) :- link(x, y, w).
path(x, z, c + w) :- step(x, y, c), link(y, z, w), reached(x, y).
reached(x, y) :- path(x, y, _).
cost(x, y, m) :- path(x, y, _), m = min c : { path(x, y, c) }.
.decl step(x: number, y: number, c: number)
"""
)


def graph_of(links: set[Tuple]) -> nx.DiGraph:
    """Of links that join the same nodes the lightest one."""
    graph = nx.DiGraph()
    for x, y, w in sorted(links, reverse=True):
        graph.add_edge(x, y, weight=w)
    return graph


def shortest(links: set[Tuple]) -> set[Tuple]:
    """Between all pairs, of at least one link each."""
    graph = graph_of(links)
    lengths = dict(nx.all_pairs_dijkstra_path_length(graph))
    found: dict[tuple[int, int], int] = {}
    for x, y, data in graph.edges(data=True):
        for z, length in lengths[y].items():
            found[x, z] = min(found.get((x, z), data["weight"] + length), data["weight"] + length)
    return {(x, y, length) for (x, y), length in found.items()}


def widest(links: set[Tuple]) -> set[Tuple]:
    """The width of a way is that of its narrowest link: nodes that are joined by links so wide are as far as it gets."""
    found: dict[tuple[int, int], int] = {}
    for width in sorted({w for _, _, w in links}):
        wide = nx.DiGraph([(x, y) for x, y, w in links if w >= width])
        for x, y in nx.transitive_closure(wide, reflexive=False).edges:
            found[x, y] = width
    return {(x, y, width) for (x, y), width in found.items()}


def from_one(links: set[Tuple]) -> set[Tuple]:
    graph = graph_of(links)
    graph.add_node(0)
    return set(nx.single_source_dijkstra_path_length(graph, 0).items())


def components(links: set[Tuple]) -> set[Tuple]:
    graph = graph_of(links).to_undirected()
    return {(node, min(nodes)) for nodes in nx.connected_components(graph) for node in nodes}


def by_turns(links: set[Tuple]) -> set[Tuple]:
    doubled = {((x, turn), (y, 1 - turn), w) for x, y, w in links for turn in (0, 1)}
    graph = graph_of(doubled)
    graph.add_node((0, 0))
    return {(y, c) for (y, turn), c in nx.single_source_dijkstra_path_length(graph, (0, 0)).items() if turn}


def most(links: set[Tuple]) -> set[Tuple]:
    graph = graph_of(links)
    return {(node, max({node} | nx.ancestors(graph, node))) for node in graph}


Oracle = Callable[[set[Tuple]], set[Tuple]]
CASES: Mapping[str, tuple[str, str, Oracle]] = {
    "all pairs": (ALL_PAIRS, "cost", shortest),
    "doubling": (DOUBLING, "cost", shortest),
    "widest": (WIDEST, "cost", widest),
    "from one": (FROM_ONE, "cost", from_one),
    "components": (COMPONENTS, "component", components),
    "by turns": (BY_TURNS, "odd", by_turns),
    "both ends": (BOTH_ENDS, "most", most),
    "stepwise": (STEPWISE, "cost", shortest),
}


def epochs(seed: int, nodes: int, links: int, weights: list[int], count: int = 14) -> Iterator[list[Update]]:
    """Links that come, then some that go and some that come, then all that is left of them goes, and half comes back."""
    rng = random.Random(seed)

    def some(number: int) -> set[Tuple]:
        return {(rng.randrange(nodes), rng.randrange(nodes), rng.choice(weights)) for _ in range(number)}

    there = some(links)
    yield [Update("+", "link", link) for link in sorted(there)]
    for _ in range(count):
        gone = set(rng.sample(sorted(there), min(len(there), rng.randrange(1, 6))))
        come = some(rng.randrange(5)) - there
        there = (there - gone) | come
        yield [Update("-", "link", link) for link in sorted(gone)] + [
            Update("+", "link", link) for link in sorted(come)
        ]
    yield [Update("-", "link", link) for link in sorted(there)]
    yield [Update("+", "link", link) for link in sorted(there)[::2]]


def followed(session: Session, updates: Iterator[list[Update]]) -> Iterator[set[Tuple]]:
    """The links after each epoch. What changes say is checked against the views."""
    links: set[Tuple] = set()
    shown = {name: set(rows) for name, rows in session.views().items()}
    for epoch in updates:
        changes = session.apply(epoch)
        links -= {update.tuple for update in epoch if update.op == "-"}
        links |= {update.tuple for update in epoch if update.op == "+"}
        for name, view in session.views().items():
            gone, come = set(changes.deleted.get(name, ())), set(changes.inserted.get(name, ()))
            assert gone <= shown.get(name, set())
            assert not come & shown.get(name, set())
            shown[name] = (shown.get(name, set()) - gone) | come
            assert shown[name] == view
        yield links


@pytest.mark.parametrize("weights", [[1], [0, 1, 1, 2], list(range(1, 100)), [1 << 40, 3]], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_views_are_those_of_networkx(name: str, weights: list[int]) -> None:
    text, view, oracle = CASES[name]
    for seed, (nodes, links) in enumerate([(6, 14), (25, 60)]):
        session = Session(load(text))
        for there in followed(session, epochs(seed, nodes, links, weights)):
            assert set(session.relation(view)) == oracle(there)


def test_floats_are_compared_as_such() -> None:
    """Sums of floats are no business of the machine's: those rounds are taken one by one."""
    session = Session(load(FLOATS))
    for there in followed(session, _with_halves(epochs(3, 12, 30, [1, 2, 3]))):
        assert set(session.relation("cost")) == shortest(there)


def _with_halves(updates: Iterator[list[Update]]) -> Iterator[list[Update]]:
    for epoch in updates:
        yield [Update(op, name, (x, y, w / 2)) for op, name, (x, y, w), _ in epoch]  # type: ignore[operator]


# -- what is known of each row


def known(session: Session, name: str) -> dict[Tuple, tuple[int, int]]:
    """The rows of a relation, with the number of their derivations and their rank. Nothing is left of an epoch in their flags."""
    table = session.backend.table(name)
    ids = table.ids()
    assert not any(flags & ~EXTERNAL for flags in table.flags(ids).tolist())
    ranked = zip(table.counts(ids).tolist(), table.ranks(ids).tolist(), strict=True)
    return dict(zip(session.backend.decode(name, ids), ranked, strict=True))


def well_founded(session: Session, name: str) -> dict[Tuple, int]:
    table = session.backend.table(name)
    ids = table.ids()
    return dict(zip(session.backend.decode(name, ids), table._halves(ids, 3).tolist(), strict=True))


@pytest.mark.parametrize("weights", [[1], [0, 1, 1, 2], list(range(1, 50))], ids=str)
def test_counts_are_exact_and_ranks_well_founded(weights: list[int]) -> None:
    session = Session(load(ALL_PAIRS))
    for there in followed(session, epochs(7, 12, 40, weights, 25)):
        path, cost = known(session, "path"), known(session, "cost")
        for (x, y, c), (count, rank) in cost.items():
            assert count == 1
            assert c == min(d for one, other, d in path if (one, other) == (x, y))
            assert path[x, y, c][1] < rank
        supports = well_founded(session, "path")
        for (x, z, c), (count, rank) in path.items():
            ranks = [-1] * ((x, z, c) in there)
            ranks += [cost[x, y, c - w][1] for y, end, w in there if end == z and (x, y, c - w) in cost]
            assert count == len(ranks)
            assert supports[x, z, c] == sum(each < rank for each in ranks) >= 1


def test_a_group_has_its_value_once_though_many_rows_bring_it() -> None:
    """Rows of a group with the same value wait together, and come in together."""
    text = (
        LINK
        + """
    .decl path(y: number, c: number, x: number) .decl cost(y: number, c: number)
    path(0, 0, 0).
    path(y, c + w, x) :- cost(x, c), link(x, y, w).
    cost(y, m) :- path(y, _, _), m = min c : { path(y, c, _) }.
    """
    )
    session = Session(load(text))
    for there in followed(session, epochs(13, 60, 400, [1, 2], 10)):
        assert set(session.relation("cost")) == from_one(there)
        assert all(count == 1 for count, _ in known(session, "cost").values())


# -- calls


def test_rounds_one_by_one_come_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def views() -> list[object]:
        return [
            session.views()
            for text in (ALL_PAIRS, WIDEST, BY_TURNS, BOTH_ENDS, STEPWISE)
            for session in [Session(load(text))]
            for _ in followed(session, epochs(5, 15, 40, [1, 2, 3, 4]))
        ]

    together = views()
    monkeypatch.setattr(LocalBackend, "best_rounds", lambda *_: None)
    assert views() == together


@pytest.mark.parametrize("name", CASES)
def test_loops_that_come_back_go_on_where_they_were(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "MET", 7)
    text, view, oracle = CASES[name]
    session = Session(load(text))
    for there in followed(session, epochs(11, 14, 40, [1, 2, 3, 9])):
        assert set(session.relation(view)) == oracle(there)


@pytest.mark.parametrize("weights", [[1], [0, 1, 1, 2], list(range(1, 50))], ids=str)
@pytest.mark.parametrize("name", [name for name in CASES if name not in ("both ends", "stepwise")])
def test_taking_away_with_the_rounds_is_like_taking_away_before(
    name: str, weights: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Epochs that only take out leave what they leave otherwise: rows, derivations, ranks, flags, work."""
    text, view, oracle = CASES[name]

    def states(seed: int) -> list[dict[str, object]]:
        session, found = Session(load(text)), []
        for there in followed(session, _one_way(epochs(seed, 20, 60, weights))):
            assert set(session.relation(view)) == oracle(there)
            found.append(state(session))
        return found

    taken: list[object] = []
    lose = settling.Settling.lose
    monkeypatch.setattr(settling.Settling, "lose", lambda *args: taken.append(args) or lose(*args))
    with_rounds = [states(seed) for seed in range(3)]
    assert not taken
    monkeypatch.setattr(StratumEpoch, "_brings_nothing", lambda _: False)
    assert [states(seed) for seed in range(3)] == with_rounds
    assert taken


def _one_way(updates: Iterator[list[Update]]) -> Iterator[list[Update]]:
    """Epochs that take out, and epochs that put in."""
    for epoch in updates:
        for op in "-+":
            if chosen := [update for update in epoch if update.op == op]:
                yield chosen


def test_rows_put_in_from_outside_come_after_what_goes() -> None:
    """A relation of the recursion that takes rows itself, in the epoch in which others lose what they follow from."""
    session = Session(load(FED))
    links: set[Tuple] = set()
    for number, epoch in enumerate(epochs(17, 12, 40, [1, 2, 5], 30)):
        links -= {update.tuple for update in epoch if update.op == "-"}
        links |= {update.tuple for update in epoch if update.op == "+"}
        gone = [update for update in epoch if update.op == "-"]
        put = [Update("+-"[number % 3 == 2], "path", (0, at, at)) for at in range(1, 5)]
        session.apply(gone + put)
        session.apply([update for update in epoch if update.op == "+"])
        given = {(0, at, at) for at in range(1, 5)} if number % 3 != 2 else set()
        expected = reference.evaluate(load(FED), {"link": links, "path": given})
        assert session.views() == {name: expected[name] for name in session.views()}


def test_an_update_is_a_handful_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    for module, name in ((best_rounds, "settle_rounds"), (cascade, "spread_loss")):
        loop = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, loop=loop: calls.append(loop) or loop(*args))
    links = sorted(next(epochs(2, 30, 90, [1, 2, 3])))
    session = Session(load(ALL_PAIRS), facts={"link": [update.tuple for update in links]})
    for update in links[:10]:  # by then there is room for all
        session.apply([Update("-", "link", update.tuple)])
        session.apply([Update("+", "link", update.tuple)])
    calls.clear()
    session.apply([Update("-", "link", links[10].tuple)])
    assert len(calls) <= 2
    session.apply([Update("+", "link", links[10].tuple)])
    assert len(calls) <= 5


def test_each_group_is_settled_once_where_nothing_gets_better() -> None:
    rng = random.Random(4)
    links = {(rng.randrange(300), rng.randrange(300), rng.randrange(100)) for _ in range(1500)}
    session = Session(load(FROM_ONE), facts={"link": links})
    reached = {node for node, _ in from_one(links)}
    assert set(session.relation("cost")) == from_one(links)
    # The fact, and what follows from each node once.
    assert session.stats()["derivations"] == 1 + sum(x in reached for x, _, _ in links)
    assert session.stats()["suspended"] == 0


def test_a_group_empties_with_its_only_support_and_comes_back() -> None:
    session = Session(load(ALL_PAIRS), facts={"link": [(1, 2, 5), (2, 1, 5), (2, 3, 1)]})
    gone = session.apply([Update("-", "link", (1, 2, 5))])
    assert set(session.relation("cost")) == {(2, 1, 5), (2, 3, 1)}
    assert sorted(gone.deleted["cost"]) == [(1, 1, 10), (1, 2, 5), (1, 3, 6), (2, 2, 10)]
    back = session.apply([Update("+", "link", (1, 2, 5))])
    assert {name: sorted(rows) for name, rows in back.inserted.items()} == {
        name: sorted(rows) for name, rows in gone.deleted.items()
    }


def test_links_that_expire() -> None:
    session = Session(load(ALL_PAIRS + ".window link(time=10)\n"))
    session.apply([Update("+", "link", (1, 2, 1), 0.0), Update("+", "link", (2, 3, 1), 5.0)])
    session.apply([Update("+", "link", (1, 3, 7), 6.0)])
    assert set(session.relation("cost")) == {(1, 2, 1), (2, 3, 1), (1, 3, 2)}
    changes = session.apply((), now=11.0)
    assert (changes.deleted["cost"], changes.inserted["cost"]) == ([(1, 2, 1), (1, 3, 2)], [(1, 3, 7)])
    session.apply((), now=20.0)
    assert not session.relation("cost")


@pytest.mark.parametrize(
    ("limits", "when"),
    [
        (Limits(max_rounds=40), "after 40 rounds"),
        (Limits(timeout=0.3), "after 0.3 s"),
    ],
)
def test_costs_that_find_no_end_are_stopped(limits: Limits, when: str) -> None:
    with pytest.raises(RunawayError, match=when):
        Session(load(ALL_PAIRS), facts={"link": [(1, 2, 1), (2, 1, -3)]}, limits=limits)


def test_costs_that_grow_for_ever_are_stopped_when_there_are_too_many() -> None:
    endless = FROM_ONE.replace("path(y, c + w) :-", "path(y + 1, c + w) :-")
    with pytest.raises(RunawayError, match="at 501 tuples"):
        Session(load(endless), facts={"link": [(at, at, 1) for at in range(400)]}, limits=Limits(max_tuples=500))


def test_costs_may_be_negative_where_no_cycle_is() -> None:
    links = {(1, 2, 4), (1, 3, 2), (3, 2, -1), (2, 4, 1), (3, 4, 9)}
    session = Session(load(ALL_PAIRS), facts={"link": links})
    assert set(session.relation("cost")) == {(1, 2, 1), (1, 3, 2), (1, 4, 2), (2, 4, 1), (3, 2, -1), (3, 4, 0)}
    session.apply([Update("-", "link", (3, 2, -1))])
    assert set(session.relation("cost")) == {(1, 2, 4), (1, 3, 2), (1, 4, 5), (2, 4, 1), (3, 4, 9)}
