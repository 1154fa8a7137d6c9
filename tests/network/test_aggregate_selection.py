from __future__ import annotations

import random

import networkx as nx
import pytest

from whence import load
from whence.io.changes import Update
from whence.lang.types import Tuple
from whence.network import Network
from whence.network.aggregate_selection import AggregateSelection, Wanted
from whence.network.provenance import AbsorptionStrategy, RelativeStrategy, Selection
from whence.plan import UnsuitableStrategy
from whence.runtime import Channel, Wiring

T1, T2, T3, T4 = ("a", "b", 1, 9), ("a", "b", 2, 3), ("a", "b", 3, 5), ("a", "b", 1, 10)
LENGTH, COST = Wanted("min", 2), Wanted("min", 3)


def test_14_a_row_goes_on_while_any_aggregate_needs_it() -> None:
    selection = AggregateSelection((0, 1), [LENGTH, COST])
    assert selection.insert(T1) == [(T1, True)]
    assert selection.insert(T2) == [(T2, True)]  # and not without T1, which is still the shortest
    assert selection.insert(T3) == []
    assert selection.delete(T2) == [(T3, True), (T2, False)]
    assert selection.delete(T1) == [(T1, False)]  # T3 has gone on before
    assert selection.delete(T3) == [(T3, False)]  # and nothing in its place
    assert selection.groups == {}


def test_14_ties_go_on_together() -> None:
    selection = AggregateSelection((0, 1), [LENGTH, COST])
    selection.insert(T1)
    assert selection.insert(T4) == [(T4, True)]
    assert selection.delete(T1) == [(T1, False)]
    assert selection.keeps(T4)


def test_the_largest() -> None:
    selection = AggregateSelection((0,), [Wanted("max", 1)])
    assert [selection.insert(("g", value)) for value in (1, 3, 2)] == [
        [(("g", 1), True)],
        [(("g", 3), True), (("g", 1), False)],
        [],
    ]
    assert selection.delete(("g", 3)) == [(("g", 2), True), (("g", 3), False)]


@pytest.mark.parametrize("op", ["count", "sum", "avg"])
def test_what_adds_up_needs_all_rows(op: str) -> None:
    wanted = Wanted(op, 1)
    selection = AggregateSelection((0,), [wanted, Wanted("min", 1)])
    for value in (1, 4, 7):
        assert selection.insert(("g", value)) == [(("g", value), True)]
    assert selection.value(("g",), wanted) == {"count": 3, "sum": 12, "avg": 4}[op]
    assert selection.delete(("g", 4)) == [(("g", 4), False)]
    assert selection.value(("g",), wanted) == {"count": 2, "sum": 8, "avg": 4}[op]
    assert selection.value(("h",), wanted) is None


def test_random_streams_against_sorting() -> None:
    draw = random.Random(14)
    for _ in range(60):
        wanted = draw.sample(
            [Wanted("min", 1), Wanted("max", 1), Wanted("min", 2), Wanted("max", 2)], draw.randint(1, 3)
        )
        selection = AggregateSelection((0,), wanted)
        rows: set[Tuple] = set()
        going: set[Tuple] = set()
        for _ in range(60):
            row = tuple(draw.randrange(4) for _ in range(3))
            is_new = draw.random() < 0.6
            (rows.add if is_new else rows.discard)(row)
            for each, comes in selection.insert(row) if is_new else selection.delete(row):
                assert (each in going) is not comes
                (going.add if comes else going.remove)(each)
            expected = set()
            for each in wanted:
                assert each.column is not None
                for group in {row[0] for row in rows}:
                    values = [row[each.column] for row in rows if row[0] == group]
                    best = min(values) if each.op == "min" else max(values)
                    assert selection.value((group,), each) == best
                    expected |= {row for row in rows if row[0] == group and row[each.column] == best}
            assert going == expected


# -- in a network

PATHS = """.decl link(@a:number, b:number, cost:number) .input link
.decl path(@a:number, b:number, v:list<number>, length:number, cost:number)
.output shortest, cheapest
path(@x, y, [x, y], 1, c) :- link(@x, y, c).
path(@x, y, [x | v], n + 1, c + d) :- link(@x, z, c), path(@z, y, v, n, d).
hops(@x, y, m) :- path(@x, y, _, _, _), m = min n : { path(@x, y, _, n, _) }.
shortest(@x, y, v, m) :- hops(@x, y, m), path(@x, y, v, m, _).
least(@x, y, m) :- path(@x, y, _, _, _), m = min c : { path(@x, y, _, _, c) }.
cheapest(@x, y, v, m) :- least(@x, y, m), path(@x, y, v, _, m).
"""
BOTH = Selection("path", ("a", "b"), (("min", "length"), ("min", "cost")))


def best_paths(links: dict[tuple[int, int], int], *, cost: bool) -> set[Tuple]:
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((a, b, c if cost else 1) for (a, b), c in links.items())
    found: set[Tuple] = set()
    for source in graph:
        for target in graph:
            # The way from a node back to itself begins with a link.
            ways: list[tuple[int, tuple[int, ...]]] = []
            for after in graph[source]:
                if nx.has_path(graph, after, target):
                    length = graph[source][after]["weight"] + nx.shortest_path_length(graph, after, target, "weight")
                    paths = nx.all_shortest_paths(graph, after, target, "weight")
                    ways += [(length, (source, *path)) for path in paths]
            best = min((length for length, _ in ways), default=None)
            found |= {(source, target, way, best) for length, way in ways if length == best}
    return found


@pytest.mark.parametrize("ship", ["lazy", "batched", "eager"])
@pytest.mark.parametrize("strategy", [AbsorptionStrategy, RelativeStrategy])
def test_best_paths_in_a_network_with_cycles(strategy: type[AbsorptionStrategy | RelativeStrategy], ship: str) -> None:
    program = load(PATHS)
    for seed in range(4):
        draw = random.Random(seed)
        wiring = Wiring(Channel(jitter=0.004, loss=0.1))
        network = Network(
            program, strategy=strategy(selections=[BOTH], period=0.01), ship=ship, wiring=wiring, seed=seed
        )
        links: dict[tuple[int, int], int] = {}
        for _ in range(7):
            updates: dict[tuple[int, int], list[Update]] = {}
            for _ in range(draw.randint(1, 6)):
                pair = (draw.randrange(5), draw.randrange(5))
                if pair[0] == pair[1] or pair in updates:
                    continue
                updates[pair] = []
                if pair in links:
                    updates[pair].append(Update("-", "link", (*pair, links.pop(pair))))
                if draw.random() < 0.7:
                    links[pair] = draw.randint(1, 4)
                    updates[pair].append(Update("+", "link", (*pair, links[pair])))
            network.apply([each for some in updates.values() for each in some])
            assert network.relation("shortest") == best_paths(links, cost=False)
            assert network.relation("cheapest") == best_paths(links, cost=True)


@pytest.mark.parametrize(
    ("selection", "reason"),
    [
        (Selection("way", ("a",), (("min", "length"),)), "no relation way"),
        (Selection("path", ("a", "z"), (("min", "length"),)), "no attribute z"),
        (Selection("path", ("b",), (("min", "length"),)), "have to be by a too"),
        (Selection("path", ("a", "b"), (("least", "length"),)), "least is not an aggregate"),
        (Selection("path", ("a", "b"), (("min", None),)), "min needs a column"),
        (Selection("path", ("a", "b"), ()), "needs an aggregate"),
    ],
)
def test_selections_that_make_no_sense(selection: Selection, reason: str) -> None:
    with pytest.raises(UnsuitableStrategy, match=reason):
        Network(load(PATHS), strategy=AbsorptionStrategy(selections=[selection]))
