"""Networks survive being written and read, and what cannot be read is reported with its place."""

from __future__ import annotations

import sys
from pathlib import Path

import networkx as nx
import pytest

from whence.io import FactError
from whence.topology import Link, Topology, radio_field, read_topology, transit_stub

NETWORKS = [radio_field(12, side=50, radius=20, seed=4), transit_stub(seed=2)]


@pytest.mark.parametrize("network", NETWORKS, ids=["field", "transit-stub"])
def test_a_written_list_reads_back(network, tmp_path: Path) -> None:
    lines = [*network.nodes, *(f"{link.a} {link.b} {link.ms}, {link.mbps} # one of many" for link in network.links), ""]
    path = tmp_path / "links.txt"
    path.write_text("\n".join(lines))
    assert read_topology(path) == Topology(tuple(network.nodes), network.links)


@pytest.mark.parametrize("network", NETWORKS, ids=["field", "transit-stub"])
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_graphml_of_networkx_reads_back(network, kind, tmp_path: Path) -> None:
    graph = kind()
    for node in network.nodes:
        graph.add_node(node)
    places = getattr(network, "places", {})
    for node, (x, y) in places.items():
        graph.add_node(node, x=x, y=y)
    for link in network.links:
        for way in link.pairs():  # a directed graph has both
            graph.add_edge(*way, ms=link.ms, mbps=link.mbps)
    nx.write_graphml(graph, tmp_path / "net.graphml")
    read = read_topology(tmp_path / "net.graphml")
    assert (set(read.nodes), read.places) == (set(network.nodes), places)
    assert {each for link in read.links for each in link.tuples()} == set(network.tuples())


def test_what_a_link_does_not_say_has_a_default(tmp_path: Path) -> None:
    (tmp_path / "net.txt").write_text("a b\nb,c,7\n# nothing\nd\n")
    assert read_topology(tmp_path / "net.txt") == Topology(
        ("d", "a", "b", "c"), (Link("a", "b", 1, 100), Link("b", "c", 7, 100))
    )


def test_everything_wrong_with_a_list_is_reported(tmp_path: Path) -> None:
    (tmp_path / "net.txt").write_text("a b 5\na b x\nb a\nc c\na c 1 2 3\na d 0\na e inf\na f 2 1.5\n")
    with pytest.raises(FactError) as caught:
        read_topology(tmp_path / "net.txt")
    assert [problem.partition("net.txt:")[2] for problem in caught.value.problems] == [
        "5: 5 fields, where a link has 4 at most",
        "2: ms is a number, not x",
        "3: b-a is there already; links work in both directions",
        "4: a link from c to itself",
        "6: ms is a whole number above 0, not 0",
        "7: ms is a whole number above 0, not inf",
        "8: mbps is a whole number above 0, not 1.5",
    ]


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("empty.txt", "# nothing\n", "has no nodes"),
        ("bad.txt", b"\xff\xfe", "not UTF-8"),
        ("bad.graphml", "<graphml>", "is not GraphML"),
        ("odd.xml", "<other/>", "is not GraphML"),
    ],
)
def test_files_that_are_no_networks_are_refused(name: str, text: str | bytes, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FactError, match=complaint):
        read_topology(path)


@pytest.mark.parametrize("name", ["gone.txt", "gone.graphml"])
def test_a_file_that_is_not_there_is_said_so(name: str, tmp_path: Path) -> None:
    with pytest.raises(FactError, match=r"cannot read .*: No such file"):
        read_topology(tmp_path / name)


def test_without_networkx_graphml_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(FactError, match=r"whence\[networks\]"):
        read_topology(tmp_path / "net.graphml")
