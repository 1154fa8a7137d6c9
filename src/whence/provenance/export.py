"""Derivation graphs for other programs: Graphviz, SVG, a page of HTML, W3C PROV."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import pairwise
from json import dumps

from whence.lang.program import Program
from whence.provenance.graph import Derivation, DerivationGraph, Fact
from whence.provenance.layout import Node, lay_out, nodes_of
from whence.provenance.proofs import Proof
from whence.provenance.show import show_fact, show_rules

_FILLS = {"base": "#d9ead3", "derived": "#dce6f5", "cut": "#eeeeee", "firing": "#ffffff"}
_STROKES = {"base": "#4f8f3a", "derived": "#3a62a8", "cut": "#999999", "firing": "#888888"}
_NAMESPACE = "urn:whence:"


def graph_of_proof(proofs: Sequence[Proof]) -> DerivationGraph:
    """Only what the proofs use."""
    firings: dict[Fact, dict[Derivation, None]] = {}
    base: set[Fact] = set()
    for proof in proofs:
        for part in proof:
            if part.firing is None:
                base.add(part.fact)
            else:
                firings.setdefault(part.fact, {})[part.firing] = None
    return DerivationGraph(
        (proofs[0].fact,), {fact: tuple(each) for fact, each in reversed(firings.items())}, frozenset(base)
    )


def to_dot(graph: DerivationGraph, _program: Program) -> str:
    nodes = nodes_of(graph)
    names = {id(node): f"n{at}" for at, node in enumerate(nodes)}
    lines = ["digraph why {", '  node [fontname="sans-serif", fontsize=11, style=filled];']
    for node in nodes:
        shape = "ellipse" if node.kind == "firing" else "box"
        dashed = ', style="filled,dashed"' if node.kind == "cut" else ""
        look = f'fillcolor="{_FILLS[node.kind]}", color="{_STROKES[node.kind]}"{dashed}'
        lines.append(f"  {names[id(node)]} [label={dumps(node.label, ensure_ascii=False)}, shape={shape}, {look}];")
    lines += [f"  {names[id(upper)]} -> {names[id(lower)]};" for upper in nodes for lower in upper.below]
    return "\n".join([*lines, "}"])


def to_svg(graph: DerivationGraph, _program: Program) -> str:
    """Base facts are green, derived ones blue, firings white."""
    layout = lay_out(graph)
    right = layout.width
    layout = replace(layout, width=right + 16) if any(map(_goes_back, layout.edges)) else layout
    size = (
        f'width="{layout.width:.0f}" height="{layout.height:.0f}" viewBox="0 0 {layout.width:.0f} {layout.height:.0f}"'
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="DejaVu Sans Mono, monospace" font-size="12">',
        f'<rect width="{layout.width:.0f}" height="{layout.height:.0f}" fill="#ffffff"/>',
    ]
    parts += [_edge(edge, right) for edge in layout.edges]
    parts += [_box(node) for node in layout.nodes]
    return "\n".join([*parts, "</svg>"])


def _goes_back(edge: Sequence[Node]) -> bool:
    return edge[-1].layer <= edge[0].layer


def _edge(edge: Sequence[Node], side: float) -> str:
    upper, lower = edge[0], edge[-1]
    top, bottom = upper.y + upper.height / 2, lower.y - lower.height / 2
    if _goes_back(edge):  # round the side
        path = (
            f"M{upper.x:.1f} {top:.1f} C{upper.x:.1f} {top + 24:.1f} {side:.1f} {top + 24:.1f} {side:.1f} {upper.y:.1f} "
            f"L{side:.1f} {lower.y:.1f} C{side:.1f} {bottom - 24:.1f} {lower.x:.1f} {bottom - 24:.1f} {lower.x:.1f} {bottom:.1f}"
        )
    else:
        points = [(upper.x, top), *((bend.x, bend.y) for bend in edge[1:-1]), (lower.x, bottom)]
        # Edges leave and enter boxes vertically, and pass bends in the direction from the point before to the one behind.
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
    return f'<path d="{path}" fill="none" stroke="#999999"/>'


def _box(node: Node) -> str:
    left, top = node.x - node.width / 2, node.y - node.height / 2
    round_corner = node.height / 2 if node.kind == "firing" else 4
    dashed = ' stroke-dasharray="4 3"' if node.kind == "cut" else ""
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{node.width:.1f}" height="{node.height:.1f}" rx="{round_corner:g}" '
        f'fill="{_FILLS[node.kind]}" stroke="{_STROKES[node.kind]}"{dashed}/>'
        f'<text x="{node.x:.1f}" y="{node.y + 4:.1f}" text-anchor="middle">{escape(node.label)}</text>'
    )


def to_html(graph: DerivationGraph, program: Program) -> str:
    """One page with everything in it: the picture and the rules."""
    title = escape(f"Why {', '.join(show_fact(root) for root in graph.roots)}?")
    used = {firing.rule for firings in graph.derivations.values() for firing in firings}
    rules = escape("\n".join(show_rules(program, used)))
    cut = f"<p>Cut off at {escape(graph.cut.reason)}; dashed facts were not looked into.</p>" if graph.cut else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title>
<style>body {{ font-family: sans-serif; margin: 2em; }} .picture, pre {{ overflow: auto; }}</style></head>
<body>
<h1>{title}</h1>
<p>Base facts are green, derived facts blue. A rounded box is the firing of a rule, between what it made and what it used.</p>
{cut}
<div class="picture">
{to_svg(graph, program)}
</div>
<h2>Rules</h2>
<pre>{rules}</pre>
</body>
</html>"""


def to_prov(graph: DerivationGraph, program: Program) -> str:
    """W3C PROV as JSON: facts are entities, firings activities, rules the plans that they follow."""
    from prov.model import ProvDocument, ProvEntity  # noqa: PLC0415 - only this needs it, and it takes a while to import

    document = ProvDocument()
    document.add_namespace("whence", _NAMESPACE)
    entities = {
        fact: document.entity(f"whence:fact{at}", {"prov:label": show_fact(fact), "prov:type": _kind(fact, graph)})
        for at, fact in enumerate(sorted(graph.facts, key=repr))
    }
    engine = document.agent("whence:engine", {"prov:label": "Whence"})
    lines = {line.split()[0]: line for line in show_rules(program, [rule.name for rule in program.rules])}
    plans: dict[str, ProvEntity] = {}
    number = 0
    for fact, firings in graph.derivations.items():
        for firing in firings:
            number += 1
            label = {"prov:label": f"{firing.rule} made {show_fact(fact)}"}
            activity = document.activity(f"whence:firing{number}", other_attributes=label)
            if firing.rule not in plans:
                about = {"prov:type": "prov:Plan", "prov:label": lines.get(firing.rule, firing.rule)}
                plans[firing.rule] = document.entity(f"whence:rule{len(plans)}", about)
            document.wasGeneratedBy(entities[fact], activity)
            document.wasAssociatedWith(activity, engine, plans[firing.rule])
            for premise in dict.fromkeys(firing.premises):
                document.used(activity, entities[premise])
                document.wasDerivedFrom(entities[fact], entities[premise], activity)
    return str(document.serialize(format="json", indent=2))


def _kind(fact: Fact, graph: DerivationGraph) -> str:
    return "whence:BaseFact" if fact in graph.base else "whence:DerivedFact"


EXPORTS: Mapping[str, Callable[[DerivationGraph, Program], str]] = {
    "dot": to_dot,
    "svg": to_svg,
    "html": to_html,
    "prov": to_prov,
}
