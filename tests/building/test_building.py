"""The smart building with its real servers: its views are what the simulated devices know, computed in another way."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "building"
Views = dict[str, set[tuple[Any, ...]]]


@pytest.fixture(autouse=True)
def _modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.fixture
def building() -> Iterator[Any]:
    import main  # noqa: PLC0415 - beside the example
    import servers  # noqa: PLC0415

    try:
        with main.running(seed=3, every=0.3) as here:
            yield here
    except servers.Missing as missing:
        pytest.skip(str(missing))


def views_in(path: Path) -> Views:
    found: Views = {}
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
        if line.endswith(b"\n"):
            change = json.loads(line)
            rows = found.setdefault(change["relation"], set())
            (rows.add if change["op"] == "+" else rows.discard)(tuple(change["tuple"]))
    return found


def expected(here: Any, wish: str) -> Views:
    """From what the devices are, without rules."""
    building, floor = here.building, here.building.floor
    statuses = {}
    for rid, *_ in floor.rooms:
        meets = any(
            place == rid and start <= building.now() < end for place, start, end in meetings(here.calendar.read_text())
        )
        statuses[rid] = "meeting" if meets else "open" if building.is_lit[rid] else "dark"
    room_of = {mid: rid for mid, rid, _, _ in floor.machines}
    free = {
        (mid, room_of[mid], name)
        for mid, name in floor.software
        if mid not in building.sitter and statuses[room_of[mid]] == "open"
    }
    taken = Counter(room_of[mid] for mid in building.sitter)
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(floor.corridors)
    lengths = nx.single_source_dijkstra_path_length(graph, "hall1")
    near = sorted((lengths[mid], mid) for mid, _, name in free if name == wish)
    watts = {mid: 8 if mid not in building.sitter else 60 + building.tasks.get(mid, ("", "", 0))[2] for mid in room_of}
    return {
        "room_status": set(statuses.items()),
        "occupancy": {(rid, taken[rid], 6) for rid in statuses},
        "free": free,
        "machine_state": {
            (mid, "taken" if mid in building.sitter else "free" if any(each[0] == mid for each in free) else "closed")
            for mid in room_of
        },
        "nearest": {("kiosk", near[0][1], near[0][0])} if near else set(),
        "room_power": {(rid, sum(watts[mid] for mid in room_of if room_of[mid] == rid)) for rid in statuses},
        "task_power": {
            (mid, user, name, watts[mid] * share * 10) for mid, (user, name, share) in building.tasks.items()
        },
        "alarm": {(mid, "is taken, but nobody is logged in") for mid in building.sitter if mid not in building.tasks}
        | {
            (rid, f"is warm, though its machines are idle: {building.temperature[rid] // 10} degrees")
            for rid in statuses
            if building.temperature[rid] > 260 and not taken[rid]
        },
    }


def meetings(text: str) -> list[tuple[str, float, float]]:
    import icalendar  # noqa: PLC0415

    return [
        (str(event["location"]), event["dtstart"].dt.timestamp(), event["dtend"].dt.timestamp())
        for event in icalendar.Calendar.from_ical(text).walk("VEVENT")
    ]


def test_its_views_are_what_the_devices_know(building: Any, tmp_path: Path) -> None:
    changes = tmp_path / "changes.jsonl"
    words = [word for source in building.sources for word in ("--updates", source)]
    command = [sys.executable, "-m", "whence", "run", str(FOLDER / "building.dl"), *words, "--no-spark", "--follow"]
    command += ["--state", str(building.state), "--changes", str(changes), "--quiet", "--profile"]
    running = subprocess.Popen(command)
    try:
        wait_until(
            lambda: "occupancy" in views_in(changes), 120
        )  # the database has been read, so the broker is listened to
        building.building.begin()
        building.building.publish("building/wish", [{"op": "+", "relation": "wish", "tuple": ["kiosk", "Word"]}])
        for rounds in (25, 15):
            for _ in range(rounds):
                building.building.step()
            wanted = expected(building, "Word")
            wait_until(lambda: {name: views_in(changes).get(name, set()) for name in wanted} == wanted, 60)  # noqa: B023
        # the run's own rules, from its own profile, which is asked for now and then
        wait_until(lambda: {"draw", "way"} <= dict(views_in(changes).get("query_energy", ())).keys(), 60)
        found = views_in(changes)
        assert found["whereabouts"]
        assert found["engine_load"]
        energy = dict(found["query_energy"])
        assert energy["draw"] > 0 < energy["way"]
        assert all(each % 35 == 0 for each in energy.values())
        assert {row[0] for row in found["leg"]} == {"kiosk"}
        assert running.poll() is None
    finally:
        running.terminate()
        running.wait(30)


def wait_until(holds: Any, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.2)
