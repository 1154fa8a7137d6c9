"""Generated networks have the shape they promise."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import pytest

from whence.topology import Link, TransitStub, chain, fail_and_repair, gnm, transit_stub, tree

SEEDS = range(12)


def _graph(network: TransitStub) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(network.nodes)
    graph.add_edges_from((link.a, link.b) for link in network.links)
    return graph


@pytest.mark.parametrize("seed", SEEDS)
def test_the_default_network_has_100_nodes_and_400_link_tuples(seed: int) -> None:
    network = transit_stub(seed=seed)
    assert (len(network.transit), len(network.stubs), len(set(network.nodes))) == (4, 12, 100)
    assert all(len(stub.nodes) == 8 and stub.gateway in stub.nodes for stub in network.stubs)
    assert Counter(stub.transit for stub in network.stubs) == dict.fromkeys(network.transit, 3)
    tuples = list(network.tuples())
    assert len(tuples) == len({(src, dst) for src, dst, _, _ in tuples}) == 400
    assert {(dst, src, ms, mbps) for src, dst, ms, mbps in tuples} == set(tuples)
    assert all(src != dst for src, dst, _, _ in tuples)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("links", [100, 200, 354])
def test_every_network_is_connected_and_no_core_link_splits_it(seed: int, links: int) -> None:
    network = transit_stub(seed=seed, links=links)
    graph = _graph(network)
    assert graph.number_of_edges() == links
    assert nx.is_connected(graph)
    core = graph.subgraph(network.transit)
    assert not list(nx.bridges(core))
    assert all(nx.is_connected(graph.subgraph(stub.nodes)) for stub in network.stubs)


def test_latency_and_bandwidth_follow_from_where_a_link_is() -> None:
    network = transit_stub(seed=3)
    home = {node: stub.transit + stub.gateway for stub in network.stubs for node in stub.nodes}
    tiers: dict[tuple[int, frozenset[int]], int] = Counter()
    for link in network.links:
        inside = home.get(link.a) is not None and home.get(link.a) == home.get(link.b)
        core = link.a in network.transit and link.b in network.transit
        expected = (2, 50) if inside else (50, 1000) if core else (10, 100)
        assert link.ms == expected[0]
        assert link.mbps // expected[1] in {1, 2, 4}
        tiers[link.ms] += 1
    assert tiers[10] == 12
    assert 4 <= tiers[50] <= 6


def test_a_seed_decides_everything() -> None:
    assert transit_stub(seed=7) == transit_stub(seed=7)
    assert transit_stub(seed=7) != transit_stub(seed=8)
    links = transit_stub(seed=7).links
    assert list(fail_and_repair(links, seed=1, epochs=9)) == list(fail_and_repair(links, seed=1, epochs=9))
    assert list(fail_and_repair(links, seed=1, epochs=9)) != list(fail_and_repair(links, seed=2, epochs=9))


@pytest.mark.parametrize(
    ("shape", "complaint"),
    [
        ({"links": 99}, "has 100 to 354 links"),
        ({"links": 355}, "has 100 to 354 links"),
        ({"transit": 2}, "3 transit nodes"),
        ({"stubs_per_transit": 27}, "1 to 26 stubs"),
    ],
)
def test_shapes_that_do_not_exist_are_refused(shape: dict[str, int], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        transit_stub(seed=1, **shape)


def test_only_working_links_fail_and_only_failed_ones_are_repaired() -> None:
    links = transit_stub(seed=1).links
    working, since = set(links), {}
    for number, epoch in enumerate(fail_and_repair(links, seed=4, epochs=300, failures=3, outage=(2, 5))):
        assert len(epoch.failed) == 3
        assert working.issuperset(epoch.failed)
        assert working.isdisjoint(epoch.repaired)
        assert all(2 <= number - since[link] <= 5 for link in epoch.repaired)
        working = (working | set(epoch.repaired)) - set(epoch.failed)
        since |= dict.fromkeys(epoch.failed, number)
    assert len(links) - len(working) <= 3 * 5


def test_an_epoch_updates_both_directions() -> None:
    links = [Link("a", "b", 2, 50), Link("b", "c", 10, 100)]
    first, second, *_ = fail_and_repair(links, seed=1, epochs=2, failures=2, outage=(1, 1))
    assert sorted(first.updates()) == sorted(("-", each) for link in links for each in link.tuples())
    assert sorted(second.updates()) == sorted(("+", each) for link in links for each in link.tuples())


def test_outages_have_to_last() -> None:
    with pytest.raises(ValueError, match="one epoch or more"):
        next(fail_and_repair([], seed=1, epochs=1, outage=(0, 3)))


@pytest.mark.parametrize(("nodes", "edges"), [(2, 2), (10, 0), (10, 90), (50, 400)])
def test_random_graphs_have_distinct_edges_and_no_loops(nodes: int, edges: int) -> None:
    made = gnm(nodes, edges, seed=5)
    assert len(set(made)) == len(made) == edges
    assert all(source != target and {source, target} <= set(range(nodes)) for source, target in made)
    assert made == gnm(nodes, edges, seed=5)


def test_random_graphs_have_no_room_for_more_edges_than_pairs() -> None:
    with pytest.raises(ValueError, match="3 nodes have 6 edges"):
        gnm(3, 7, seed=1)


def test_chains_and_trees_reach_every_node_from_the_first() -> None:
    assert nx.has_path(nx.DiGraph(chain(200)), 0, 199)
    grown = nx.DiGraph(tree(200, seed=2))
    assert nx.is_arborescence(grown)
    assert nx.descendants(grown, 0) == set(range(1, 200))
