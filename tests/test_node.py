"""Nodes count what others say beside what they derive, sender by sender."""

from __future__ import annotations

from random import Random

import networkx as nx
import pytest
from tests.nodes import ToyNetwork

from whence import Update, load
from whence.backends.local.words import Dictionary
from whence.limits import Limits, RunawayError
from whence.node import Node, Support
from whence.prepared import prepare

REACH = prepare(
    load("""
.decl link(x:number, y:number) .input link
.decl reach(x:number, y:number) .output reach
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
""")
)


def step(node: Node, *updates: Update) -> list[Support]:
    """An epoch of a node that waits for nobody: what it told."""
    told: list[Support] = []
    node.begin(updates)
    while node.stratum is not None:
        told += node.take_away()
        while node.is_pending:
            told += node.put_back()
            told += node.take_away()
        node.close()
    node.finish()
    return told


def plus(*row: int) -> Update:
    return Update("+", "link", row)


def minus(*row: int) -> Update:
    return Update("-", "link", row)


def said(rank: int | None, *row: int) -> Support:
    return Support("reach", row, rank)


def test_what_one_sender_takes_back_another_still_says() -> None:
    node = Node(REACH)
    node.receive("a", [said(3, 1, 2)])
    node.receive("b", [said(5, 1, 2)])
    step(node)
    assert node.views()["reach"] == {(1, 2)}
    node.receive("a", [said(None, 1, 2)])
    assert step(node) == [], "the support of b ranks below the tuple as well"
    assert node.views()["reach"] == {(1, 2)}
    node.receive("b", [said(None, 1, 2)])
    assert step(node) == [said(None, 1, 2)]
    assert node.views()["reach"] == set()


def test_own_derivations_and_base_tuples_count_beside_them() -> None:
    node = Node(REACH)
    node.receive("a", [said(3, 1, 2), Support("link", (7, 8), 1)])
    step(node, plus(1, 2), plus(7, 8))
    node.receive("a", [said(None, 1, 2), Support("link", (7, 8), None)])
    assert step(node) == []
    assert node.views() == {"link": {(1, 2), (7, 8)}, "reach": {(1, 2), (7, 8)}}
    assert node.base() == {"link": {(1, 2), (7, 8)}}
    step(node, minus(1, 2), minus(7, 8))
    assert node.views() == {"link": set(), "reach": set()}


def test_a_base_tuple_of_another_is_not_one_of_its_own() -> None:
    node = Node(REACH)
    node.receive("a", [Support("link", (1, 2), 4)])
    step(node)
    assert node.views() == {"link": {(1, 2)}, "reach": {(1, 2)}}
    assert node.base() == {"link": set()}


def test_a_tuple_ranks_above_what_supports_it() -> None:
    node = Node(REACH)
    node.receive("a", [said(40, 1, 2)])
    ranks = {row: rank for name, row, rank in step(node, plus(2, 3)) if name == "reach"}
    assert ranks[1, 2] == 41
    assert ranks[1, 3] == 42


def test_a_cycle_through_a_sender_does_not_hold_itself_up() -> None:
    node = Node(REACH)
    told = step(node, plus(1, 2))
    (rank,) = (each.rank for each in told if each == said(each.rank, 1, 2))
    assert rank is not None
    node.receive("echo", [said(rank + 1, 1, 2)])
    step(node)
    assert said(None, 1, 2) in step(node, minus(1, 2)), "the echo ranks above the tuple, and so it is suspended"


def test_a_suspended_tuple_comes_back_above_what_is_left() -> None:
    node = Node(REACH)
    step(node, plus(1, 2))
    node.receive("b", [said(9, 1, 2)])
    step(node)
    told = step(node, minus(1, 2))
    assert told == [Support("link", (1, 2), None), said(None, 1, 2), said(10, 1, 2)]
    assert node.views()["reach"] == {(1, 2)}


def test_a_rank_that_changes_is_a_withdrawal_first() -> None:
    node = Node(REACH)
    node.receive("a", [said(3, 1, 2)])
    step(node)
    node.receive("a", [said(8, 1, 2)])
    assert step(node) == [said(None, 1, 2), said(9, 1, 2)]


def test_what_is_said_twice_or_taken_back_at_once_does_nothing() -> None:
    node = Node(REACH)
    node.receive("a", [said(3, 1, 2), said(3, 1, 2), said(2, 5, 6), said(None, 5, 6), said(None, 7, 8)])
    assert step(node) == [said(4, 1, 2)]
    node.receive("a", [said(3, 1, 2)])
    assert step(node) == []
    node.receive("a", [said(None, 1, 2)])
    step(node)
    assert node.views()["reach"] == set()


def test_a_sender_that_is_gone_is_forgotten_as_a_whole() -> None:
    node = Node(REACH)
    node.receive("a", [said(3, 1, 2), said(3, 2, 3)])
    node.receive("b", [said(3, 2, 3)])
    step(node)
    node.receive("a", [said(3, 4, 4)])
    node.forget("a")
    step(node)
    assert node.views()["reach"] == {(2, 3)}


def test_what_cannot_be_counted_is_refused() -> None:
    node = Node(
        prepare(
            load("""
.decl e(x:number, y:number) .input e
.decl least(x:number, y:number)
least(x, m) :- e(x, _), m = min y : { e(x, y) }.
.decl same(x:number, y:number) eqrel
same(x, y) :- e(x, y).
.output least, same
""")
        )
    )
    with pytest.raises(ValueError, match="there is no relation f"):
        node.receive("a", [Support("f", (1,), 1)])
    with pytest.raises(ValueError, match="least takes no support from others: it holds the groups of an aggregate"):
        node.receive("a", [Support("least", (1, 1), 1)])
    with pytest.raises(ValueError, match="same takes no support from others: it is evaluated anew"):
        node.receive("a", [Support("same", (1, 1), 1)])
    assert [node.takes_support(name) for name in ("e", "least", "same", "f")] == [True, False, False, False]
    step(node, Update("+", "e", (1, 2)))
    assert node.views()["same"] == {(1, 1), (1, 2), (2, 1), (2, 2)}
    with pytest.raises(ValueError, match="nodes are maintained by the strategy support, not dred"):
        Node(prepare(load(".decl e(x:number) .input e"), strategy="dred"))


def test_steps_come_in_their_order() -> None:
    node = Node(REACH)
    with pytest.raises(RuntimeError, match="no epoch is under way"):
        node.take_away()
    with pytest.raises(ValueError, match="reach is not a base relation"):
        node.begin([Update("+", "reach", (1, 2))])
    with pytest.raises(ValueError, match="x"):
        node.begin([Update("+", "link", ("one", 2))])
    node.begin([plus(1, 2)])
    with pytest.raises(RuntimeError, match="an epoch is under way"):
        node.views()
    with pytest.raises(RuntimeError, match="taken away first"):
        node.put_back()
    node.take_away()
    with pytest.raises(RuntimeError, match="something left to put back"):
        node.close()
    with pytest.raises(RuntimeError, match="strata left"):
        node.finish()
    node.put_back()
    node.close()
    with pytest.raises(ValueError, match="link is of a stratum that is closed"):
        node.receive("a", [Support("link", (2, 3), 1)])


def test_a_node_whose_epoch_fails_is_of_no_use() -> None:
    program = load(".decl n(x:number) .input n m(x) :- n(x). m(x + 1) :- m(x). .output m")
    node = Node(prepare(program), limits=Limits(max_rounds=20))
    with pytest.raises(RunawayError):
        step(node, Update("+", "n", (1,)))
    with pytest.raises(RuntimeError, match="make it anew"):
        node.take_away()


ROUTES = prepare(
    load("""
.decl link(x:number, y:number, c:number) .input link
.decl here(x:number) .input here
.decl to(y:number, x:number, c:number)
.decl reach(x:number, y:number)
.decl cost(x:number, y:number, c:number)
.decl best(x:number, y:number, c:number)
.decl lost(x:number, y:number)
.output reach, best, lost
to(y, x, c) :- link(x, y, c).
reach(x, y) :- link(x, y, _).
reach(x, z) :- here(y), to(y, x, _), reach(y, z).
cost(x, y, c) :- link(x, y, c).
cost(x, z, c + d) :- here(y), to(y, x, c), best(y, z, d).
best(x, y, m) :- here(x), cost(x, y, _), m = min c : { cost(x, y, c) }.
lost(x, y) :- here(x), link(x, _, _), best(_, y, _), !reach(x, y).
""")
)


@pytest.mark.parametrize("seed", range(12))
def test_tuples_that_live_at_a_home_are_what_networkx_says(seed: int) -> None:
    """Each node derives what follows from the tuples that live there, and sends what lives elsewhere to its home."""
    random = Random(seed)
    size, places = random.randint(2, 4), 7

    def route(sender: int, support: Support) -> list[int]:
        home = support.tuple[0] % size
        return [home] if support.relation in ("to", "reach", "cost") and home != sender else []

    network = ToyNetwork([ROUTES] * size, route, random)
    network.epoch(
        [[Update("+", "here", (place,)) for place in range(places) if place % size == at] for at in range(size)]
    )
    links: dict[tuple[int, int], int] = {}
    for _ in range(8):
        updates: list[list[Update]] = [[] for _ in range(size)]
        for _ in range(random.randint(1, 6)):
            pair = (random.randrange(places), random.randrange(places))
            if pair in links:
                updates[pair[0] % size].append(Update("-", "link", (*pair, links.pop(pair))))
            if random.random() < 0.6:
                links[pair] = random.randint(1, 9)
                updates[pair[0] % size].append(Update("+", "link", (*pair, links[pair])))
        network.epoch(updates)
        graph = nx.DiGraph()
        graph.add_weighted_edges_from((x, y, c) for (x, y), c in links.items())
        best = {}
        for x in graph:
            for y in graph:
                ways = [
                    graph[x][z]["weight"] + nx.dijkstra_path_length(graph, z, y)
                    for z in graph[x]
                    if nx.has_path(graph, z, y)
                ]
                if ways:
                    best[x, y] = min(ways)
        for at, node in enumerate(network.nodes):
            views = node.views()
            own = {(x, y): c for (x, y), c in best.items() if x % size == at}
            assert {(x, y, c) for (x, y), c in own.items()} == views["best"]
            assert {row for row in views["reach"] if row[0] % size == at} == own.keys()
            known = {y for _, y, _ in views["best"]}
            sources = {x for x, _ in links if x % size == at}
            assert views["lost"] == {(x, y) for x in sources for y in known if (x, y) not in own}


def test_values_that_no_node_holds_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dictionary, "is_outgrown", property(lambda _: True))
    program = prepare(
        load(".decl e(x:symbol, y:symbol) .input e r(x, y) :- e(x, y). r(x, z) :- r(x, y), e(y, z). .output r")
    )
    network = ToyNetwork([program] * 2, lambda sender, _: [1 - sender], Random(1))
    rows: list[tuple[str, str]] = []
    for number in range(60):
        rows.append((f"n{number}", f"n{number + 1}"))
        updates: list[list[Update]] = [[], []]
        updates[number % 2].append(Update("+", "e", rows[-1]))
        if len(rows) > 3:
            updates[(number - 3) % 2].append(Update("-", "e", rows.pop(0)))
        network.epoch(updates)
        ends = [int(x[1:]) for x, _ in rows]
        closure = {(f"n{x}", f"n{y + 1}") for x in ends for y in ends if x <= y}
        assert all(node.views()["r"] == closure for node in network.nodes)
    assert len(program.shared.dictionary) < 10
