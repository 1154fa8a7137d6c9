"""The views of examples/network are what networkx computes from the links that work, after every epoch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import networkx as nx
import pytest

from whence import Session, Update, load_file
from whence.lang.types import Tuple
from whence.topology import Link, fail_and_repair, transit_stub

EXAMPLE = Path(__file__).parents[2] / "examples" / "network"


def _views(links: set[Link]) -> dict[str, set[Tuple]]:
    graph = nx.Graph()
    for link in links:
        graph.add_edge(link.a, link.b, ms=link.ms, mbps=link.mbps)
    # A link leads both ways, so that whoever has one reaches itself; the other views are about two nodes.
    reachable = {(src, dst) for part in nx.connected_components(graph) for src in part for dst in part}
    pairs = {pair for pair in reachable if pair[0] != pair[1]}
    ms = dict(nx.all_pairs_dijkstra_path_length(graph, weight="ms"))
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    # The widest way between two nodes is the one within a spanning tree of greatest bandwidth.
    ways = dict(nx.all_pairs_shortest_path(nx.maximum_spanning_tree(graph, weight="mbps")))
    return {
        "reachable": reachable,
        "fastest": {(src, dst, ms[src][dst]) for src, dst in pairs},
        "fewest_hops": {(src, dst, hops[src][dst]) for src, dst in pairs},
        "widest": {(src, dst, _width(graph, ways[src][dst])) for src, dst in pairs},
    }


def _width(graph: nx.Graph, way: list[str]) -> int:
    return min(graph.edges[step]["mbps"] for step in nx.utils.pairwise(way))


@pytest.mark.parametrize("links", [60, 44])
def test_views_follow_the_network(links: int) -> None:
    network = transit_stub(seed=2, transit=4, stubs_per_transit=2, nodes_per_stub=5, links=links)
    session = Session(load_file(EXAMPLE / "program.dl"))
    session.apply(Update("+", "link", row) for row in network.tuples())
    working = set(network.links)
    for epoch in fail_and_repair(network.links, seed=2, epochs=15, failures=3):
        session.apply(Update(op, "link", row) for op, row in epoch.updates())
        working = (working | set(epoch.repaired)) - set(epoch.failed)
        expected = _views(working)
        assert {name: set(session.relation(name)) for name in expected} == expected


def test_the_main_job_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLE / "main.py", "--epochs", "3", "--out", tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "A network of 100 nodes and 200 links: 4 transit nodes and 12 stubs (seed 1)."
    table = lines.index("epoch       ms   changes")
    assert [line.split()[0] for line in lines[table + 1 : table + 5]] == ["1", "2", "3", "4"]
    assert "39,700   200 links come up" in lines[table + 1]
    assert f"Picture of the worst failure: {tmp_path / 'worst_failure.svg'}" in lines
    assert ET.parse(tmp_path / "worst_failure.svg").getroot()[0].text.startswith("Epoch ")
