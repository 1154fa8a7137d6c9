"""Updates from a real broker: none is lost, whether somebody listens or not, and whoever stops when."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion
from tests.pipeline.mqtt_broker import broker

from whence import load
from whence.io import FactError
from whence.io.changes import Position
from whence.io.updates import DeadLetter, Schema
from whence.pipeline.sources.mqtt import MqttSource

PROGRAM = load(".decl seat(desk:symbol, grams:number) .input seat .decl q(d:symbol) q(d) :- seat(d, _). .output q")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with broker() as found:
        yield found


def publish(port: int, topic: str, *payloads: str) -> None:
    client = Client(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for payload in payloads:
        client.publish(topic, payload, qos=1).wait_for_publish(10)
    client.disconnect()
    client.loop_stop()


def seat(desk: str, grams: int) -> str:
    return json.dumps({"op": "+", "relation": "seat", "tuple": [desk, grams]})


def source(port: int, topic: str, letters: list[Any] | None = None, **more: Any) -> MqttSource:
    def bury(letter: DeadLetter, place: Position) -> None:
        assert letters is not None, letter
        letters.append((place["file"], letter.reason))

    return MqttSource(("127.0.0.1", port), [topic], Schema.of(PROGRAM), bury, pause=0.5, **more)


def taken(source: MqttSource, begin: Position | None = None) -> tuple[list[tuple[object, ...]], Position]:
    rows: list[tuple[object, ...]] = []
    place: Position = begin or {}
    for epoch in source.epochs(place):
        rows += [each.tuple for each in epoch.updates]
        place = epoch.source
    source.close()
    return rows, place


def test_what_comes_while_nobody_listens_waits(port: int) -> None:
    assert taken(source(port, "a/+")) == ([], {})
    publish(port, "a/x", seat("d1", 1), seat("d2", 2) + "\n" + seat("d3", 3))
    rows, place = taken(source(port, "a/+"))
    assert rows == [("d1", 1), ("d2", 2), ("d3", 3)]
    assert place["messages"] == 2
    publish(port, "a/y", seat("d4", 4))
    assert taken(source(port, "a/+"), place)[0] == [("d4", 4)]


def test_what_was_not_applied_comes_again(port: int) -> None:
    taken(source(port, "b"))
    publish(port, "b", seat("d1", 1), seat("d2", 2))
    stopped = source(port, "b", size=1)
    first = next(iter(stopped.epochs({})))
    assert [each.tuple for each in first.updates] == [("d1", 1)]
    stopped.close()  # the epoch was never applied
    rows, _ = taken(source(port, "b"))
    assert rows == [("d1", 1), ("d2", 2)]


def test_messages_that_are_no_records_are_dead_letters(port: int) -> None:
    taken(source(port, "c/#"))
    publish(port, "c/1", "hello", seat("d1", 1), '{"op": "+", "relation": "seat", "tuple": ["d2", "heavy"]}')
    letters: list[Any] = []
    rows, _ = taken(source(port, "c/#", letters))
    assert rows == [("d1", 1)]
    assert [where for where, _ in letters] == ["c/1", "c/1"]


def test_a_broker_that_is_not_there() -> None:
    with pytest.raises(FactError, match=r"cannot reach the broker at 127\.0\.0\.1:1:"):
        next(iter(source(1, "a").epochs({})))
