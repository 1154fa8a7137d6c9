"""A transit-stub network as an SVG picture: the core in the middle, the stubs in a ring around it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from math import cos, hypot, log2, pi, sin
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from whence.topology.links import Link
from whence.topology.transit import INSIDE, Stub, TransitStub

SIZE = 1060
CENTRE = SIZE / 2
TOP = 90  # the height of the title
FONT = "Helvetica, Arial, sans-serif"
CORE_RADIUS, RING_RADIUS, STUB_RADIUS = 105, 380, 72

PAPER, INK, QUIET, LINE = "#ffffff", "#1f2933", "#7b8794", "#b8c2cc"
CORE_FILL, NODE_FILL, STUB_FILL = "#243b53", "#829ab1", "#f5f7fa"
FAILED, CUT_OFF, CUT_OFF_GROUND = "#d64545", "#d64545", "#fdecec"
DETOUR = (("few", "#f7d070"), ("many", "#f0a330"), ("most", "#cb6e17"))


class Point(NamedTuple):
    x: float
    y: float


def draw(
    network: TransitStub,
    *,
    title: str,
    subtitle: str = "",
    failed: Collection[Link] = (),
    down: Collection[Link] = (),
    cut_off: Collection[str] = (),
    detours: Mapping[str, float] | None = None,
) -> str:
    """The network, with what a failure did to it marked.

    `failed` are the links it is about and `down` those that were out of order already; `cut_off` are the nodes that lost the
    rest of the network, and `detours` says for others which share of their routes, from 0 to 1, now takes a worse way.
    """
    places = _lay_out(network)
    picture = Element("svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {SIZE} {SIZE + TOP + 60}", role="img")
    SubElement(picture, "title").text = title
    _add(picture, "rect", width=SIZE, height=SIZE + TOP + 60, fill=PAPER)
    _text(picture, Point(40, 52), title, size=28, weight="bold")
    _text(picture, Point(40, 82), subtitle, size=17, fill=QUIET)
    body = _add(picture, "g", transform=f"translate(0 {TOP})", font_family=FONT)
    for stub in network.stubs:
        _draw_stub_ground(body, stub, places, lost=set(stub.nodes) <= set(cut_off))
    for link in network.links:
        if link not in failed and link not in down:
            _line(body, link, places, stroke=_colour(link, network), stroke_width=_width(link))
    for link in down:
        _line(body, link, places, stroke=LINE, stroke_width=_width(link), stroke_dasharray="3 5")
    for link in failed:
        _draw_failure(body, link, places)
    shares = detours or {}
    for node, place in places.items():
        _draw_node(body, network, node, place, cut_off=node in cut_off, share=shares.get(node, 0.0))
    _draw_legend(_add(picture, "g", transform=f"translate(40 {SIZE + TOP + 22})", font_family=FONT))
    indent(picture)
    return tostring(picture, encoding="unicode") + "\n"


def _lay_out(network: TransitStub) -> dict[str, Point]:
    """Transit nodes on a circle, each facing the stubs that hang on it; the nodes of a stub on a circle, its gateway inwards."""
    places: dict[str, Point] = {}
    per_transit = len(network.stubs) / len(network.transit)
    neighbours: dict[str, set[str]] = {node: set() for node in network.nodes}
    for link in network.links:
        neighbours[link.a].add(link.b)
        neighbours[link.b].add(link.a)
    middle = Point(CENTRE, CENTRE)
    for at, node in enumerate(network.transit):
        places[node] = _on_circle(middle, CORE_RADIUS, ((at + 0.5) * per_transit - 0.5) / len(network.stubs))
    for at, stub in enumerate(network.stubs):
        turn = at / len(network.stubs)
        around = _on_circle(middle, RING_RADIUS, turn)
        for step, node in enumerate(_order_around(stub, neighbours)):
            places[node] = _on_circle(around, STUB_RADIUS, turn + 0.5 + step / len(stub.nodes))
    return places


def _on_circle(centre: Point, radius: float, turn: float) -> Point:
    """A point on a circle, `turn` of the way around, clockwise from the top left."""
    angle = 2 * pi * (turn - 0.375)
    return Point(centre.x + radius * cos(angle), centre.y + radius * sin(angle))


def _order_around(stub: Stub, neighbours: Mapping[str, Collection[str]]) -> list[str]:
    """The gateway, then the others so that linked nodes are near each other: pairs are swapped while that shortens links."""
    order = [stub.gateway, *(node for node in stub.nodes if node != stub.gateway)]
    shortest = _length(order, neighbours)
    improved = True
    while improved:
        improved = False
        for one, other in combinations(range(1, len(order)), 2):
            order[one], order[other] = order[other], order[one]
            length = _length(order, neighbours)
            if length < shortest - 1e-9:
                shortest, improved = length, True
            else:
                order[one], order[other] = order[other], order[one]
    return order


def _length(order: Sequence[str], neighbours: Mapping[str, Collection[str]]) -> float:
    count = len(order)
    return sum(
        sin(pi * (later - earlier) / count)
        for earlier, later in combinations(range(count), 2)
        if order[later] in neighbours[order[earlier]]
    )


def _draw_stub_ground(body: Element, stub: Stub, places: Mapping[str, Point], *, lost: bool) -> None:
    x = sum(places[node].x for node in stub.nodes) / len(stub.nodes)
    y = sum(places[node].y for node in stub.nodes) / len(stub.nodes)
    ground = {"fill": CUT_OFF_GROUND, "stroke": CUT_OFF} if lost else {"fill": STUB_FILL, "stroke": "none"}
    _add(body, "circle", cx=x, cy=y, r=STUB_RADIUS + 22, stroke_width=1.5, **ground)
    away = hypot(x - CENTRE, y - CENTRE)
    reach = (away + STUB_RADIUS + 42) / away
    name = stub.nodes[0].rstrip("0123456789")
    place = Point(CENTRE + (x - CENTRE) * reach, CENTRE + (y - CENTRE) * reach + 5)
    _text(body, place, name, size=15, fill=CUT_OFF if lost else QUIET, anchor="middle", weight="bold")


def _draw_failure(body: Element, link: Link, places: Mapping[str, Point]) -> None:
    _line(body, link, places, stroke=FAILED, stroke_width=4, stroke_dasharray="9 6")
    a, b = places[link.a], places[link.b]
    x, y = (a.x + b.x) / 2, (a.y + b.y) / 2
    _add(body, "circle", cx=x, cy=y, r=11, fill=PAPER, stroke=FAILED, stroke_width=2)
    for tilt in (-1, 1):
        _add(body, "line", x1=x - 5, y1=y - 5 * tilt, x2=x + 5, y2=y + 5 * tilt, stroke=FAILED, stroke_width=3)


def _draw_node(body: Element, network: TransitStub, node: str, place: Point, *, cut_off: bool, share: float) -> None:
    core = node in network.transit
    fill = CUT_OFF if cut_off else _detour_colour(share) or (CORE_FILL if core else NODE_FILL)
    ink = INK if not cut_off and share > 0 else PAPER
    radius = 20 if core else 11
    _add(body, "circle", cx=place.x, cy=place.y, r=radius, fill=fill, stroke=PAPER, stroke_width=2)
    label = node if core else node[len(node.rstrip("0123456789")) :]
    _text(body, Point(place.x, place.y + 4), label, size=15 if core else 11, fill=ink, anchor="middle", weight="bold")


def _detour_colour(share: float) -> str | None:
    if share <= 0:
        return None
    return DETOUR[min(int(share * len(DETOUR)), len(DETOUR) - 1)][1]


def _draw_legend(legend: Element) -> None:
    x = 0
    for label, stroke, dashes in (("failed link", FAILED, "9 6"), ("down before", LINE, "3 5")):
        _add(legend, "line", x1=x, y1=0, x2=x + 30, y2=0, stroke=stroke, stroke_width=4, stroke_dasharray=dashes)
        _text(legend, Point(x + 40, 5), label, size=14)
        x += 70 + round(7.6 * len(label))
    for label, fill in (("cut off", CUT_OFF), *((f"{share} routes worse", colour) for share, colour in DETOUR)):
        _add(legend, "circle", cx=x + 10, cy=0, r=9, fill=fill)
        _text(legend, Point(x + 27, 5), label, size=14)
        x += 45 + round(7.6 * len(label))


def _colour(link: Link, network: TransitStub) -> str:
    return CORE_FILL if link.a in network.transit and link.b in network.transit else LINE


def _width(link: Link) -> float:
    """Thicker for more bandwidth, by the same amount for each doubling."""
    return 1 + 0.5 * log2(max(link.mbps / INSIDE.mbps, 1))


def _line(body: Element, link: Link, places: Mapping[str, Point], **style: object) -> None:
    a, b = places[link.a], places[link.b]
    line = _add(body, "line", x1=a.x, y1=a.y, x2=b.x, y2=b.y, **style)
    SubElement(line, "title").text = f"{link}: {link.ms} ms, {link.mbps} Mbit/s"


def _text(
    body: Element, place: Point, text: str, *, size: int, fill: str = INK, anchor: str = "start", weight: str = "normal"
) -> None:
    element = _add(
        body,
        "text",
        x=place.x,
        y=place.y,
        font_family=FONT,
        font_size=size,
        font_weight=weight,
        fill=fill,
        text_anchor=anchor,
    )
    element.text = text


def _add(parent: Element, tag: str, **attributes: object) -> Element:
    shown = {
        name.replace("_", "-"): f"{value:.1f}" if isinstance(value, float) else str(value)
        for name, value in attributes.items()
    }
    return SubElement(parent, tag, shown)
