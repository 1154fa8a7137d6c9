"""A run on a field as a picture: nodes, traffic, and rows where they are. SVG, or a page with a slider of time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from whence.lang.types import Tuple, Value
from whence.sensors.network import Moment, SensorNetwork
from whence.sensors.spatial import find_coordinates

SIZE, MARGIN, SIDE = 640, 40, 250
COLOURS = ("#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b")
STEPS = 200


@dataclass(frozen=True)
class Shape:
    """How a row is drawn: a dot, a ring around a node, or a line."""

    kind: str  # "dot", "ring", "line"
    points: tuple[tuple[float, float], ...]


class _Map:
    """Where places of the field are on the picture."""

    def __init__(self, network: SensorNetwork, shapes: Sequence[Shape]) -> None:
        spots = [*network.field.places.values(), *(point for shape in shapes for point in shape.points)]
        xs, ys = zip(*spots, strict=True)
        self.left, self.top = min(xs), max(ys)
        self.scale = (SIZE - 2 * MARGIN) / max(max(xs) - self.left, self.top - min(ys), 1e-9)

    def at(self, point: tuple[float, float]) -> tuple[float, float]:
        return MARGIN + (point[0] - self.left) * self.scale, MARGIN + (self.top - point[1]) * self.scale


def shape_of(
    network: SensorNetwork, relation: str, row: Tuple, coordinates: Mapping[str, tuple[int, int]]
) -> Shape | None:
    """A list of places is a line, a row with a place a dot, one that names two nodes an edge, one that lives at a node a ring."""
    for value in row:
        line = _line(value)
        if line is not None:
            return Shape("line", line)
    if relation in coordinates:
        x, y = (row[at] for at in coordinates[relation])
        return Shape("dot", ((float(x), float(y)),))  # type: ignore[arg-type]
    location = network.program.relations[relation].location
    if location is None:
        return None
    places = network.field.places
    here = row[location]
    other = next((value for at, value in enumerate(row) if at != location and value in places and value != here), None)
    if other is not None and network.program.relations[relation].arity > 2:
        return Shape("line", (places[other], places[here]))
    return Shape("ring", (places[here],))


def _line(value: Value) -> tuple[tuple[float, float], ...] | None:
    if not isinstance(value, tuple) or len(value) < 2:
        return None
    points = []
    for each in value:
        match each:
            case (int() | float() as x, int() | float() as y, *_):
                points.append((float(x), float(y)))
            case _:
                return None
    return tuple(points)


def _shown(network: SensorNetwork, relations: Sequence[str]) -> list[tuple[Moment, Shape]]:
    coordinates = find_coordinates(network.program)
    found = []
    for moment in network.moments:
        if moment.relation in relations and moment.relation != network.sensor_program.links:
            shape = shape_of(network, moment.relation, moment.row, coordinates)
            if shape is not None:
                found.append((moment, shape))
    return found


def draw_field(network: SensorNetwork, title: str, relations: Sequence[str]) -> str:
    """The field as it is at the end: nodes darker for more traffic, and the rows that are there."""
    shown = _shown(network, relations)
    spots = _Map(network, [shape for _, shape in shown])
    there: dict[tuple[str, Tuple], Shape] = {}
    for moment, shape in shown:
        if moment.is_there:
            there[moment.relation, moment.row] = shape
        else:
            there.pop((moment.relation, moment.row), None)
    colours = _colours(relations, shown)
    parts = [_drawn(spots, shape, colours[name], _said(name, row)) for (name, row), shape in there.items()]
    return _svg(network, spots, title, colours, "\n".join(parts))


def _colours(relations: Sequence[str], shown: Sequence[tuple[Moment, Shape]]) -> dict[str, str]:
    used = {moment.relation for moment, _ in shown}
    names = [name for name in relations if name in used]
    return {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(names)}


def _svg(network: SensorNetwork, spots: _Map, title: str, colours: Mapping[str, str], rows: str) -> str:
    traffic = network.messages_by_node()
    most = max(traffic.values(), default=0) or 1
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE + SIDE} {SIZE + 40}" font-family="sans-serif" '
        'font-size="13">',
        f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{MARGIN}" y="24" font-size="16">{escape(title)}</text><g transform="translate(0 30)">',
    ]
    for node, heard in network.field.neighbours.items():
        for other in heard:
            if network.field.numbers[node] < network.field.numbers[other]:
                (x1, y1), (x2, y2) = spots.at(network.field.places[node]), spots.at(network.field.places[other])
                parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#e4e7eb"/>')
    for node, place in network.field.places.items():
        x, y = spots.at(place)
        grey = 225 - int(170 * traffic[node] / most)
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="rgb({grey},{grey},{grey})" stroke="#9aa5b1">'
            f"<title>{escape(str(node))}: {traffic[node]:,} messages sent and received</title></circle>"
        )
    parts += [f'<g id="rows">{rows}</g></g>', *_legend(colours, most), "</svg>"]
    return "\n".join(parts) + "\n"


def _legend(colours: Mapping[str, str], most: int) -> Iterator[str]:
    kinds = [(name, f'fill="{colour}"') for name, colour in colours.items()]
    for label, grey in ((f"a node: {most:,} messages", 55), ("a node: none", 225)):
        kinds.append((label, f'fill="rgb({grey},{grey},{grey})" stroke="#9aa5b1"'))
    for at, (label, look) in enumerate(kinds):
        y = 60 + 24 * at
        yield f'<circle cx="{SIZE + 10}" cy="{y}" r="6" {look}/>'
        yield f'<text x="{SIZE + 24}" y="{y + 5}">{escape(label)}</text>'


def _said(relation: str, row: Tuple) -> str:
    return f"{relation}({', '.join(map(str, row))})"


def _drawn(spots: _Map, shape: Shape, colour: str, name: str, number: int | None = None) -> str:
    points = [spots.at(point) for point in shape.points]
    mark = "" if number is None else f' id="r{number}" visibility="hidden"'
    (x, y), title = points[0], f"<title>{escape(name)}</title>"
    spot = f'{mark} cx="{x:.1f}" cy="{y:.1f}"'
    match shape.kind:
        case "line":
            way = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            return f'<polyline{mark} points="{way}" fill="none" stroke="{colour}" stroke-width="2.5">{title}</polyline>'
        case "ring":
            return f'<circle{spot} r="9" fill="none" stroke="{colour}" stroke-width="2.5">{title}</circle>'
        case _:
            return f'<circle{spot} r="7" fill="{colour}" fill-opacity="0.75">{title}</circle>'


def draw_page(network: SensorNetwork, title: str, relations: Sequence[str], rows: Sequence[tuple[str, str]]) -> str:
    """The field over time: a slider, what is there at each moment (pale while it is tentative), the traffic, and the figures."""
    shown = _shown(network, relations)
    spots = _Map(network, [shape for _, shape in shown])
    colours = _colours(relations, shown)
    numbers: dict[tuple[str, Tuple], int] = {}
    drawn = []
    for moment, shape in shown:
        key = (moment.relation, moment.row)
        if key not in numbers:
            numbers[key] = len(numbers)
            drawn.append(_drawn(spots, shape, colours[moment.relation], _said(*key), numbers[key]))
    end = max(network.simulation.last_activity, max((each.time for each in network.moments), default=0.0), 1e-3)
    events = [
        [round(each.time, 4), numbers[each.relation, each.row], int(each.is_there), round(min(each.final, 2 * end), 4)]
        for each, _ in shown
    ]
    sent = [0] * STEPS
    for time, _ in network.simulation.figures.moments:
        sent[min(int(time / end * STEPS), STEPS - 1)] += 1
    top = max(sent) or 1
    width = (SIZE + SIDE) / STEPS
    bars = ""
    for at, count in enumerate(sent):
        height = 60 * count / top
        bars += (
            f'<rect x="{at * width:.1f}" y="{60 - height:.1f}" width="{width:.1f}" height="{height:.1f}" fill="#37c"/>'
        )
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return _PAGE.format(
        title=escape(title),
        svg=_svg(network, spots, title, colours, "\n".join(drawn)),
        bars=f'<svg viewBox="0 0 {SIZE + SIDE} 60" style="width:100%">{bars}</svg>',
        steps=STEPS,
        end=end,
        events=json.dumps(events),
        count=len(numbers),
        cells=cells,
    )


_PAGE = """<!doctype html>
<meta charset="utf-8">
<title>{title}</title>
<style>body{{font:14px sans-serif;max-width:900px;margin:1em auto}}th{{text-align:left;padding-right:2em}}
input{{width:100%;margin:0}}svg{{display:block}}</style>
{svg}
{bars}
<input id="time" type="range" min="0" max="{steps}" value="{steps}" aria-label="time">
<p><output id="now"></output></p>
<table>{cells}</table>
<script>
const events = {events}, count = {count}, end = {end}, steps = {steps};
const slider = document.getElementById("time"), now = document.getElementById("now");
function show() {{
  const time = slider.value / steps * end, there = new Array(count).fill(0), final = new Array(count).fill(0);
  for (const [at, row, came, until] of events) {{ if (at > time + 1e-4) break; there[row] = came; final[row] = until; }}
  let rows = 0, tentative = 0;
  for (let row = 0; row < count; row++) {{
    const drawn = document.getElementById("r" + row), pale = there[row] && final[row] > time && time < end;
    drawn.setAttribute("visibility", there[row] ? "visible" : "hidden");
    drawn.setAttribute("opacity", pale ? 0.45 : 1);
    rows += there[row]; tentative += pale ? 1 : 0;
  }}
  now.textContent = time.toFixed(3) + " s: " + rows + " rows, " + tentative + " of them tentative";
}}
slider.addEventListener("input", show);
show();
</script>
"""
