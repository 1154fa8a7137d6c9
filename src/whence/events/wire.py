"""Tuples and trails on the wire: the bytes that messages between places take."""

from __future__ import annotations

import struct

from whence.events.program import EventProgram
from whence.events.schemes import Trail
from whence.lang.types import FLOAT, SYMBOL, Kind, Tuple, Value
from whence.provenance.graph import Fact
from whence.runtime.varints import varint


class Wire:
    """Relations are numbered and places named as both ends know them; values are written by their kinds."""

    def __init__(self, events: EventProgram) -> None:
        self._events = events
        self._numbers = {name: at for at, name in enumerate(events.program.relations)}
        self._names = list(events.program.relations)

    def fact(self, fact: Fact) -> bytes:
        fields = self._events.program.relations[fact.relation].fields
        values = (self._value(value, each.kind) for value, each in zip(fact.tuple, fields, strict=True))
        return varint(self._numbers[fact.relation]) + b"".join(values)

    def read_fact(self, data: bytes, at: int = 0) -> tuple[Fact, int]:
        """The fact that begins at an offset, and where it ends."""
        number, at = _read_varint(data, at)
        name = self._names[number]
        values: list[Value] = []
        for each in self._events.program.relations[name].fields:
            value, at = self._read_value(data, at, each.kind)
            values.append(value)
        return Fact(name, tuple(values)), at

    @staticmethod
    def _value(value: Value, kind: Kind) -> bytes:
        if kind == SYMBOL and isinstance(value, str):
            data = value.encode("utf-8", "surrogatepass")
            return varint(len(data)) + data
        if kind == FLOAT and isinstance(value, float):
            return struct.pack(">d", value)
        if isinstance(value, int):
            return varint(value << 1 if value >= 0 else (-value << 1) - 1)
        raise NotOnTheWire(kind)

    @staticmethod
    def _read_value(data: bytes, at: int, kind: Kind) -> tuple[Value, int]:
        if kind == FLOAT:
            return struct.unpack_from(">d", data, at)[0], at + 8
        number, at = _read_varint(data, at)
        if kind == SYMBOL:
            return data[at : at + number].decode("utf-8", "surrogatepass"), at + number
        return (number >> 1 if not number & 1 else -((number + 1) >> 1)), at


RUNS = 40  # bits of a run's number that count the runs of one place
_SIZE = 20


class Trails:
    """What messages on one channel carry besides tuples: the run, the step before, and for `basic` the event's id.

    The step was taken where the message comes from, so its place need not be told. Where everything arrives in order, a
    step is told once, and is a small number from then on.
    """

    def __init__(self, scheme: str, *, ordered: bool) -> None:
        self._carries_event = scheme == "basic"
        self._ordered = ordered
        self._numbers: dict[bytes, int] = {}
        self._steps: list[bytes] = []

    def write(self, trail: Trail) -> bytes:
        assert trail.step is not None
        run = varint(trail.run >> RUNS) + varint(trail.run & ((1 << RUNS) - 1))
        event = trail.event if self._carries_event else b""
        if trail.step in self._numbers:
            return run + event + varint(self._numbers[trail.step] + 1)
        if self._ordered:
            self._numbers[trail.step] = len(self._numbers)
        return run + event + b"\x00" + trail.step

    def read(self, data: bytes, sender: str) -> Trail:
        """The trail that a message from a place carries; for all schemes but `basic` the id of the event is left out."""
        place, at = _read_varint(data, 0)
        count, at = _read_varint(data, at)
        event = data[at : at + _SIZE] if self._carries_event else b""
        number, at = _read_varint(data, at + len(event))
        if number:
            step = self._steps[number - 1]
        else:
            step = data[at : at + _SIZE]
            if self._ordered:
                self._steps.append(step)
        return Trail(event, place << RUNS | count, sender, step)


class NotOnTheWire(ValueError):
    def __init__(self, kind: Kind) -> None:
        super().__init__(f"a value of kind {kind} does not travel in events: symbols and numbers do")


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return varint(len(data)) + data


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def row_bytes(values: Tuple | tuple[object, ...]) -> int:
    """The bytes of a row of a store when it is sent: ids as they are, text with its length, numbers short."""
    total = 0
    for value in values:
        match value:
            case None:
                total += 1
            case bytes():
                total += len(value)
            case str():
                total += len(_text(value))
            case int():
                total += len(varint(abs(value)))
            case list() | tuple():
                total += 1 + row_bytes(tuple(value))
            case _:
                total += 8
    return total
