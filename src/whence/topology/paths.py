"""Rows and columns of a field: ways on which tuples are stored, and ways on which they look for partners.

Every row meets every column at a node, `crossing`. On a grid they are its rows and columns. Elsewhere nodes are dealt to as many
strips as columns, and a strip's way goes from its first node to its last one, rather through the strip than around it. Two ways
may pass over each other without a node in common: the column then makes an excursion to the row, there and back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf, isqrt

from whence.lang.types import Value
from whence.topology.field import Field
from whence.topology.links import Place

Way = tuple[Value, ...]


@dataclass(frozen=True)
class Bands:
    """The strips of one direction: the nodes of each, and the coordinates at which it begins and ends."""

    of: dict[Value, int]
    begins: tuple[float, ...]
    ends: tuple[float, ...]

    def within(self, low: float, high: float) -> range:
        """The strips that something between two coordinates may be in."""
        hit = [at for at in range(len(self.begins)) if self.begins[at] <= high and self.ends[at] >= low]
        return range(hit[0], hit[-1] + 1) if hit else range(0)


@dataclass(frozen=True)
class Paths:
    field: Field
    rows: tuple[Way, ...]
    columns: tuple[Way, ...]
    row_bands: Bands
    column_bands: Bands
    crossing: dict[tuple[int, int], Value]  # of a row and a column

    def storage(self, node: Value, reach: float = inf, spot: Place | None = None) -> tuple[Way, tuple[Way, Way]]:
        """Where a tuple of a node is stored: on the way to its row, and from there to both sides.

        With a reach, only as far as the columns of nodes that are at most so far away, from the node or a spot beside it.
        """
        x, _ = spot or self.field.places[node]
        row = self.row_bands.of[node]
        wanted = self.column_bands.within(x - reach, x + reach)
        first, last = _span(self.rows[row], [self.crossing[row, column] for column in wanted])
        segment = self.rows[row][first : last + 1]
        fork = self._nearest(node, segment)
        at = segment.index(fork)
        return tuple(self.field.route(node, fork)), (segment[at + 1 :], tuple(reversed(segment[:at])))

    def join(self, node: Value, reach: float = inf, spot: Place | None = None) -> tuple[Way, Way]:
        """How a tuple looks for partners: the way to the nearer end of its column, and the way along it."""
        _, y = spot or self.field.places[node]
        column = self.column_bands.of[node]
        wanted = self.row_bands.within(y - reach, y + reach)
        way = self.columns[column]
        first, last = _span(way, [self.crossing[row, column] for row in wanted])
        segment = way[first : last + 1]
        if self.field.hops(node, segment[-1]) < self.field.hops(node, segment[0]):
            segment = tuple(reversed(segment))
        return tuple(self.field.route(node, segment[0])), segment

    def _nearest(self, node: Value, way: Sequence[Value]) -> Value:
        return node if node in way else min(way, key=lambda each: self.field.hops(node, each))


def find_paths(field: Field) -> Paths:
    """Rows and columns for a field, all of which cross."""
    if field.shape is not None:
        rows, columns = _of_grid(field)
        row_bands, column_bands = _bands(field, rows, 1), _bands(field, columns, 0)
    else:
        count = max(1, isqrt(len(field.places)))
        row_strips, column_strips = _strips(field, 1, count), _strips(field, 0, count)
        row_bands, column_bands = _bands(field, row_strips, 1), _bands(field, column_strips, 0)
        rows = [_way(field, strip) for strip in row_strips]
        columns = [_way(field, strip) for strip in column_strips]
    crossing: dict[tuple[int, int], Value] = {}
    for at in range(len(columns)):
        for number, row in enumerate(rows):
            columns[at] = _meet(field, row, columns[at])
            on_row = set(row)
            crossing[number, at] = next(node for node in columns[at] if node in on_row)
    return Paths(field, tuple(rows), tuple(columns), row_bands, column_bands, crossing)


def _of_grid(field: Field) -> tuple[list[Way], list[Way]]:
    assert field.shape is not None
    count, width = field.shape
    nodes = field.nodes
    rows = [tuple(nodes[row * width : (row + 1) * width]) for row in range(count)]
    return rows, [tuple(row[at] for row in rows) for at in range(width)]


def _strips(field: Field, axis: int, count: int) -> list[Way]:
    """The nodes in strips of about as many each, those of a strip in the order of the other axis."""
    ordered = sorted(field.places, key=lambda node: (field.places[node][axis], field.numbers[node]))
    size, more = divmod(len(ordered), count)
    strips, at = [], 0
    for number in range(count):
        taken = ordered[at : at + size + (number < more)]
        at += len(taken)
        strips.append(tuple(sorted(taken, key=lambda node: (field.places[node][1 - axis], field.numbers[node]))))
    return strips


def _bands(field: Field, strips: Sequence[Way], axis: int) -> Bands:
    of = {node: at for at, strip in enumerate(strips) for node in strip}
    spans = [[field.places[node][axis] for node in strip] for strip in strips]
    return Bands(of, tuple(min(each) for each in spans), tuple(max(each) for each in spans))


def _way(field: Field, strip: Way) -> Way:
    """A way from the first node of a strip to its last one; a hop outside of the strip counts as three."""
    inside = set(strip)
    start, end = strip[0], strip[-1]
    best: dict[Value, float] = {}
    before: dict[Value, Value] = {}
    waiting: list[tuple[float, int, Value, Value]] = [(0.0, field.numbers[start], start, start)]
    while waiting and end not in best:
        cost, _, node, came = heappop(waiting)
        if node in best:
            continue
        best[node], before[node] = cost, came
        for other in field.neighbours[node]:
            if other not in best:
                heappush(waiting, (cost + (1 if other in inside else 3), field.numbers[other], other, node))
    way = [end]
    while way[-1] != start:
        way.append(before[way[-1]])
    return tuple(reversed(way))


def _meet(field: Field, row: Way, column: Way) -> Way:
    """The column, with an excursion to the row if they have no node in common."""
    on_row, on_column = set(row), set(column)
    if on_row & on_column:
        return column
    before: dict[Value, Value | None] = dict.fromkeys(column)
    waiting = deque(column)
    while waiting:
        node = waiting.popleft()
        if node in on_row:
            out = [node]
            while (came := before[out[-1]]) is not None:
                out.append(came)
            out.reverse()  # from the column to the row
            at = column.index(out[0])
            return (*column[:at], *out, *reversed(out[:-1]), *column[at + 1 :])
        for other in field.neighbours[node]:
            if other not in before:
                before[other] = node
                waiting.append(other)
    raise AssertionError("a field connects its nodes")


def _span(way: Way, nodes: Sequence[Value]) -> tuple[int, int]:
    """The stretch of a way that has all of some nodes."""
    places = [way.index(node) for node in nodes]
    return min(places), max(places)
