"""Updates that maintenance algorithms are known to get wrong or to overdo, with answers by hand or from networkx."""

from __future__ import annotations

from itertools import permutations

import networkx as nx
import pytest

from whence import Session, Update, load
from whence.session import STRATEGIES

REACH = """
.decl link(x:symbol, y:symbol)
.input link
.output reach
reach(x, y) :- link(x, y).
reach(x, z) :- link(x, y), reach(y, z).
"""
PATHS = """
.decl link(x:number, y:number, cost:number)
.input link
.output best
.decl way(x:number, y:number, cost:number)
.decl best(x:number, y:number, cost:number)
way(x, y, c) :- link(x, y, c).
way(x, z, c + d) :- best(x, y, c), link(y, z, d).
best(x, y, c) :- way(x, y, _), c = min d : { way(x, y, d) }.
"""
RECURSIVE = [name for name in STRATEGIES if name != "counting"]
every_strategy = pytest.mark.parametrize("strategy", RECURSIVE)

Links = dict[tuple[int, int], int]


def distances(links: Links) -> set[tuple[int, int, int]]:
    """Also of cycles, which networkx takes for no way at all."""
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((x, y, cost) for (x, y), cost in links.items())
    after = dict(nx.all_pairs_dijkstra_path_length(graph))
    found: dict[tuple[int, int], int] = {}
    for (x, y), cost in links.items():
        for end, rest in after[y].items():
            found[x, end] = min(found.get((x, end), cost + rest), cost + rest)
    return {(x, y, cost) for (x, y), cost in found.items()}


class Paths:
    """Shortest paths under changing links, compared after every epoch."""

    def __init__(self, links: Links, strategy: str) -> None:
        self.links = dict(links)
        facts = {"link": [(x, y, cost) for (x, y), cost in links.items()]}
        self.session = Session(load(PATHS), facts=facts, strategy=strategy)
        self.check()

    def set(self, x: int, y: int, cost: int | None) -> None:
        """Gives a link another cost, or none: it is gone then."""
        before = self.links.pop((x, y), None)
        updates = [] if before is None else [Update("-", "link", (x, y, before))]
        if cost is not None:
            self.links[x, y] = cost
            updates.append(Update("+", "link", (x, y, cost)))
        self.session.apply(updates)
        self.check()

    def check(self) -> None:
        assert set(self.session.relation("best")) == distances(self.links)


@every_strategy
def test_no_tuple_leaves_when_the_cycle_still_reaches_all(strategy: str) -> None:
    # Delete-and-rederive empties the view here and derives it again.
    links = [("A", "B"), ("B", "C"), ("C", "A"), ("C", "B")]
    session = Session(load(REACH), facts={"link": links}, strategy=strategy)
    everything = {(x, y) for x in "ABC" for y in "ABC"}
    assert set(session.relation("reach")) == everything
    assert session.apply([Update("-", "link", ("C", "B"))]).deleted == {"link": [("C", "B")]}
    assert set(session.relation("reach")) == everything
    assert set(session.apply([Update("-", "link", ("C", "A"))]).deleted["reach"]) == everything - {
        ("A", "B"),
        ("A", "C"),
        ("B", "C"),
    }


@every_strategy
@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_a_cycle_taken_apart_in_any_order_leaves_nothing(strategy: str, order: tuple[int, ...]) -> None:
    links = [("A", "B"), ("B", "C"), ("C", "A"), ("C", "B")]
    session = Session(load(REACH), facts={"link": links}, strategy=strategy)
    for at in order:
        session.apply([Update("-", "link", links[at])])
    assert not list(session.relation("reach"))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_chain_of_views_with_two_supports_at_its_start(strategy: str) -> None:
    length = 30
    rules = "t0(x) :- r(x).\nt0(x) :- s(x).\n" + "".join(f"t{at + 1}(x) :- t{at}(x).\n" for at in range(length))
    text = f".decl r(x:number)\n.decl s(x:number)\n.input r, s\n.output t{length}\n{rules}"
    session = Session(load(text), facts={"r": {(1,)}, "s": {(1,)}}, strategy=strategy)
    assert session.apply([Update("-", "r", (1,))]).deleted == {"r": [(1,)]}
    if strategy == "support":
        assert session.last_epoch["derivations"] == 1
    changes = session.apply([Update("-", "s", (1,))])
    assert len(changes.deleted) == length + 2
    assert not list(session.relation(f"t{length}"))


@every_strategy
def test_the_last_shortest_path_goes_and_the_longer_one_counts(strategy: str) -> None:
    paths = Paths({(1, 2): 1, (2, 4): 1, (1, 3): 1, (3, 4): 1, (1, 4): 7}, strategy)
    paths.set(2, 4, None)
    assert (1, 4, 2) in paths.session.relation("best")
    paths.set(1, 3, None)
    assert (1, 4, 7) in paths.session.relation("best")
    paths.set(1, 4, None)
    assert not [row for row in paths.session.relation("best") if row[:2] == (1, 4)]


@every_strategy
def test_costs_do_not_count_to_infinity_when_a_cycle_is_cut_off(strategy: str) -> None:
    paths = Paths({(1, 2): 1, (2, 3): 1, (3, 2): 1, (3, 4): 1, (4, 3): 2}, strategy)
    paths.set(1, 2, None)
    paths.set(2, 3, None)
    paths.set(1, 4, 5)


@every_strategy
def test_link_costs_change_one_after_the_other(strategy: str) -> None:
    ring = {(at, (at + 1) % 6): 2 for at in range(6)} | {((at + 1) % 6, at): 3 for at in range(6)}
    paths = Paths(ring | {(0, 3): 4}, strategy)
    for x, y in sorted(ring):
        paths.set(x, y, 9)
        paths.set(x, y, 0)
        paths.set(x, y, None)
        paths.set(x, y, 1)


@every_strategy
def test_a_window_slides_over_shortest_paths(strategy: str) -> None:
    session = Session(load(PATHS + ".window link(rows=6)\n"), strategy=strategy)
    stream = [(at % 5, (at * at + 1) % 5, 1 + at % 4) for at in range(40)]
    newest: dict[tuple[int, int, int], None] = {}
    for row in stream:
        session.apply([Update("+", "link", row)])
        newest.pop(row, None)
        newest[row] = None
        while len(newest) > 6:
            del newest[next(iter(newest))]
        cheapest: Links = {}
        for x, y, cost in newest:
            cheapest[x, y] = min(cost, cheapest.get((x, y), cost))
        assert set(session.relation("best")) == distances(cheapest)
