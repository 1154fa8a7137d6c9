"""One floor: six rooms on both sides of a hall, desks with machines, and the points that ways lead over. Decimetres."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

WIDTH, HEIGHT, HALL = 600, 260, 40  # the hall lies in the middle, from left to right
ROOMS = {
    "R101": "Library",
    "R102": "Physics",
    "R103": "Seminar",
    "R201": "Graphics",
    "R202": "Workshop",
    "R203": "Office",
}
SOFTWARE = ("Word", "Matlab", "Blender", "Compiler")
Row = tuple[object, ...]


@dataclass
class Floor:
    rooms: list[Row] = field(default_factory=list)
    machines: list[Row] = field(default_factory=list)
    software: list[Row] = field(default_factory=list)
    points: list[Row] = field(default_factory=list)
    corridors: list[Row] = field(default_factory=list)
    plugs: list[Row] = field(default_factory=list)
    settings: list[Row] = field(
        default_factory=lambda: [("seated", 20_000), ("dark", 50), ("warm", 260), ("server watts", 35)]
    )

    def tables(self) -> Iterator[tuple[str, str, list[Row]]]:
        """Name, columns as SQL has them with the key first, rows."""
        yield "room", "rid text PRIMARY KEY, name text, x int, y int, width int, height int", self.rooms
        yield "machine", "mid text PRIMARY KEY, rid text, x int, y int", self.machines
        yield "software", "mid text, name text, PRIMARY KEY (mid, name)", self.software
        yield "point", "pid text PRIMARY KEY, x int, y int", self.points
        yield "corridor", "a text, b text, dm int, PRIMARY KEY (a, b)", self.corridors
        yield "plug", "mid text PRIMARY KEY, outlet text", self.plugs
        yield "setting", "name text PRIMARY KEY, value int", self.settings


def make_floor(seed: int = 1) -> Floor:
    draw = Random(seed)
    floor = Floor()
    middle = HEIGHT // 2
    detectors = [(f"hall{at}", x) for at, x in enumerate(range(50, WIDTH, 100), 1)]
    floor.points += [(name, x, middle) for name, x in detectors]
    for (one, x), (other, to) in pairwise(detectors):
        _link(floor, one, other, abs(to - x))
    depth = (HEIGHT - HALL) // 2
    for number, (rid, name) in enumerate(ROOMS.items()):
        left, is_upper = number % 3 * 200, number < 3
        top = 0 if is_upper else depth + HALL
        floor.rooms.append((rid, name, left, top, 200, depth))
        door = f"door {rid}"
        nearest = min(detectors, key=lambda each: abs(each[1] - left - 100))
        floor.points.append((door, left + 100, depth if is_upper else depth + HALL))
        _link(floor, door, nearest[0], abs(nearest[1] - left - 100) + HALL // 2)
        for desk in range(6):
            mid = f"{rid}-{desk + 1}"
            x, y = left + 30 + desk % 3 * 70, top + 25 + desk // 3 * 60
            floor.machines.append((mid, rid, x, y))
            floor.plugs.append((mid, f"outlet {number * 6 + desk + 1}"))
            _link(floor, door, mid, abs(x - left - 100) + abs(y - (depth if is_upper else depth + HALL)))
            floor.software += [(mid, each) for each in SOFTWARE if draw.random() < 0.5]
    return floor


def _link(floor: Floor, one: str, other: str, dm: int) -> None:
    floor.corridors += [(one, other, dm), (other, one, dm)]
