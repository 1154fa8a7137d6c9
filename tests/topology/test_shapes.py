"""Generated networks have the shape they promise, for any size and seed."""

from __future__ import annotations

from math import dist

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whence.topology import (
    SPARSE,
    Topology,
    TransitStub,
    grid_network,
    radio_field,
    random_network,
    scale_free_network,
    transit_stub,
    tree_network,
)

SEEDS = st.integers(0, 2**32)


def _graph(network: Topology | TransitStub) -> nx.Graph:
    """Also checks what every topology promises."""
    graph = nx.Graph()
    graph.add_nodes_from(network.nodes)
    graph.add_edges_from((link.a, link.b) for link in network.links)
    assert len(network.nodes) == len(graph), "nodes have names of their own, and links are between nodes"
    assert len(network.links) == graph.number_of_edges(), "no two links are between the same nodes"
    assert not list(nx.selfloop_edges(graph))
    assert all(link.ms >= 1 and link.mbps >= 1 for link in network.links)
    return graph


@given(rows=st.integers(1, 7), columns=st.integers(1, 7), seed=SEEDS)
def test_a_grid_is_a_grid(rows: int, columns: int, seed: int) -> None:
    network = grid_network(rows, columns, seed=seed)
    numbered = {(row, column): f"n{row * columns + column}" for row in range(rows) for column in range(columns)}
    expected = nx.relabel_nodes(nx.grid_2d_graph(rows, columns), numbered)
    assert nx.utils.graphs_equal(_graph(network), expected)
    assert network == grid_network(rows, columns, seed=seed)


@given(nodes=st.integers(2, 12), share=st.floats(0, 1), seed=SEEDS)
def test_a_random_network_has_the_links_asked_for(nodes: int, share: float, seed: int) -> None:
    links = round(share * nodes * (nodes - 1) / 2)
    network = random_network(nodes, links, seed=seed)
    assert (len(_graph(network)), len(network.links)) == (nodes, links)
    assert network == random_network(nodes, links, seed=seed)


def test_every_pair_is_as_likely_in_a_random_network() -> None:
    counts = nx.Graph()
    for seed in range(600):
        for link in random_network(5, 3, seed=seed).links:
            at = counts.get_edge_data(link.a, link.b, {"n": 0})["n"]
            counts.add_edge(link.a, link.b, n=at + 1)
    found = [n for _, _, n in counts.edges(data="n")]
    assert len(found) == 10
    assert min(found) > 130  # 180 are expected
    assert max(found) < 230


@given(nodes=st.integers(1, 40), seed=SEEDS)
def test_a_tree_is_a_tree(nodes: int, seed: int) -> None:
    assert nx.is_tree(_graph(tree_network(nodes, seed=seed)))


@given(nodes=st.integers(2, 40), each=st.integers(1, 4), seed=SEEDS)
def test_a_scale_free_network_is_connected_and_has_so_many_links_for_each_newcomer(
    nodes: int, each: int, seed: int
) -> None:
    if each >= nodes:
        with pytest.raises(ValueError, match="can link with"):
            scale_free_network(nodes, each, seed=seed)
        return
    network = scale_free_network(nodes, each, seed=seed)
    graph = _graph(network)
    assert nx.is_connected(graph)
    assert len(network.links) == each * (nodes - each)


def test_few_nodes_of_a_scale_free_network_have_very_many_links() -> None:
    graph = _graph(scale_free_network(1000, 2, seed=1))
    assert max(dict(graph.degree).values()) > 10 * 4  # ten times the mean, which no random network comes near


@given(nodes=st.integers(0, 30), radius=st.floats(0, 150), seed=SEEDS)
def test_radios_are_linked_if_they_are_close(nodes: int, radius: float, seed: int) -> None:
    field = radio_field(nodes, side=100, radius=radius, seed=seed)
    placed = nx.Graph()
    placed.add_nodes_from((node, {"pos": place}) for node, place in field.places.items())
    expected = {frozenset(pair) for pair in nx.geometric_edges(placed, radius)}
    assert {frozenset(edge) for edge in _graph(field).edges} == expected
    assert all(0 <= x <= 100 and 0 <= y <= 100 for x, y in field.places.values())
    for link in field.links:
        assert 10 * (link.ms - 1) <= dist(field.places[link.a], field.places[link.b]) <= 10 * link.ms


@pytest.mark.parametrize("transit", [4, 8, 40])
def test_a_transit_stub_network_grows_with_its_core(transit: int) -> None:
    dense, sparse = transit_stub(seed=3, transit=transit), transit_stub(seed=3, transit=transit, degree=SPARSE)
    for network, links in ((dense, 50 * transit), (sparse, 25 * transit)):
        graph = _graph(network)
        assert (len(graph), len(network.links)) == (25 * transit, links)
        assert nx.is_connected(graph)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: grid_network(0, 3, seed=1), "one row and one column"),
        (lambda: random_network(3, 4, seed=1), "3 nodes have up to 3 links"),
        (lambda: scale_free_network(5, 0, seed=1), "1 to 4 others, not 0"),
        (lambda: radio_field(5, side=0, radius=1, seed=1), "a field has a side"),
    ],
)
def test_shapes_that_do_not_exist_are_refused(make, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        make()
