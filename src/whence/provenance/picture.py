"""Derivation graphs as pictures in SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

from whence.lang.program import Program
from whence.provenance.graph import DerivationGraph, Fact
from whence.provenance.layout import Node, lay_out

FILLS = {"base": "#d9ead3", "derived": "#dce6f5", "cut": "#eeeeee", "firing": "#ffffff"}
STROKES = {"base": "#4f8f3a", "derived": "#3a62a8", "cut": "#999999", "firing": "#888888"}
_LANE = 7.0  # between edges that go back up, side by side
_ARC = 12  # how far these reach beyond the top and the bottom


def to_svg(graph: DerivationGraph, _program: Program) -> str:
    """Base facts are green, derived ones blue, firings white."""
    return draw(graph, {})


def draw(graph: DerivationGraph, links: Mapping[Fact, str]) -> str:
    """The picture, with links from facts to where they lead. Boxes have numbers, edges those of the boxes that they join."""
    layout = lay_out(graph)
    numbers = {id(node): at for at, node in enumerate(layout.nodes)}
    back = sorted((edge for edge in layout.edges if _goes_back(edge)), key=lambda edge: edge[0].layer - edge[-1].layer)
    sides = {id(edge): layout.width + _LANE * lane for lane, edge in enumerate(back)}
    width, above = (layout.width + _LANE * len(back) + 9, _ARC) if back else (layout.width, 0)
    height = layout.height + 2 * above
    size = f'width="{width:.0f}" height="{height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 {-above} {width:.0f} {height:.0f}" '
        'font-family="DejaVu Sans Mono, monospace" font-size="12">',
        f'<rect class="ground" y="{-above}" {size} fill="#ffffff"/>',
    ]
    for edge in layout.edges:
        path = _round_the_side(edge, sides[id(edge)]) if id(edge) in sides else _down(edge)
        ends = f"{numbers[id(edge[0])]} {numbers[id(edge[-1])]}"
        parts.append(f'<path data-ends="{ends}" d="{path}" fill="none" stroke="#999999"/>')
    for node in layout.nodes:
        box = _box(node, numbers[id(node)])
        link = links.get(node.fact) if node.fact is not None else None
        parts.append(box if link is None else f'<a href="{escape(link)}">{box}</a>')
    return "\n".join([*parts, "</svg>"])


def _goes_back(edge: Sequence[Node]) -> bool:
    return edge[-1].layer <= edge[0].layer


def _round_the_side(edge: Sequence[Node], side: float) -> str:
    upper, lower = edge[0], edge[-1]
    top, bottom = upper.y + upper.height / 2, lower.y - lower.height / 2
    return (
        f"M{upper.x:.1f} {top:.1f} C{upper.x:.1f} {top + 24:.1f} {side:.1f} {top + 24:.1f} {side:.1f} {upper.y:.1f} "
        f"L{side:.1f} {lower.y:.1f} C{side:.1f} {bottom - 24:.1f} {lower.x:.1f} {bottom - 24:.1f} {lower.x:.1f} {bottom:.1f}"
    )


def _down(edge: Sequence[Node]) -> str:
    """Edges leave and enter boxes vertically, and pass bends in the direction from the point before to the one behind."""
    upper, lower = edge[0], edge[-1]
    top, bottom = upper.y + upper.height / 2, lower.y - lower.height / 2
    points = [(upper.x, top), *((bend.x, bend.y) for bend in edge[1:-1]), (lower.x, bottom)]
    slants = [
        0.0,
        *((c - a) / (d - b) for (a, b), _, (c, d) in zip(points, points[1:], points[2:], strict=False)),
        0.0,
    ]
    path = f"M{upper.x:.1f} {top:.1f}"
    for ((x, y), slant), ((to_x, to_y), to_slant) in pairwise(zip(points, slants, strict=True)):
        reach = (to_y - y) / 2
        first, second = x + slant * reach, to_x - to_slant * reach
        path += f" C{first:.1f} {y + reach:.1f} {second:.1f} {to_y - reach:.1f} {to_x:.1f} {to_y:.1f}"
    return path


def _box(node: Node, number: int) -> str:
    left, top = node.x - node.width / 2, node.y - node.height / 2
    round_corner = node.height / 2 if node.kind == "firing" else 4
    dashed = ' stroke-dasharray="4 3"' if node.kind == "cut" else ""
    title = f"<title>{escape(node.label)}</title>" if node.short != node.label else ""
    return (
        f'<g class="{node.kind}" data-node="{number}">{title}'
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{node.width:.1f}" height="{node.height:.1f}" rx="{round_corner:g}" '
        f'fill="{FILLS[node.kind]}" stroke="{STROKES[node.kind]}"{dashed}/>'
        f'<text x="{node.x:.1f}" y="{node.y + 4:.1f}" text-anchor="middle">{escape(node.short)}</text></g>'
    )
