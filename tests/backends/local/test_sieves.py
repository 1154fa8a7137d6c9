"""Joins leave out what a later test would drop, and leave nothing else out: cycles beside networkx, at sizes where runs end with
blocks, lists get too long and different values share a bit."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import networkx as nx
import pytest

from whence import Session, Update, load
from whence.backends.local import blocks, parallel, sieves, sieving
from whence.backends.local.instructions import Assembled
from whence.backends.local.machine import BLOCK, SIEVE

DECLARATIONS = ".decl link(x:number, y:number) .input link .decl start(x:number) .input start .output t\n"
NAMES = "abcdefg"
Edges = set[tuple[int, int]]


def cycle_rule(length: int) -> str:
    names = NAMES[:length]
    steps = ", ".join(f"link({one}, {other})" for one, other in zip(names, names[1:] + names[0], strict=True))
    return DECLARATIONS + f"t({', '.join(names)}) :- start(a), {steps}.\n"


def closed_walks(edges: Edges, starts: Iterable[int], length: int) -> set[tuple[int, ...]]:
    """By brute force: walks that end where they began."""
    graph = nx.DiGraph(sorted(edges))

    def walks(walk: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(walk) == length:
            if graph.has_edge(walk[-1], walk[0]):
                yield walk
        else:
            for other in graph.successors(walk[-1]):
                yield from walks((*walk, other))

    return {walk for start in starts if start in graph for walk in walks((start,))}


def graph_of(nodes: int, links: int, seed: int, apart: int = 1) -> Edges:
    rng = random.Random(seed)
    return {(apart * rng.randrange(nodes), apart * rng.randrange(nodes)) for _ in range(links)}


def assembled(session: Session) -> list[Assembled]:
    return [each for each in session._atomic.backend.assembled.values() if each is not None]


def in_use(session: Session) -> list[int]:
    """How many levels the sieves have that are used."""
    return sorted(
        int(each.code[placed.place + sieves.LEVELS])
        for each in assembled(session)
        for placed in each.instructions.sieves
        if each.code[placed.join + SIEVE] > 0
    )


def check(edges: Edges, starts: list[int], length: int) -> Session:
    session = Session(load(cycle_rule(length)), facts={"link": edges, "start": [(start,) for start in starts]})
    assert set(session.relation("t")) == closed_walks(edges, starts, length)
    return session


@pytest.mark.parametrize("length", [3, 4, 5, 6])
def test_cycles_have_a_sieve_at_each_join_that_looks_at_many_rows(length: int) -> None:
    session = check(graph_of(60, 60 * 4, length), [*range(60)], length)
    assert in_use(session) == list(range(1, length - 1))


@pytest.mark.parametrize("forced", ["rows", "blocks"])
@pytest.mark.parametrize("apart", [1, 1 << 33, -(1 << 20)])
def test_whatever_values_are_and_however_rows_are_kept(
    apart: int, forced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "FORCED", forced)
    assert in_use(check(graph_of(50, 300, 7, apart), [apart * at for at in range(50)], 4)) == [1, 2]


def test_runs_that_end_with_blocks_and_go_on_in_the_next() -> None:
    """Each first value has as many paths as a block has lines, or one more or less."""
    edges: Edges = set()
    for start, fan_out in enumerate((BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK)):
        edges |= {(start, 1000 + at) for at in range(fan_out)} | {(1000 + at, 2000 + at % 7) for at in range(fan_out)}
        edges |= {(2000 + at, start) for at in range(0, 7, start + 1)}
    session = check(edges, [0, 1, 2, 3], 3)
    assert in_use(session)
    check(edges | {(2000 + at, 3000) for at in range(7)} | {(3000, start) for start in range(4)}, [0, 1, 2, 3], 4)


def test_lists_that_are_too_long_are_not_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieving, "TEST", 1 << 20)
    many = 2 * sieves.MOST
    edges = {(0, 1), (0, 2)} | {(1, at) for at in range(3, 500)} | {(2, at) for at in range(3, many)}
    edges |= {(at, 0) for at in range(3, many, 2)}
    assert in_use(check(edges, [0], 3))


def test_many_values_share_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as are marked at most."""
    monkeypatch.setattr(sieving, "TEST", 1 << 20)
    edges = {(0, at) for at in range(1, 9)} | {(at, other) for at in range(1, 9) for other in range(100, 9100)}
    edges |= {(other, 0) for other in range(100, 100 + 2 * sieves.MOST, 2)}
    assert in_use(check(edges, [0], 3))


def test_rows_of_wide_relations_with_constants() -> None:
    rng = random.Random(1)
    text = """.decl a(k:number, x:number, y:number) .decl b(y:number, k:number, z:number) .decl c(z:number, k:number, x:number)
    .input a, b, c
    t(k, x, y, z) :- a(k, x, y), b(y, k, z), c(z, k, x), x != z.
    u(x, y, z) :- a(1, x, y), b(y, 1, z), c(z, 2, x), !c(x, 2, y).
    .output t, u
    """
    facts = {name: {tuple(rng.randrange(9) for _ in range(3)) for _ in range(400)} for name in "abc"}
    session = Session(load(text), facts=facts)
    a, b, c = facts["a"], facts["b"], facts["c"]
    expected = {(k, x, y, z) for k, x, y in a for v, j, z in b if v == y and j == k and (z, k, x) in c and x != z}
    assert set(session.relation("t")) == expected
    one = {
        (x, y, z) for k, x, y in a for v, j, z in b if k == j == 1 and v == y and (z, 2, x) in c and (x, 2, y) not in c
    }
    assert set(session.relation("u")) == one
    assert len(in_use(session)) >= 2


@pytest.mark.parametrize("length", [3, 4, 5])
@pytest.mark.parametrize("cores", [1, 2])
def test_cycles_while_links_come_and_go(length: int, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "LARGE", 8)
    monkeypatch.setattr(parallel, "CORES", cores)
    monkeypatch.setattr(sieving, "SHARE", 0)
    rng = random.Random(length)
    edges, starts = graph_of(30, 90, length), set(range(0, 30, 2))
    session = check(edges, sorted(starts), length)
    for _ in range(12):
        gone, come = set(rng.sample(sorted(edges), 5)), graph_of(30, 6, rng.randrange(1000)) - edges
        start = rng.randrange(30)
        updates = [Update("-", "link", edge) for edge in gone] + [Update("+", "link", edge) for edge in come]
        session.apply([*updates, Update("-" if start in starts else "+", "start", (start,))])
        edges, starts = (edges - gone) | come, starts ^ {start}
        assert set(session.relation("t")) == closed_walks(edges, starts, length)
    assert len(in_use(session)) > length


def test_a_recursion_whose_rows_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index of a sieve has rows as soon as the recursion has derived them."""
    monkeypatch.setattr(sieving, "SHARE", -1)
    text = """.decl link(x:number, y:number) .input link
    t(x, y) :- link(x, y), x < y.
    t(x, z) :- t(x, y), link(y, z), t(w, z), link(w, x).
    .output t
    """
    rng = random.Random(5)
    edges = graph_of(40, 160, 5)
    session = Session(load(text), facts={"link": edges})
    for _ in range(10):
        gone = set(rng.sample(sorted(edges), 3))
        come = graph_of(40, 4, rng.randrange(1000)) - edges
        session.apply([Update("-", "link", each) for each in gone] + [Update("+", "link", each) for each in come])
        edges = (edges - gone) | come
        rows = {(x, y) for x, y in edges if x < y}
        while True:
            more = {(x, z) for x, y in rows for v, z in edges if v == y} - rows
            more = {(x, z) for x, z in more if any((w, x) in edges for w, other in rows if other == z)}
            if not more:
                break
            rows |= more
        assert set(session.relation("t")) == rows


def test_where_joins_look_at_few_rows_there_is_no_other_index() -> None:
    session = check({(at, at + 1) for at in range(500)} | {(499, 0)}, [0, 1], 4)
    assert in_use(session) == []
    assert set(session._atomic.backend.tables["link"].indexes) == {(0,)}
