"""Rounds of parts that ship each other what they need, all in this process."""

from __future__ import annotations

import pickle

from whence.pipeline.parts.host import Address, Answer, Request, ask, make
from whence.pipeline.parts.orders import EXPECTED, Done
from whence.pipeline.parts.rounds import Item, Journey, Said, Way
from whence.pipeline.parts.worker import Order


class InProcess:
    """What goes through a shuffle is pickled, and counted."""

    def __init__(self) -> None:
        self.makings = self.jobs = 0

    def make(self, order: Order, made: str, secret: bytes) -> dict[int, Address | Done]:
        self.makings += 1
        found: dict[int, Address | Done] = {}
        for part in range(order.parts):
            try:
                found[part] = make(order, made, part, secret, "127.0.0.1")
            except EXPECTED as error:
                found[part] = Done(part, failed=order.epoch + 1, error=error)
        return found

    def carry(self, journey: Journey, way: Way, number: int, rounds: int) -> tuple[list[Said], int]:
        self.jobs += 1
        tasks = range(journey.order.tasks)
        journey = pickle.loads(pickle.dumps(journey))
        items = [item for index in tasks for item in journey.start(way, number, index)]
        shuffled = 0
        for each in range(1, rounds):
            dealt, size = self._shuffled(journey, items)
            shuffled += size
            items = [item for index in tasks for item in journey.leg(number + each, index, dealt[index])]
        dealt, size = self._shuffled(journey, items)
        said = [each for index in tasks for each in journey.end(number + rounds, index, dealt[index])]
        return sorted(said, key=lambda each: each.part), shuffled + size

    def ask(self, journey: Journey, number: int) -> list[Answer]:
        order = journey.order
        return [
            ask(
                journey.addresses[part],
                Request(str(order.folder), journey.made, part, number, order=order),
                journey.secret,
            )
            for part in range(order.parts)
        ]

    def _shuffled(self, journey: Journey, items: list[Item]) -> tuple[list[list[Item]], int]:
        dealt: list[list[Item]] = [[] for _ in range(journey.order.tasks)]
        size = 0
        for key, item in items:
            data = pickle.dumps(item)
            size += len(data)
            dealt[key].append((key, pickle.loads(data)))
        return dealt, size
