"""Where the nodes of a derivation graph go in a picture: facts and firings in alternating layers, the roots on top."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from unicodedata import category, east_asian_width

from whence.provenance.graph import Derivation, DerivationGraph, Fact
from whence.provenance.show import absences, printable, show_aggregate, show_fact

_CHARACTER = 7.3
_GAP = 26.0
_LAYER = 58.0
_HEIGHT = 28.0
_SWEEPS = 8  # that order the layers
_SETTLING = 24  # that only move nodes
_LONG_TEXT = re.compile(r'"((?:[^"\\]|\\.){22})(?:[^"\\]|\\.){3,}"')
_LONGEST = 72


@dataclass(eq=False)
class Node:
    """`kind` is base, derived, cut (not looked into), firing, or bend: where an edge passes a layer. Places are centres."""

    label: str
    kind: str
    fact: Fact | None = None
    below: list[Node] = field(default_factory=list)
    above: list[Node] = field(default_factory=list)
    layer: int = 0
    x: float = 0.0
    y: float = 0.0

    @cached_property
    def short(self) -> str:
        """The label without what would make a box too wide: long texts lose their ends."""
        short = _LONG_TEXT.sub(r'"\1…"', self.label)
        return short if len(short) <= _LONGEST else short[: _LONGEST - 1] + "…"

    @cached_property
    def width(self) -> float:
        return max(34.0, _CHARACTER * _columns(self.short) + 18.0) if self.kind != "bend" else 0.0

    @property
    def height(self) -> float:
        return _HEIGHT if self.kind != "firing" else 20.0


@dataclass(frozen=True)
class Layout:
    """`edges` go from node to node, over bends; those that close a cycle go upwards."""

    nodes: Sequence[Node]
    edges: Sequence[Sequence[Node]]
    width: float
    height: float


def nodes_of(graph: DerivationGraph) -> list[Node]:
    """A node for each fact and each firing, the roots first."""
    cut = graph.cut.facts if graph.cut else frozenset()
    facts: dict[Fact, Node] = {}
    nodes: list[Node] = []

    def node(fact: Fact) -> Node:
        if fact not in facts:
            kind = "cut" if fact in cut else "base" if fact in graph.base else "derived"
            facts[fact] = Node(printable(show_fact(fact)), kind, fact)
            nodes.append(facts[fact])
        return facts[fact]

    for root in graph.roots:
        node(root)
    for fact, firings in graph.derivations.items():
        for firing in firings:
            made = Node(printable(_firing_label(firing)), "firing")
            nodes.append(made)
            _connect(node(fact), made)
            for premise in dict.fromkeys(firing.premises):
                _connect(made, node(premise))
    return nodes


def _columns(text: str) -> int:
    """How many characters wide a text is where all are of one width, but for those that take two or none."""
    widths = {"W": 2, "F": 2}
    return sum(0 if category(each) in ("Mn", "Me", "Cf") else widths.get(east_asian_width(each), 1) for each in text)


def _firing_label(firing: Derivation) -> str:
    return ", ".join([firing.rule, *absences(firing), *map(show_aggregate, firing.aggregates)])


def _connect(upper: Node, lower: Node) -> None:
    upper.below.append(lower)
    lower.above.append(upper)


def lay_out(graph: DerivationGraph) -> Layout:
    nodes = nodes_of(graph)
    _assign_layers(nodes)
    edges = [_bent(upper, lower) for upper in nodes for lower in upper.below]
    placed = [*nodes, *(bend for edge in edges for bend in edge[1:-1])]
    layers: list[list[Node]] = [[] for _ in range(1 + max(node.layer for node in nodes))]
    for node in placed:
        layers[node.layer].append(node)
        node.above, node.below = [], []
    for upper, lower in (pair for edge in edges for pair in pairwise(edge)):
        _connect(upper, lower)
    for sweep in range(_SWEEPS + _SETTLING):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            if sweep < _SWEEPS:
                places = {id(node): _middle(node.above if down else node.below, node) for node in layer}
                layer.sort(key=lambda node, places=places: places[id(node)])  # type: ignore[misc]
            _spread(layer)
    left = min(node.x - node.width / 2 for node in placed) - _GAP / 2
    for node in placed:
        node.x -= left
        node.y = _GAP + node.layer * _LAYER
    width = max(node.x + node.width / 2 for node in placed) + _GAP / 2
    return Layout(nodes, edges, width, 2 * _GAP + (len(layers) - 1) * _LAYER)


def _bent(upper: Node, lower: Node) -> list[Node]:
    """An edge, with a bend in each layer that it passes."""
    bends = [Node("", "bend", layer=layer) for layer in range(upper.layer + 1, lower.layer)]
    return [upper, *bends, lower]


def _middle(neighbours: Iterable[Node], node: Node) -> float:
    places = [each.x for each in neighbours]
    return sum(places) / len(places) if places else node.x


def _spread(layer: list[Node]) -> None:
    """Moves each node of a layer to the middle of its neighbours. Nodes that would overlap stand side by side, in the middle
    of where they would be.
    """
    blocks: list[list[float]] = []  # of nodes side by side: how many, and the sum of where the first would be
    offset, offsets = 0.0, []
    for at, node in enumerate(layer):
        offset += (layer[at - 1].width + node.width) / 2 + _GAP if at else 0.0
        offsets.append(offset)
        blocks.append([1.0, _middle([*node.above, *node.below], node) - offset])
        while len(blocks) > 1 and blocks[-2][1] / blocks[-2][0] > blocks[-1][1] / blocks[-1][0]:
            count, total = blocks.pop()
            blocks[-1][0] += count
            blocks[-1][1] += total
    starts = [total / count for count, total in blocks for _ in range(int(count))]
    for node, start, offset in zip(layer, starts, offsets, strict=True):
        node.x = start + offset


def _assign_layers(nodes: list[Node]) -> None:
    """Each node below all that it is below of, edges that close a cycle left aside."""
    order: list[Node] = []
    state: dict[int, int] = {}
    closing: set[tuple[int, int]] = set()
    for start in nodes:
        stack = [(start, iter(start.below))] if id(start) not in state else []
        state.setdefault(id(start), 1)
        while stack:
            node, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                state[id(node)] = 2
                order.append(node)
                stack.pop()
            elif id(following) not in state:
                state[id(following)] = 1
                stack.append((following, iter(following.below)))
            elif state[id(following)] == 1:
                closing.add((id(node), id(following)))
    for node in reversed(order):
        for lower in node.below:
            if (id(node), id(lower)) not in closing:
                lower.layer = max(lower.layer, node.layer + 1)
