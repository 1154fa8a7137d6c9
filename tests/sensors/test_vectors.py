"""The worked examples: what a program on a field says at rest, whatever came in which order."""

from __future__ import annotations

from itertools import pairwise, permutations
from random import Random

import networkx as nx
import pytest
from tests.sensors.runs import wrong

from whence import Update, load
from whence.reference import evaluate
from whence.runtime import Channel
from whence.sensors import Choices, Field, NotForSensors, Scheme, SensorNetwork
from whence.sensors.messages import Fact, Partial, Stamp, Sweep
from whence.topology import Link, Topology

UNCOVERED = """
.decl veh(kind:symbol, x:number, y:number, t:number) .input veh
.output cov, uncov
cov(x, y, t) :- veh("enemy", x, y, t), veh("friendly", u, v, t), dist(x, y, u, v) <= 5.0.
uncov(x, y, t) :- veh("enemy", x, y, t), !cov(x, y, t).
"""
TRAJECTORIES = """
.type Report = [x:number, y:number, t:number]
.decl report(x:number, y:number, t:number) .input report
.decl near(a:Report, b:Report)
.decl traj(l:list<Report>)
.output notStart, notLast, traj, complete, parallel
near([x, y, t], [u, v, w]) :- report(x, y, t), report(u, v, w), w - t > 0, w - t <= 1, dist(x, y, u, v) <= 2.0.
notStart(b) :- near(_, b).
notLast(a) :- near(a, _).
traj([a, b]) :- near(a, b), !notStart(a).
traj(append(l, b)) :- traj(l), near(last(l), b).
complete(l) :- traj(l), !notLast(last(l)).
parallel(l, m) :- complete(l), complete(m), l != m, @parallel(l, m) = 1.
"""
LOGIC_J = """
.decl link(x:number, @y:number) .input link
.decl H(x:number, @y:number, d:number)
.decl J(@y:number, d:number)
.decl P(@y:number, d:number)
.output H, J, P
H(0, 0, 0).
J(y, d) :- H(_, y, d).
P(y, d + 1) :- J(y, e), d + 1 > e, J(x, d), link(x, y).
H(x, y, d + 1) :- link(x, y), J(x, d), !P(y, d + 1).
"""
LOGIC_H = """
.decl link(x:number, @y:number) .input link
.decl H(x:number, @y:number, d:number)
.decl P(@y:number, d:number)
.output H, P
H(0, 0, 0).
P(y, d + 1) :- H(_, y, e), d + 1 > e, H(_, x, d), link(x, y).
H(x, y, d + 1) :- link(x, y), H(_, x, d), !P(y, d + 1).
"""
SCHEMES = (Scheme.AUTO, Scheme.PERPENDICULAR, Scheme.BROADCAST, Scheme.LOCAL, Scheme.CENTRAL)


def field_of(edges: list[tuple[int, int]]) -> Field:
    nodes = sorted({node for edge in edges for node in edge})
    return Field.of(Topology(tuple(map(str, nodes)), tuple(Link(str(a), str(b), 1, 1) for a, b in edges)), named=int)


def both(op: str, edges: list[tuple[int, int]]) -> list[Update]:
    return [Update(op, "link", each) for a, b in edges for each in ((a, b), (b, a))]


# -- V1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_uncovered_vehicles(scheme: Scheme) -> None:
    network = SensorNetwork(load(UNCOVERED), Field.grid(11, 11), choices=Choices(scheme=scheme))
    rows = [("enemy", 0, 0, 1), ("enemy", 10, 10, 1), ("friendly", 3, 4, 1), ("friendly", 3, 4, 2), ("enemy", 0, 0, 3)]
    network.apply([Update("+", "veh", row) for row in rows])
    assert network.relation("cov") == {(0, 0, 1)}
    assert network.relation("uncov") == {(10, 10, 1), (0, 0, 3)}
    network.apply([Update("-", "veh", ("friendly", 3, 4, 1))])
    assert (network.relation("cov"), network.relation("uncov")) == (set(), {(10, 10, 1), (0, 0, 3), (0, 0, 1)})
    network.apply([Update("+", "veh", ("friendly", 9, 9, 1))])
    assert (network.relation("cov"), network.relation("uncov")) == ({(10, 10, 1)}, {(0, 0, 1), (0, 0, 3)})


def test_a_fact_is_tentative_until_nothing_can_take_it_back() -> None:
    network = SensorNetwork(load(UNCOVERED), Field.grid(6, 6))
    network.apply([Update("+", "veh", ("enemy", 0, 0, 1))])
    came = network.moments[-1]
    assert (came.relation, came.is_there) == ("uncov", True)
    assert came.final > came.time
    network.run(until=came.final + 0.001)
    assert not network.tentative("uncov")
    network.feed([Update("+", "veh", ("friendly", 3, 4, 1))])
    network.run()
    assert network.relation("uncov") == set()
    gone = network.moments[-1]
    assert not gone.is_there
    assert gone.time <= gone.final


# -- V2


def steps(line: tuple) -> list[tuple]:
    return [tuple(b - a for a, b in zip(*pair, strict=True)) for pair in pairwise(line)]


@pytest.mark.parametrize("seed", range(3))
def test_trajectories(seed: int) -> None:
    program = load(
        ".functor parallel(a:list<Report>, b:list<Report>):number " + TRAJECTORIES,
        functions={"parallel": lambda a, b: int(steps(a) == steps(b))},
    )
    reports = [(0, 0, 1), (1, 0, 2), (2, 0, 3), (0, 10, 1), (1, 10, 2), (2, 10, 3), (20, 20, 7)]
    Random(seed).shuffle(reports)
    network = SensorNetwork(program, Field.grid(5, 5, spacing=5), seed=seed)
    network.apply([Update("+", "report", row) for row in reports])
    one, other = (tuple((x, y, x + 1) for x in range(3)) for y in (0, 10))
    assert network.relation("notStart") == {((x, y, x + 1),) for x in (1, 2) for y in (0, 10)}
    assert network.relation("notLast") == {((x, y, x + 1),) for x in (0, 1) for y in (0, 10)}
    assert network.relation("traj") == {(line,) for line in (one[:2], one, other[:2], other)}
    assert network.relation("complete") == {(one,), (other,)}
    assert network.relation("parallel") == {(one, other), (other, one)}
    network.apply([Update("-", "report", (2, 0, 3))])
    assert network.relation("complete") == {(one[:2],), (other,)}
    assert network.relation("parallel") == set()


# -- V3, V6


def test_a_window_as_rules() -> None:
    text = """.decl s(a:symbol, t:number) .input s .output r
        r(a, t, w) :- s(a, t), s(_, w), w - 4 < t, t <= w."""
    network = SensorNetwork(load(text), Field.grid(3, 3))
    network.apply([Update("+", "s", row) for row in (("a", 1), ("b", 3), ("c", 6))])
    assert network.relation("r") == {("a", 1, 3), ("b", 3, 6), ("a", 1, 1), ("b", 3, 3), ("c", 6, 6)}


def test_times_of_a_grid() -> None:
    text = ".decl s(a:symbol, t:number) .input s .output r r(a, b) :- s(a, t), s(b, u)."
    network = SensorNetwork(load(text), Field.grid(5, 5), channel=Channel(latency=0.2), skew=0.5)
    timing = network.timing
    # The way to the nearer end of a column is half as long as the column, so that joining takes less than the printed 1.6 s.
    assert (timing.storing, timing.joining) == (pytest.approx(0.8), pytest.approx(1.2))
    assert timing.patience == pytest.approx(1.8, abs=0.01)
    assert timing.expiry(2.0) == pytest.approx(6.4 - 0.4, abs=0.01)


# -- V4, V9


def levels(graph: nx.Graph) -> tuple[set, set, set]:
    away = nx.single_source_shortest_path_length(graph, 0)
    edges = [pair for a, b in graph.edges for pair in ((a, b), (b, a)) if a in away]
    tree = {(x, y, away[y]) for x, y in edges if away[y] == away[x] + 1} | {(0, 0, 0)}
    shorter = {(y, away[x] + 1) for x, y in edges if away[y] < away[x] + 1}
    return tree, shorter, {(node, hops) for node, hops in away.items()}


@pytest.mark.parametrize("text", [LOGIC_H, LOGIC_J])
@pytest.mark.parametrize("edges", [[(0, 1), (0, 2), (1, 3), (2, 3)], [(0, 1), (1, 2), (0, 2), (2, 3)], [(0, 1)]])
def test_shortest_paths(text: str, edges: list[tuple[int, int]]) -> None:
    network = SensorNetwork(load(text), field_of(edges))
    network.apply(network.link_updates())
    tree, shorter, _ = levels(nx.Graph(edges))
    assert network.relation("H") == tree
    assert network.relation("P") == shorter
    assert not network.rows_beyond()


@pytest.mark.parametrize("seed", range(6))
def test_shortest_paths_while_links_come_and_go(seed: int) -> None:
    draw = Random(seed)
    graph = nx.connected_watts_strogatz_graph(draw.randint(4, 14), 4, 0.3, seed=seed)
    network = SensorNetwork(
        load(LOGIC_J),
        field_of(list(graph.edges)),
        channel=Channel(latency=0.01, jitter=0.02, fifo=False),
        skew=0.01,
        seed=seed,
    )
    network.apply(network.link_updates())
    gone: list[tuple[int, int]] = []
    for _ in range(4):
        going = draw.sample(list(graph.edges), draw.randint(1, 3))
        coming, gone = gone, going
        graph.remove_edges_from(going)
        graph.add_edges_from(coming)
        network.apply([*both("-", going), *both("+", coming)])
        tree, shorter, hops = levels(graph)
        assert network.relation("H") == tree
        assert network.relation("J") == hops
        assert network.relation("P") == shorter
        assert not network.rows_beyond()


@pytest.mark.parametrize("text", [LOGIC_H, LOGIC_J])
@pytest.mark.parametrize("rest", [[(1, 2)], [(1, 2), (2, 3), (1, 3)]])
@pytest.mark.parametrize("jitter", [0.0, 0.02])
def test_what_is_cut_off_goes(text: str, rest: list[tuple[int, int]], jitter: float) -> None:
    network = SensorNetwork(load(text), field_of([(0, 1), *rest]), channel=Channel(latency=0.01, jitter=jitter))
    network.apply(network.link_updates())
    before = network.messages
    network.apply(both("-", [(0, 1)]))
    assert network.relation("H") == {(0, 0, 0)}
    assert network.messages - before <= 3 * len(network.nodes)  # stage by stage, nothing climbs


# -- V5


def test_results_of_one_walk() -> None:
    """Where partners are on a column, and what goes on after each node."""
    text = """.decl r1(@n:symbol, k:number) .input r1 .decl r2(@n:symbol, k:number) .input r2
        .decl r3(@n:symbol, k:number) .input r3 .decl t(a:symbol, b:symbol) .output t
        t(b, c) :- r1(_, k), r2(b, k), r3(c, k)."""
    sent: list[Sweep] = []
    network = SensorNetwork(
        load(text),
        Field.grid(4, 1),
        choices=Choices(scheme=Scheme.PERPENDICULAR),
        on_delivery=lambda each: sent.append(each.message) if isinstance(each.message, Sweep) else None,
    )
    network.apply(
        [
            Update("+", "r2", ("n0", 1)),
            Update("+", "r2", ("n2", 1)),
            Update("+", "r3", ("n1", 1)),
            Update("+", "r3", ("n3", 1)),
        ]
    )
    sent.clear()
    network.apply([Update("+", "r1", ("n0", 1))])
    assert network.relation("t") == {(b, c) for b in ("n0", "n2") for c in ("n1", "n3")}
    assert [len(each.partials) for each in sent] == [2, 3, 4]  # after each node but the last


# -- V7


REACH = """.decl edge(@x:number, y:number) .input edge .decl reach(@y:number) .output reach
    reach(y) :- edge(0, y). reach(y) :- reach(x), edge(x, y)."""


def test_rows_that_could_hold_each_other_up_may_only_grow() -> None:
    network = SensorNetwork(load(REACH), Field.grid(2, 2, named=int))
    network.apply([Update("+", "edge", each) for each in ((0, 1), (1, 2), (2, 1))])
    assert network.relation("reach") == {(1,), (2,)}
    with pytest.raises(NotForSensors, match="recursion of reach, whose rows could hold each other up"):
        network.apply([Update("-", "edge", (0, 1))])
    with pytest.raises(NotForSensors, match="when rule near#1 takes something away"):
        SensorNetwork(
            load(
                REACH.replace("edge(0, y).", "near(y).") + ".decl near(@y:number) near(y) :- edge(0, y), !edge(y, 0)."
            ),
            Field.grid(2, 2, named=int),
        )


# -- V8, V10


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_rule_with_negation(scheme: Scheme) -> None:
    text = """.decl r1(a:number, b:number) .input r1 .decl r2(a:number, b:number) .input r2 .decl s(z:number) .input s .output t
        t(x, z) :- r1(x, y), r2(y, z), !s(z)."""
    network = SensorNetwork(load(text), Field.grid(4, 3), choices=Choices(scheme=scheme))
    said = []
    for op, name, row in (
        ("+", "r1", (1, 5)),
        ("+", "r2", (5, 7)),
        ("+", "r1", (1, 6)),
        ("+", "r2", (6, 7)),
        ("-", "r1", (1, 5)),
        ("+", "s", (7,)),
        ("+", "r1", (1, 5)),
        ("-", "s", (7,)),
    ):
        network.apply([Update(op, name, row)])
        said.append(network.relation("t"))
    there = {(1, 7)}
    assert said == [set(), there, there, there, there, set(), set(), there]
    entry = next(node.homes["t", (1, 7)] for node in network.nodes.values() if ("t", (1, 7)) in node.homes)
    assert entry.count == 2


def test_the_order_of_arrival_does_not_matter() -> None:
    text = UNCOVERED
    rows = [("enemy", 0, 0, 1), ("friendly", 3, 4, 1), ("enemy", 5, 5, 1)]
    for order in permutations(rows):
        network = SensorNetwork(load(text), Field.grid(6, 6))
        network.apply([Update("+", "veh", row, 0.01 * at) for at, row in enumerate(order)])
        assert not wrong(network, evaluate(load(text), {"veh": rows}))


# -- windows


def test_what_left_its_window_is_taken_back() -> None:
    text = ".decl a(x:number) .input a .decl b(x:number) .input b .window a(time=2) .output t t(x) :- a(x), b(x)."
    network = SensorNetwork(load(text), Field.grid(3, 3))
    network.apply(
        [
            Update("+", "a", (1,), 0.0),
            Update("+", "b", (1,), 0.5),
            Update("+", "a", (2,), 5.0),
            Update("+", "b", (2,), 5.5),
        ]
    )
    assert network.relation("t") == set()
    assert {(each.row, each.is_there) for each in network.moments if each.relation == "t"} == {
        ((1,), True), ((1,), False), ((2,), True), ((2,), False),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_windows_that_forget_in_silence_keep_all_pairs(seed: int) -> None:
    """Pairs within the window of each other are found, and nobody is told when they leave it."""
    text = """.decl a(k:number) .input a .decl b(k:number) .input b .window a(time=1) .window b(time=1)
        .output t t(x, y) :- a(x), b(y)."""
    draw = Random(seed)
    network = SensorNetwork(
        load(text),
        Field.grid(4, 4),
        channel=Channel(latency=0.02, jitter=0.03, fifo=False),
        skew=0.4,
        seed=seed,
        choices=Choices(scheme=Scheme.PERPENDICULAR),
        silent_expiry=True,
    )
    network.apply([Update("+", draw.choice("ab"), (at,), draw.uniform(0, 6)) for at in range(50)])
    born = {(each.relation, each.row[0]): each.root for each in network.moments if each.relation in "ab"}
    pairs = {
        (x, y)
        for (one, x), at in born.items()
        for (other, y), then in born.items()
        if (one, other) == ("a", "b") and abs(at - then) < 1
    }
    assert network.relation("t") == pairs
    assert max(network.stored().values()) < 50


def test_partials_know_their_tuples() -> None:
    stamp = Stamp(0.0, 1, 1)
    sweep = Sweep(
        Fact("r", (1,), stamp, 0.0), (), ("a", "b"), 0, 1, (Partial(0, True, {"x": 1}, (stamp, None), frozenset(), 0),)
    )
    assert sweep.size().tuples == 1
    assert sweep.size().provenance == 8
