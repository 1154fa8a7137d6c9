"""What is in the building, simulated: people sit down and get up, walk, log in; lamps, thermometers and meters follow.

Everything leaves through the same doors as in a real building: sensors, daemons and detectors publish over MQTT, the power strip
has a web page, meetings stand in a calendar.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

from floor import Floor
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

SECONDS = 5  # that a step moves the building's own clock on
LASTING = ("seat", "light", "temperature", "kiosk")  # sensors whose last reading is what is
TASKS = ("browser", "simulation", "render", "build")
Publish = Callable[[str, list[dict[str, object]]], None]


@dataclass
class Person:
    name: str
    at: str  # a point, or a machine if seated
    is_seated: bool = False


@dataclass
class Building:
    floor: Floor
    publish: Publish
    seed: int = 1
    people: list[Person] = field(default_factory=list)
    steps: int = 0
    begun: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))

    def __post_init__(self) -> None:
        self.draw = Random(self.seed)
        self.temperature = {str(room[0]): 215 + self.draw.randrange(20) for room in self.floor.rooms}
        self.is_lit = {str(room[0]): self.draw.random() < 0.8 for room in self.floor.rooms}
        self.tasks: dict[str, tuple[str, str, int]] = {}
        self.sitter: dict[str, str] = {}
        hall = [str(point[0]) for point in self.floor.points if str(point[0]).startswith("hall")]
        self.people = [Person(f"badge {at + 1}", self.draw.choice(hall)) for at in range(8)]
        self.hall = hall

    def begin(self) -> None:
        """Every sensor tells what it sees."""
        for machine in self.floor.machines:
            self._say("seat", "+", str(machine[0]), self.draw.randrange(200))
        for room in self.temperature:
            self._say("temperature", "+", room, self.temperature[room])
            self._say("light", "+", room, 320 if self.is_lit[room] else 4)
        self._say("kiosk", "+", "kiosk", self.hall[0])
        self._tick()

    def step(self) -> None:
        """Some seconds pass."""
        self.steps += 1
        for person in self.people:
            self._live(person)
        room = self.draw.choice(list(self.temperature))
        busy = sum(machine.startswith(room) for machine in self.sitter)
        self.temperature[room] = max(190, min(290, self.temperature[room] + self.draw.choice([-3, 0, 3 + busy])))
        self._say("temperature", "+", room, self.temperature[room])
        if self.draw.random() < 0.1:
            self.is_lit[room] = not self.is_lit[room]
            self._say("light", "+", room, 320 if self.is_lit[room] else 4)
        self._tick()

    def sit(self, machine: str, user: str, *, logs_in: bool = True) -> None:
        self.sitter[machine] = user
        self._say("seat", "+", machine, 60_000 + self.draw.randrange(20_000))
        if logs_in:
            name, share = self.draw.choice(TASKS), self.draw.randrange(5, 95)
            self.tasks[machine] = (user, name, share)
            self._say("login", "+", machine, user)
            self._say("task", "+", machine, user, name, share)

    def get_up(self, machine: str) -> None:
        user = self.sitter.pop(machine)
        self._say("seat", "+", machine, self.draw.randrange(200))
        if machine in self.tasks:
            self._say("login", "-", machine, user)
            self._say("task", "-", machine, *self.tasks.pop(machine))

    def _live(self, person: Person) -> None:
        if person.is_seated:
            if self.draw.random() < 0.08:
                self.get_up(person.at)
                person.is_seated, person.at = False, self.draw.choice(self.hall)
            return
        at = self.hall.index(person.at)
        person.at = self.hall[max(0, min(len(self.hall) - 1, at + self.draw.choice([-1, 0, 1])))]
        self._say("sighting", "+", person.name, person.at, self.steps, time=self.now())
        free = [str(machine[0]) for machine in self.floor.machines if str(machine[0]) not in self.sitter]
        if free and self.draw.random() < 0.15:
            person.at, person.is_seated = self.draw.choice(free), True
            self.sit(person.at, f"user of {person.name}", logs_in=self.draw.random() < 0.85)

    def now(self) -> float:
        return (self.begun + timedelta(seconds=SECONDS * self.steps)).timestamp()

    def _tick(self) -> None:
        self.publish("building/clock", [_record("+", "clock", int(self.now())), {"tick": self.now()}, {"commit": True}])

    def _say(self, relation: str, op: str, *row: object, time: float | None = None) -> None:
        record = _record(op, relation, *row)
        self.publish(f"building/{relation}/{row[0]}", [record if time is None else {**record, "time": time}])

    def power_page(self) -> str:
        """What the strip's own web server shows."""
        rows = []
        for machine, outlet in self.floor.plugs:
            share = self.tasks.get(str(machine), ("", "", 0))[2]
            watts = 8 if str(machine) not in self.sitter else 60 + share
            rows.append(f"<tr><td>{outlet}</td><td>{watts}</td><td>on</td></tr>")
        head = "<tr><th>Outlet</th><th>Watts</th><th>State</th></tr>"
        return f"<html><body><h1>Power strip</h1><table>{head}{''.join(rows)}</table></body></html>"


def calendar_text(floor: Floor, begun: datetime, seed: int = 1) -> str:
    """Meetings of the next minutes, one of them every week."""
    draw = Random(seed)
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//whence//building//EN"]
    for at, room in enumerate(draw.sample(floor.rooms, 3)):
        start = begun + timedelta(minutes=draw.randrange(0, 4))
        lines += [
            "BEGIN:VEVENT", f"UID:{at}@building", f"SUMMARY:Meeting {at + 1}", f"LOCATION:{room[0]}",
            f"DTSTART:{start:%Y%m%dT%H%M%SZ}", f"DTEND:{start + timedelta(minutes=draw.randrange(2, 8)):%Y%m%dT%H%M%SZ}",
            *(["RRULE:FREQ=WEEKLY;COUNT=4"] if at == 0 else []), "END:VEVENT",
        ]  # fmt: skip
    return "\r\n".join([*lines, "END:VCALENDAR", ""])


class Publisher:
    """Records to a broker, none of them lost. The broker keeps the last reading of a sensor for who comes later."""

    def __init__(self, port: int) -> None:
        self._client = Client(CallbackAPIVersion.VERSION2, client_id="building")
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()

    def __call__(self, topic: str, records: list[dict[str, object]]) -> None:
        payload = "\n".join(json.dumps(record) for record in records)
        is_state = topic.split("/")[1] in LASTING
        self._client.publish(topic, payload, qos=1, retain=is_state).wait_for_publish(20)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def _record(op: str, relation: str, *row: object) -> dict[str, object]:
    return {"op": op, "relation": relation, "tuple": list(row)}
