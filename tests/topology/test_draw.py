"""The picture shows every node and link, and marks what a failure did."""

from __future__ import annotations

from itertools import combinations
from math import hypot
from xml.etree import ElementTree as ET

import pytest

from whence.topology import draw, transit_stub
from whence.topology.draw import CUT_OFF, DETOUR, FAILED, SIZE, TOP, _lay_out

SVG = "{http://www.w3.org/2000/svg}"
NETWORK = transit_stub(seed=1)


def _drawn(**marks: object) -> ET.Element:
    return ET.fromstring(draw(NETWORK, title="t", **marks))


def _links(picture: ET.Element) -> dict[str, ET.Element]:
    return {line[0].text.partition(":")[0]: line for line in picture.iter(f"{SVG}line") if len(line)}


def test_every_link_is_a_line_that_names_itself() -> None:
    assert sorted(_links(_drawn())) == sorted(str(link) for link in NETWORK.links)


def test_a_failed_link_stands_out() -> None:
    failed = NETWORK.links[6]
    lines = _links(_drawn(failed=[failed]))
    assert [name for name, line in lines.items() if line.get("stroke") == FAILED] == [str(failed)]


def test_a_cut_off_stub_and_detours_are_coloured() -> None:
    stub = NETWORK.stubs[2]
    picture = _drawn(cut_off=stub.nodes, detours={"t1": 0.2, "t2": 0.5, "t3": 1.0})
    fills = [circle.get("fill") for circle in picture[-2].iter(f"{SVG}circle")]
    assert fills.count(CUT_OFF) == len(stub.nodes)
    assert [fills.count(colour) for _, colour in DETOUR] == [1, 1, 1]


@pytest.mark.parametrize("seed", range(5))
def test_nodes_do_not_overlap_and_stay_inside(seed: int) -> None:
    places = _lay_out(transit_stub(seed=seed)).values()
    assert len(places) == 100
    assert all(hypot(a.x - b.x, a.y - b.y) > 24 for a, b in combinations(places, 2))
    assert all(30 < x < SIZE - 30 and 30 - TOP < y < SIZE - 30 for x, y in places)


def test_text_is_escaped() -> None:
    assert ET.fromstring(draw(NETWORK, title="a < b & c"))[0].text == "a < b & c"
