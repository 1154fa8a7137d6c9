"""Example 14 split between sensors and engine: joined among the sensors or not, by how many rooms are open."""

from __future__ import annotations

from pathlib import Path
from random import Random

import networkx as nx
from harness import Claim, Experiment, Results, run

from whence.optimizer import Column, Statistics, Table, parse_query
from whence.optimizer.federated import Field, Sensors, Split, splits

QUERY = Path(__file__).parents[1] / "examples" / "building" / "split" / "free.sql"
ROOMS, SEATS, FREE = 25, 12, 0.7  # rooms in a square, seats in each, share of free seats
JOINED, APART = "joined among sensors", "apart"


def field_of(seed: int) -> tuple[nx.Graph, dict[int, tuple[int, int]], dict[tuple[int, int], tuple[float, float]]]:
    """A radio field: a sensor for each room and each seat at random in its room, and who hears whom. The base is in a corner."""
    draw = Random(seed)
    places: dict[tuple[int, int], tuple[float, float]] = {}
    side = round(ROOMS**0.5)
    for room in range(ROOMS):
        for seat in range(SEATS + 1):  # number 0 is the room's own
            places[room, seat] = (room % side + draw.random(), room // side + draw.random())
    graph = nx.Graph()
    nodes = list(places)
    graph.add_nodes_from(nodes)
    for at, one in enumerate(nodes):
        for other in nodes[at + 1 :]:
            if (places[one][0] - places[other][0]) ** 2 + (places[one][1] - places[other][1]) ** 2 <= 0.45**2:
                graph.add_edge(one, other)
    biggest = max(nx.connected_components(graph), key=len)
    return graph.subgraph(biggest), {}, places


def measure(scheme: str, share: float, seed: int) -> dict[str, float]:
    graph, _, places = field_of(seed)
    base = min(graph, key=lambda node: sum(places[node]))
    to_base = nx.single_source_shortest_path_length(graph, base)
    within = {
        (room, seat): nx.shortest_path_length(graph, (room, 0), (room, seat))
        for room, seat in graph
        if seat and (room, 0) in graph
    }
    what, _, how = scheme.partition(", ")
    if how == "predicted":
        return {"messages": _predicted(what, share, to_base, within)}
    draw = Random(seed * 1000 + round(share * 100))
    rounds, total = 200, 0
    for _ in range(rounds):
        opened = {room for room in range(ROOMS) if draw.random() < share and (room, 0) in graph}
        free = [node for node in within if draw.random() < FREE]
        if what == APART:
            total += sum(to_base[node] for node in free) + sum(to_base[room, 0] for room in opened)
        else:
            total += sum(hops for (room, _), hops in within.items() if room in opened)
            total += sum(to_base[node] for node in free if node[0] in opened)
    return {"messages": total / rounds}


def _predicted(
    what: str, share: float, to_base: dict[tuple[int, int], int], within: dict[tuple[int, int], int]
) -> float:
    seats = [to_base[node] for node in within]
    rooms = {room for room, _ in within}
    hops = sum(seats) / len(seats)
    near = sum(within.values()) / len(within)
    statistics = Statistics(
        {
            "seatsensor": Table(
                rows=len(seats),
                columns={
                    "mid": Column(distinct=len(seats), width=4),
                    "rid": Column(distinct=len(rooms), width=4),
                    "weightlevel": Column(distinct=2, width=4, common={0: FREE, 70000: 1 - FREE}),
                },
            ),
            "roomsensor": Table(
                rows=len(rooms),
                columns={
                    "rid": Column(distinct=len(rooms), width=4),
                    "status": Column(distinct=2, width=4, common={"open": share, "closed": 1 - share}),
                },
            ),
        }
    )
    room_hops = sum(to_base[room, 0] for room in rooms) / len(rooms)
    where = Field({"seatsensor": Sensors(hops, {"roomsensor": near}), "roomsensor": Sensors(room_hops)})
    found = splits(parse_query(QUERY.read_text(), statistics), statistics, where)

    def is_it(split: Split) -> bool:
        return (len(split.parts) == 1 and split.parts[0].site == "in the network") == (what == JOINED)

    return min(each.cost.messages for each in found if is_it(each) and (what == JOINED or len(each.parts) > 1))


def _crossover(results: Results, how: str) -> float | None:
    """The share of open rooms from which on joining among sensors costs more, between two points by a straight line."""
    before: tuple[float, float] | None = None
    for point in results.experiment.points:
        one, other = (results.median(f"{what}, {how}", point, "messages") for what in (JOINED, APART))
        assert one is not None
        assert other is not None
        if before is not None and one > other >= 0 and before[1] <= 0:
            return before[0] + (point - before[0]) * before[1] / (before[1] - (one - other))
        before = point, one - other
    return None


def _told(how: str) -> Claim:
    def measured(results: Results) -> str:
        found = _crossover(results, how)
        return "joined among sensors is cheaper throughout" if found is None else f"at {found:.0%} open rooms"

    return Claim(f"joining among sensors stops being cheaper, {how}", measured)


EXPERIMENT = Experiment(
    name="federated",
    title="Free machines in open rooms: joined among the sensors, or apart",
    question=(
        f"{ROOMS} rooms with {SEATS} seats each, sensors at random in their rooms, a base station in a corner; {FREE:.0%} of the "
        "seats are free. Messages of a round of readings, each hop one, counted on the field over 200 rounds, beside what the "
        "optimizer predicts from averages."
    ),
    schemes=(f"{JOINED}, measured", f"{JOINED}, predicted", f"{APART}, measured", f"{APART}, predicted"),
    across="share of open rooms",
    points=(0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0),
    metrics={"messages": ""},
    measure=measure,
    claims=(_told("measured"), _told("predicted")),
)

if __name__ == "__main__":
    run(EXPERIMENT)
