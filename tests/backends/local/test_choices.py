"""Cyclic bodies go through the shortest lists where some are long, and need no other indexes where none is."""

from __future__ import annotations

import random

import networkx as nx
import pytest

from whence import Session, Update, load
from whence.backends.local import choices

TRIANGLES = ".decl link(x:number, y:number) .input link\nt(x, y, z) :- link(x, y), link(y, z), link(z, x).\n.output t\n"
CLIQUES = (
    ".decl link(x:number, y:number) .input link\n"
    "t(w, x, y, z) :- link(w, x), link(w, y), link(w, z), link(x, y), link(x, z), link(y, z).\n.output t\n"
)
Edge = tuple[int, int]


def around_a_hub(nodes: int) -> list[Edge]:
    outward = [(0, at) for at in range(1, nodes)]
    return outward + [(at, 0) for at in range(1, nodes)] + [(at, at + 1) for at in range(1, nodes - 1)]


def indexed(session: Session) -> set[tuple[int, ...]]:
    return set(session._atomic.backend.tables["link"].indexes)


def cycles_of_three(edges: set[Edge]) -> set[tuple[int, int, int]]:
    graph = nx.DiGraph(sorted(edges))
    found = [cycle for cycle in nx.simple_cycles(graph, length_bound=3) if len(cycle) == 3]
    return {(x, y, z) for a, b, c in found for x, y, z in ((a, b, c), (b, c, a), (c, a, b))}


def test_lists_at_a_hub_are_not_gone_through() -> None:
    session = Session(load(TRIANGLES), facts={"link": around_a_hub(400)})
    assert indexed(session) == {(0,), (1,)}
    assert set(session.relation("t")) == cycles_of_three(set(around_a_hub(400)))


def test_where_all_lists_are_short_there_is_no_other_index() -> None:
    ring = [(at, (at + step) % 300) for at in range(300) for step in (1, 150)]
    session = Session(load(TRIANGLES), facts={"link": ring})
    assert len(indexed(session)) == 1
    assert set(session.relation("t")) == cycles_of_three(set(ring))


@pytest.mark.parametrize("long", [0, 32])
def test_triangles_while_a_hub_comes_and_goes(long: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "LONG", long)
    rng = random.Random(long)
    edges = {(rng.randrange(1, 60), rng.randrange(1, 60)) for _ in range(300)}
    edges = {(one, other) for one, other in edges if one != other}
    session = Session(load(TRIANGLES), facts={"link": edges})
    hub = [edge for edge in around_a_hub(60) if 0 in edge]
    for op, some in (("+", hub), ("-", rng.sample(hub, 30)), ("-", rng.sample(sorted(edges), 50)), ("+", hub)):
        session.apply(Update(op, "link", edge) for edge in some)
        edges = edges | set(some) if op == "+" else edges - set(some)
        assert set(session.relation("t")) == cycles_of_three(edges)


def test_cliques_with_a_hub() -> None:
    rng = random.Random(3)
    edges = {(one, other) for one in range(1, 80) for other in range(one + 1, 80) if rng.random() < 0.15}
    edges |= {(0, at) for at in range(1, 80)}
    session = Session(load(CLIQUES), facts={"link": edges})
    graph = nx.Graph(sorted(edges))
    expected = {tuple(sorted(each)) for each in nx.enumerate_all_cliques(graph) if len(each) == 4}
    assert set(session.relation("t")) == expected
