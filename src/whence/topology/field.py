"""A field: where nodes stand and who hears whom."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import dist
from zlib import crc32

from whence.lang.types import Value
from whence.topology.links import Place, Topology
from whence.topology.shapes import grid_network, radio_field

_EXACT = 600  # up to so many nodes the longest way is looked for, beyond that it is bounded


class FieldError(ValueError):
    """A field that no program can run on. `hint` says what to do."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint


@dataclass(frozen=True)
class Field:
    """Nodes with their places, in metres, and their neighbours. `shape` are the rows and columns of a grid.

    `sensing` is how far from its nearest node, across and along, something may be and still be sensed.

    >>> field = Field.grid(3, 4)
    >>> field.shape, field.neighbours["n0"], field.route("n0", "n6")
    ((3, 4), ('n1', 'n4'), ['n1', 'n2', 'n6'])
    """

    places: Mapping[Value, Place]
    neighbours: Mapping[Value, tuple[Value, ...]]
    sensing: float
    shape: tuple[int, int] | None = None
    _towards: dict[Value, Mapping[Value, Value]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def grid(
        cls, rows: int, columns: int, *, spacing: float = 1.0, named: Callable[[int], Value] | None = None
    ) -> Field:
        """Each node hears those beside, above and below it. n0 is at (0, 0), and the first row comes first."""
        links = [(link.a, link.b) for link in grid_network(rows, columns, seed=0).links]
        places = {f"n{at}": (at % columns * spacing, at // columns * spacing) for at in range(rows * columns)}
        return _named(cls._of(places, links, spacing / 2, (rows, columns)), named)

    @classmethod
    def random(
        cls, nodes: int, *, side: float, radius: float, seed: int, named: Callable[[int], Value] | None = None
    ) -> Field:
        """Nodes at random places of a square, which hear each other up to a radius. Raises `FieldError` if some reach nobody."""
        made = radio_field(nodes, side=side, radius=radius, seed=seed)
        found = cls._of(made.places, [(link.a, link.b) for link in made.links], _covering(made.places), None)
        return _named(found, named)

    @classmethod
    def of(cls, topology: Topology, *, named: Callable[[int], Value] | None = None) -> Field:
        """The field of a topology. Nodes without places are laid out by how many hops they are apart."""
        links = [(link.a, link.b) for link in topology.links]
        places = dict(topology.places)
        missing = [node for node in topology.nodes if node not in places]
        if missing and places:
            raise FieldError(f"node {missing[0]} has no place, and others have one", "give all nodes x and y, or none")
        if missing:
            places = _layout(cls._of(dict.fromkeys(topology.nodes, (0.0, 0.0)), links, 0.0, None))
        return _named(cls._of(places, links, _covering(places), None), named)

    @classmethod
    def _of(
        cls,
        places: Mapping[str, Place],
        links: Iterable[tuple[str, str]],
        sensing: float,
        shape: tuple[int, int] | None,
    ) -> Field:
        heard: dict[Value, list[Value]] = {node: [] for node in places}
        for a, b in links:
            heard[a].append(b)
            heard[b].append(a)
        stands: dict[Value, Place] = dict(places.items())
        found = cls(stands, {node: tuple(each) for node, each in heard.items()}, sensing, shape)
        first = next(iter(places), None)
        if first is None:
            raise FieldError("a field has a node, at least")
        reached = found.distances(first)
        apart = [node for node in places if node not in reached]
        if apart:
            raise FieldError(
                f"{len(apart)} of {len(places)} nodes do not reach {first}, {apart[0]} among them",
                "nodes that do not reach each other are two fields: raise the radius, or simulate each by itself",
            )
        return found

    @cached_property
    def nodes(self) -> list[Value]:
        return list(self.places)

    @cached_property
    def numbers(self) -> Mapping[Value, int]:
        """Nodes by their place in the list, which orders what happens at the same time."""
        return {node: at for at, node in enumerate(self.places)}

    @cached_property
    def longest(self) -> int:
        """No two nodes are more hops apart."""
        if self.shape is not None:
            return sum(self.shape) - 2
        if len(self.places) <= _EXACT:
            return max(max(self.distances(node).values()) for node in self.places)
        return 2 * max(self.distances(self.centre).values())

    @cached_property
    def centre(self) -> Value:
        """The node that is nearest to the middle of all."""
        middle = tuple(sum(axis) / len(self.places) for axis in zip(*self.places.values(), strict=True))
        return min(self.places, key=lambda node: dist(self.places[node], middle))

    def distances(self, node: Value) -> dict[Value, int]:
        """How many hops others are away."""
        found = {node: 0}
        waiting = deque([node])
        while waiting:
            here = waiting.popleft()
            for other in self.neighbours[here]:
                if other not in found:
                    found[other] = found[here] + 1
                    waiting.append(other)
        return found

    def hops(self, source: Value, target: Value) -> int:
        """How far apart two nodes are."""
        if self.shape is not None:
            (row, column), (other_row, other_column) = (
                divmod(self.numbers[each], self.shape[1]) for each in (source, target)
            )
            return abs(row - other_row) + abs(column - other_column)
        if target not in self._away:
            self._away[target] = self.distances(target)
        return self._away[target][source]

    @cached_property
    def _away(self) -> dict[Value, dict[Value, int]]:
        return {}

    def _next_on_grid(self, source: Value, target: Value, width: int) -> Value:
        """Along the row first, then along the column."""
        at, to = self.numbers[source], self.numbers[target]
        across = to % width - at % width
        step = (1 if across > 0 else -1) if across else (width if to > at else -width if to < at else 0)
        return self.nodes[at + step]

    def next_hop(self, source: Value, target: Value) -> Value:
        if self.shape is not None:
            return self._next_on_grid(source, target, self.shape[1])
        if target not in self._towards:
            way: dict[Value, Value] = {target: target}
            waiting = deque([target])
            while waiting:
                here = waiting.popleft()
                for other in self.neighbours[here]:
                    if other not in way:
                        way[other] = here
                        waiting.append(other)
            self._towards[target] = way
        return self._towards[target][source]

    def route(self, source: Value, target: Value) -> list[Value]:
        """The nodes on a shortest way, without the first."""
        found = []
        while source != target:
            source = self.next_hop(source, target)
            found.append(source)
        return found

    def nearest(self, place: tuple[float, float]) -> Value:
        return self._nearest(place)

    @cached_property
    def _nearest(self) -> Callable[[tuple[float, float]], Value]:
        known: dict[tuple[float, float], Value] = {}

        def nearest(place: tuple[float, float]) -> Value:
            if place not in known:
                known[place] = min(self.places, key=lambda node: dist(self.places[node], place))
            return known[place]

        return nearest

    def hashed(self, values: Iterable[Value]) -> Value:
        """A node for some values, the same in whatever order they come."""
        text = "\0".join(sorted(map(repr, values)))
        return self.nodes[crc32(text.encode(errors="surrogatepass")) % len(self.places)]


def _named(found: Field, named: Callable[[int], Value] | None) -> Field:
    """The field with other names: of each node, by its number."""
    if named is None:
        return found
    names = {node: named(at) for at, node in enumerate(found.places)}
    return Field(
        {names[node]: place for node, place in found.places.items()},
        {names[node]: tuple(names[each] for each in heard) for node, heard in found.neighbours.items()},
        found.sensing,
        found.shape,
    )


def _covering(places: Mapping[str, Place]) -> float:
    """No place between the outermost nodes is farther from its nearest node."""
    (left, right), (bottom, top) = ((min(axis), max(axis)) for axis in zip(*places.values(), strict=True))
    steps = 40
    width, height = (right - left) / steps, (top - bottom) / steps
    spots = [(left + a * width, bottom + b * height) for a in range(steps + 1) for b in range(steps + 1)]
    return (
        max(min(dist(spot, place) for place in places.values()) for spot in spots) + dist((0, 0), (width, height)) / 2
    )


def _layout(found: Field) -> dict[str, Place]:
    """Places by hops: across from a node at one end to the one farthest from it, and up along what is far from both."""
    ends = []
    start = next(iter(found.places))
    for _ in range(2):
        away = found.distances(start)
        start = max(away, key=lambda node: away[node])
        ends.append(start)
    left, right = (found.distances(end) for end in ends)
    third = max(found.places, key=lambda node: min(left[node], right[node]))
    up = found.distances(third)
    fourth = max(found.places, key=lambda node: (up[node], -abs(left[node] - right[node])))
    down = found.distances(fourth)
    return {
        str(node): ((left[node] - right[node]) / 2 + at * 1e-6, (up[node] - down[node]) / 2 + at * 1e-6)
        for at, node in enumerate(found.places)
    }
