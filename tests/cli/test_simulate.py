"""`whence simulate`: figures, views, traces, pictures, and what is wrong before anything is simulated."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest
from tests.cli.conftest import Whence

from whence.cli.simulate import Strategy
from whence.network import STRATEGIES

PROGRAM = """.decl link(@a:symbol, b:symbol) .input link .output reach
reach(@x, y) :- link(@x, y).
reach(@x, y) :- link(@x, z), reach(@z, y).
"""
LINKS = [("A", "B"), ("B", "C"), ("C", "A"), ("C", "B"), ("D", "A")]


@pytest.fixture(autouse=True)
def files(whence: Whence) -> None:
    Path("p.dl").write_text(PROGRAM)
    lines = [json.dumps({"op": "+", "relation": "link", "tuple": link}) for link in LINKS]
    lines += [json.dumps({"commit": True}), json.dumps({"op": "-", "relation": "link", "tuple": LINKS[2]})]
    Path("u.jsonl").write_text("\n".join(lines) + "\n")


def simulated(whence: Whence, *options: str) -> dict:
    result = whence("simulate", "p.dl", "--updates", "u.jsonl", "-D", "out", "--json", *options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("options", [(), ("--loss", "0.2", "--jitter", "5", "--seed", "7"), ("--processors", "2")])
@pytest.mark.parametrize("strategy", ["support", "dred", "relative", "absorption"])
def test_views_and_figures(whence: Whence, strategy: str, options: tuple[str, ...]) -> None:
    figures = simulated(whence, "--strategy", strategy, *options)
    graph = nx.DiGraph([link for link in LINKS if link != LINKS[2]])
    closure = sorted(nx.transitive_closure(graph, reflexive=False).edges)
    assert Path("out/reach.csv").read_text().splitlines() == ["\t".join(edge) for edge in closure]
    assert [each["epoch"] for each in figures["epochs"]] == [1, 2]
    for name in ("messages", "tuples", "bytes"):
        assert figures[name] == sum(epoch[name] for epoch in figures["epochs"]) > 0
    assert figures["state_bytes"] == figures["epochs"][-1]["state_bytes"] > 0
    assert figures["seconds"] > 0
    assert figures["bytes"] == figures["data_bytes"] + figures["provenance_bytes"] + figures["control_bytes"]


def test_the_same_seed_gives_the_same_bytes(whence: Whence) -> None:
    options = ("--loss", "0.2", "--jitter", "5", "--seed", "7")
    assert simulated(whence, *options) == simulated(whence, *options)


def test_a_topology_says_how_far_nodes_are(whence: Whence) -> None:
    Path("net.txt").write_text("A B 5\nB C 5\nC D 20\n")
    assert simulated(whence, "--topology", "net.txt")["seconds"] > simulated(whence)["seconds"]


def test_trace_and_picture(whence: Whence) -> None:
    simulated(whence, "--trace", "t.txt", "--picture", "run.svg")
    trace = Path("t.txt").read_text()
    assert "A -> B  +link!b(B, A)" in trace
    assert "epoch 2: 1 updates" in trace
    assert Path("run.svg").read_text().startswith("<svg")
    simulated(whence, "--picture", "run.html")
    assert "<table>" in Path("run.html").read_text()


def test_facts_are_there_from_the_start(whence: Whence) -> None:
    Path("facts").mkdir()
    Path("facts/link.facts").write_text("B\tE\n")
    figures = simulated(whence, "-F", "facts")
    assert [each["epoch"] for each in figures["epochs"]] == [0, 1, 2]
    assert "C\tE" in Path("out/reach.csv").read_text().splitlines()
    assert sum(node["bytes"] for node in figures["by_node"].values()) == figures["bytes"]
    assert sum(node["state_bytes"] for node in figures["by_node"].values()) == figures["state_bytes"]


def refused(whence: Whence, *options: str) -> str:
    result = whence("simulate", "p.dl", "--updates", "u.jsonl", *options)
    assert result.exit_code == 1
    assert not Path("t.txt").exists() or "->" not in Path("t.txt").read_text()
    return result.stderr


def test_a_program_without_places_is_refused(whence: Whence) -> None:
    Path("p.dl").write_text(PROGRAM.replace("@", ""))
    assert "does not say where its tuples live" in refused(whence)


def test_links_to_nodes_that_are_not_there_are_refused(whence: Whence) -> None:
    Path("net.txt").write_text("A B\nB C\n")
    assert "+link(D, A) lives at D, which is not a node" in refused(whence, "--topology", "net.txt", "--trace", "t.txt")
    Path("net.txt").write_text("A B\nB D\n")
    assert "+link(B, C) leads to (as its b) C" in refused(whence, "--topology", "net.txt", "--trace", "t.txt")


def test_networks_in_two_pieces_are_refused(whence: Whence) -> None:
    Path("net.txt").write_text("A B\nC D\n")
    assert "there is no way from A to C" in refused(whence, "--topology", "net.txt")


def test_bad_records_are_refused_all_at_once(whence: Whence) -> None:
    Path("u.jsonl").write_text('{"op": "+", "relation": "lnk", "tuple": ["A", "B"]}\n{"op": "+"}\n')
    message = refused(whence)
    assert "u.jsonl:1: there is no relation lnk; did you mean link?" in message
    assert "u.jsonl:2:" in message


def test_what_a_strategy_cannot_run_is_refused_by_name(whence: Whence) -> None:
    Path("p.dl").write_text(PROGRAM.replace(".output reach", ".decl reach(@x:symbol, y:symbol) eqrel .output reach"))
    assert "support cannot maintain reach on nodes: reach is an eqrel" in refused(whence)


def test_what_does_not_end_is_stopped(whence: Whence) -> None:
    Path("p.dl").write_text(
        ".decl link(@a:symbol, b:symbol) .input link .output way "
        "way(@x, y, 1) :- link(@x, y). way(@x, y, n + 1) :- link(@x, z), way(@z, y, n)."
    )
    result = whence("simulate", "p.dl", "--updates", "u.jsonl", "--timeout", "0.2")
    assert result.exit_code == 3
    assert "nodes go on telling each other" in result.stderr


def test_every_strategy_can_be_chosen() -> None:
    assert set(Strategy) == set(STRATEGIES)


def test_ways_of_shipping_that_a_strategy_does_not_have(whence: Whence) -> None:
    assert "does not ship lazy" in refused(whence, "--ship", "lazy")


def test_the_standard_output_is_for_one_of_them(whence: Whence) -> None:
    result = whence("simulate", "p.dl", "--updates", "u.jsonl", "--json", "--trace", "-")
    assert result.exit_code == 2
    assert "--json has the standard output" in result.stderr


def test_functors_without_a_value_are_told_of_once(whence: Whence) -> None:
    Path("p.dl").write_text(
        ".decl link(@a:symbol, b:symbol) .input link .output q q(@x, 6 / (strlen(y) - 1)) :- link(@x, y)."
    )
    result = whence("simulate", "p.dl", "--updates", "u.jsonl", "--json")
    assert result.exit_code == 0
    assert result.stderr.count("p.dl:1: rule q#1: division by zero; nothing is derived there") == 1
    assert whence("simulate", "p.dl", "--updates", "u.jsonl", "--quiet").stderr == ""


def test_confined_programs_write_below_their_folder(whence: Whence) -> None:
    Path("p.dl").write_text(PROGRAM.replace(".output reach", '.output reach(filename="../reach.csv")'))
    assert "../reach.csv is not below out" in refused(whence, "-D", "out", "--confined")


PATHS = """.decl link(@a:symbol, b:symbol) .input link .output hops
.decl path(@a:symbol, b:symbol, hops:number)
path(@x, y, 1) :- link(@x, y). path(@x, y, n + 1) :- link(@x, z), path(@z, y, n).
hops(@x, y, m) :- path(@x, y, _), m = min n : { path(@x, y, n) }.
"""


@pytest.mark.parametrize("strategy", ["relative", "absorption"])
def test_aggregates_select_what_goes_on(whence: Whence, strategy: str) -> None:
    Path("p.dl").write_text(PATHS)
    simulated(whence, "--strategy", strategy, "--select", "path by a, b: min hops", "--timeout", "20")
    graph = nx.DiGraph([link for link in LINKS if link != LINKS[2]])
    cycles = {a: nx.shortest_path_length(graph, b, a) + 1 for a, b in graph.edges if nx.has_path(graph, b, a)}
    lengths = {(a, b, n) for a, found in nx.all_pairs_shortest_path_length(graph) for b, n in found.items() if n}
    expected = sorted(lengths | {(a, a, min(n for b, n in cycles.items() if a == b)) for a in cycles})
    assert Path("out/hops.csv").read_text().splitlines() == ["\t".join(map(str, row)) for row in expected]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--strategy", "support", "--select", "path by a, b: min hops"), "selects nothing"),
        (("--strategy", "absorption", "--select", "path"), "is not like path by src, dst: min hops"),
        (("--strategy", "absorption", "--select", "path by a: least hops"), "least is not an aggregate"),
        (("--strategy", "absorption", "--select", "path by a: min hop"), "path has no attribute hop"),
        (("--strategy", "absorption", "--select", "way by a: min hops"), "there is no relation way"),
        (("--strategy", "absorption", "--select", "path by b: min hops"), "by a too, which is where they live"),
    ],
)
def test_selections_that_cannot_be(whence: Whence, options: tuple[str, ...], said: str) -> None:
    Path("p.dl").write_text(PATHS)
    result = whence("simulate", "p.dl", "--updates", "u.jsonl", *options)
    assert result.exit_code in (1, 2)
    assert said in " ".join(result.stderr.replace("│", " ").split())
