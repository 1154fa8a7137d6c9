"""Graphs for other programs: complete, well formed, and read back by what they are for."""

from __future__ import annotations

import json
import re
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from prov.model import ProvActivity, ProvDocument, ProvEntity

from whence import Session, load
from whence.provenance import Fact, derivation_graph
from whence.provenance.export import to_dot, to_prov
from whence.provenance.layout import lay_out
from whence.provenance.page import to_html
from whence.provenance.picture import to_svg

PROGRAM = load(
    ".decl link(x:symbol, y:symbol) .input link\nreach(x, y) :- link(x, y).\nreach(x, z) :- reach(x, y), link(y, z)."
    " .output reach"
)
LINKS = [("a", "b"), ("b", "c"), ("c", "a"), ("c", '<"&>'), ("a", "c")]
ROOT = Fact("reach", ("a", '<"&>'))


@pytest.fixture(scope="module")
def graph():
    return derivation_graph(Session(PROGRAM, facts={"link": LINKS}), [ROOT])


def firings(graph) -> int:
    return sum(len(each) for each in graph.derivations.values())


def test_svg_has_a_box_for_every_fact_and_firing(graph) -> None:
    tree = ET.fromstring(to_svg(graph, PROGRAM))
    texts = [each.text for each in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert len(texts) == len(graph.facts) + firings(graph)
    assert 'reach("a", "<\\"&>")' in texts


def test_nothing_overlaps_in_a_layout(graph) -> None:
    for one, other in combinations(lay_out(graph).nodes, 2):
        apart = abs(one.x - other.x) >= (one.width + other.width) / 2
        assert apart or abs(one.y - other.y) >= (one.height + other.height) / 2


def test_edges_pass_between_boxes(graph) -> None:
    layout = lay_out(graph)
    bends = [bend for edge in layout.edges for bend in edge[1:-1]]
    assert bends, "an edge passes a layer"
    for bend in bends:
        for node in layout.nodes:
            assert node.y != bend.y or abs(node.x - bend.x) > node.width / 2


def test_a_chain_hangs_straight_down() -> None:
    session = Session(load(".decl e(x:number) .input e\na(x) :- e(x). b(x) :- a(x). .output b"), facts={"e": [(1,)]})
    assert len({round(node.x, 3) for node in lay_out(derivation_graph(session, [Fact("b", (1,))])).nodes}) == 1


def test_dot_has_an_edge_for_every_use(graph) -> None:
    text = to_dot(graph, PROGRAM)
    uses = sum(1 + len(set(each.premises)) for listed in graph.derivations.values() for each in listed)
    assert len(re.findall(r"^  n\d+ -> n\d+;$", text, re.MULTILINE)) == uses


def test_what_is_long_in_a_picture_is_cut_and_told_in_full() -> None:
    text = "東京" + 'a "quoted" tale ' * 20
    graph = derivation_graph(Session(PROGRAM, facts={"link": [("a", text)]}), [Fact("reach", ("a", text))])
    tree = ET.fromstring(to_svg(graph, PROGRAM))
    name = "{http://www.w3.org/2000/svg}"
    shown = [each.text for each in tree.iter(f"{name}text")]
    assert shown == [
        'reach("a", "東京a \\"quoted\\" tale a \\"q…")',
        "reach#1",
        'link("a", "東京a \\"quoted\\" tale a \\"q…")',
    ]
    escaped = text.replace('"', '\\"')
    assert [each.text for each in tree.iter(f"{name}title")] == [f'reach("a", "{escaped}")', f'link("a", "{escaped}")']
    assert float(tree.get("width", "0")) < 600


def test_edges_that_go_back_have_lanes_of_their_own() -> None:
    session = Session(PROGRAM, facts={"link": [(one, other) for one in "abc" for other in "abc"]})
    graph = derivation_graph(session, [Fact("reach", ("a", "a"))])
    tree = ET.fromstring(to_svg(graph, PROGRAM))
    paths = [each.get("d", "") for each in tree.iter("{http://www.w3.org/2000/svg}path")]
    sides = [re.search(r"L([\d.]+) ", path) for path in paths]
    lanes = [float(side[1]) for side in sides if side]
    assert len(lanes) > 1
    assert len(set(lanes)) == len(lanes)
    assert max(lanes) < float(tree.get("width", "0"))


def test_prov_reads_back(graph) -> None:
    document = ProvDocument.deserialize(content=to_prov(graph, PROGRAM), format="json")
    assert len(list(document.get_records(ProvActivity))) == firings(graph)
    labels = {str(each.label) for each in document.get_records(ProvEntity)}
    assert {'link("a", "b")', 'reach("a", "<\\"&>")'} <= labels
    derived = json.loads(to_prov(graph, PROGRAM))["wasDerivedFrom"]
    assert len(derived) == sum(len(set(each.premises)) for listed in graph.derivations.values() for each in listed)


@pytest.mark.parametrize("odd", ["\x00", "\x07", "\x1b[31m", "\x85", "\ufffe", "\ud800", "\x7f"])
def test_pictures_and_pages_hold_any_text(odd: str) -> None:
    fact = Fact("reach", ("a", f"b{odd}"))
    graph = derivation_graph(Session(PROGRAM, facts={"link": [fact.tuple]}), [fact])
    for made in (to_svg(graph, PROGRAM), to_html(graph, PROGRAM), to_dot(graph, PROGRAM)):
        assert odd not in made
        made.encode()
    texts = [each.text for each in ET.fromstring(to_svg(graph, PROGRAM)).iter("{http://www.w3.org/2000/svg}text")]
    assert f'reach("a", "b\\u{ord(odd[0]):04x}{odd[1:]}")' in texts
