"""Orders carried out by parts that ship each other what they need.

A round is a stage of a Spark job: every part takes a turn, and what it says goes through a shuffle, letters to whom they are for,
its report to everybody. So each task of the next stage knows which turn comes next, and that stage is the barrier that turns
need: it begins when all tasks of the one before are done. A job has as many rounds as epochs usually take; the last stage
delivers what was said in the last of them, and if the order is not done by then, another job goes on.

Parts that have come to different epochs cannot go on together. If one is lost, or stopped half-way, all are made anew from their
base tuples, in rounds as well.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol
from uuid import uuid4

from whence.parts import Report, next_turn
from whence.pipeline.failures import BatchFailed
from whence.pipeline.parts.host import Address, Answer, Begin, Final, Request, Step, ask
from whence.pipeline.parts.orders import Action, Done, EpochWork, Hint
from whence.pipeline.parts.worker import Order

_ATTEMPTS = 3
_FIRST, _MORE, _MOST = 6, 4, 24  # rounds of a job


class Way(NamedTuple):
    """A step of all parts, in which epoch of the order."""

    step: Step
    at: int


class Said(NamedTuple):
    """What a part says to everybody after a turn, in which epoch of the order."""

    part: int
    at: int
    report: Report | None
    done: Done | None
    lost: str


class Letter(NamedTuple):
    sender: int
    receiver: int
    content: bytes


# What goes through a shuffle, and to which task.
Item = tuple[int, Said | Letter]


@dataclass(frozen=True)
class Journey:
    """The rounds of an order: what the tasks do in each stage. Task `k` of `tasks` goes to the parts `k`, `k + tasks`, …"""

    order: Order
    made: str
    secret: bytes
    addresses: Mapping[int, Address]
    hints: Sequence[Hint]
    is_new: bool = False  # the parts have just been made: what they come to is their first state

    @property
    def first(self) -> Way:
        return Way(Begin(-1, Hint(frozenset(), grows=True)), -1) if self.is_new else Way(Begin(0, self.hints[0]), 0)

    def start(self, way: Way, number: int, index: int) -> list[Item]:
        return list(self._taken(index, number, way, {}))

    def leg(self, number: int, index: int, items: Iterable[Item]) -> Iterator[Item]:
        said, letters = _sorted(items)
        way = self.next(said)
        if way is None:
            yield from (item for each in said if each.part in self._own(index) for item in self._to_all(each))
        else:
            yield from self._taken(index, number, way, letters)

    def end(self, number: int, index: int, items: Iterable[Item]) -> Iterator[Said]:
        said, letters = _sorted(items)
        for each in said:
            if each.part in self._own(index):
                answer = self._ask(each.part, number, Final.READ, letters) if each.part in letters else Answer()
                yield each._replace(lost=answer.lost) if answer.lost else each

    def next(self, said: Sequence[Said]) -> Way | None:
        """What all parts do next; None if the order is done or cannot be."""
        if any(each.lost or each.done is not None for each in said):
            return None
        at = said[0].at
        turn = next_turn([each.report for each in said if each.report is not None])
        if turn is not None:
            return Way(turn, at)
        if self.is_new or at + 1 == len(self.hints):
            return Way(Final.WRITE, at)
        return Way(Begin(at + 1, self.hints[at + 1]), at + 1)

    def _own(self, index: int) -> range:
        return range(index, self.order.parts, self.order.tasks)

    def _taken(
        self, index: int, number: int, way: Way, letters: Mapping[int, list[tuple[int, bytes]]]
    ) -> Iterator[Item]:
        for part in self._own(index):
            answer = self._ask(part, number, way.step, letters)
            for receiver, content in answer.letters.items():
                yield receiver % self.order.tasks, Letter(part, receiver, content)
            yield from self._to_all(Said(part, way.at, answer.report, answer.done, answer.lost))

    def _ask(self, part: int, number: int, step: Step, letters: Mapping[int, list[tuple[int, bytes]]]) -> Answer:
        order = self.order if isinstance(step, Begin) else None
        folder = str(self.order.folder)
        request = Request(folder, self.made, part, number, letters.get(part, ()), step, order)
        return ask(self.addresses[part], request, self.secret)

    def _to_all(self, said: Said) -> Iterator[Item]:
        return ((index, said) for index in range(self.order.tasks))


def _sorted(items: Iterable[Item]) -> tuple[list[Said], dict[int, list[tuple[int, bytes]]]]:
    said: list[Said] = []
    letters: dict[int, list[tuple[int, bytes]]] = {}
    for _, item in items:
        if isinstance(item, Said):
            said.append(item)
        else:
            letters.setdefault(item.receiver, []).append((item.sender, item.content))
    return sorted(said, key=lambda each: each.part), letters


class Carrier(Protocol):
    """Has stages carried out, one after the other."""

    def make(self, order: Order, made: str, secret: bytes) -> dict[int, Address | Done]:
        """Makes all parts, each where it stays; an error in a part is its Done."""

    def carry(self, journey: Journey, way: Way, number: int, rounds: int) -> tuple[list[Said], int]:
        """So many rounds from a step on, the first of which has the number, and what was shuffled, in bytes."""

    def ask(self, journey: Journey, number: int) -> list[Answer]:
        """Has every part carry out the order by itself."""


@dataclass(frozen=True)
class _Team:
    """Parts as they have been made."""

    run: str
    made: str
    secret: bytes
    addresses: Mapping[int, Address]


class Rounds:
    """Carries out orders. What the parts have in memory is used as long as it is there."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self._team: _Team | None = None
        self._number = 0
        self._usual = _FIRST

    def __call__(self, order: Order) -> list[Done]:
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._carried_out(order)
            except BatchFailed:
                continue  # a worker is gone, and with it a part or a task: all parts are made anew
        return self._carried_out(order)

    def _carried_out(self, order: Order) -> list[Done]:
        # Forgotten until it has come through: it may stop half-way.
        team, self._team = self._team, None
        if team is None or team.run != order.run or order.action is Action.BEGIN:
            made, problems = self._made(order)
            if made is None:
                return problems
            team = made
        told = replace(order, job=b"")
        if order.action is Action.APPLY:
            done = self._travelled(Journey(told, team.made, team.secret, team.addresses, order.hints))
        else:
            journey = Journey(told, team.made, team.secret, team.addresses, ())
            self._number += 1
            done = _done(order, self._carrier.ask(journey, self._number))
        if not any(each.error for each in done):
            self._team = team
        return done

    def _made(self, order: Order) -> tuple[_Team | None, list[Done]]:
        """The parts in their first state, or as of the last epoch; or what is wrong with them."""
        made, secret = uuid4().hex, secrets.token_bytes(32)
        found = self._carrier.make(order, made, secret)
        problems = [each if isinstance(each, Done) else Done(part) for part, each in sorted(found.items())]
        if any(each.error for each in problems):
            return None, problems
        addresses = {part: each for part, each in found.items() if isinstance(each, Address)}
        done = self._travelled(Journey(replace(order, job=b""), made, secret, addresses, (), is_new=True))
        team = _Team(order.run, made, secret, addresses)
        return (None, done) if any(each.error for each in done) else (team, done)

    def _travelled(self, journey: Journey) -> list[Done]:
        """All rounds of an order."""
        way: Way | None = journey.first
        epochs = max(1, len(journey.hints))
        rounds = min(_MOST, epochs * self._usual + 1)
        shuffled = 0
        said: list[Said] = []
        while way is not None:
            said, shuffled_now = self._carrier.carry(journey, way, self._number + 1, rounds)
            shuffled += shuffled_now
            self._number += rounds + 1
            way = journey.next(said)
            rounds = _MORE
        lost = next((each.lost for each in said if each.lost), "")
        if lost:
            raise _lost(journey.order, lost)
        done = [each.done or Done(each.part) for each in said]
        if not any(each.error for each in done) and done[0].epochs:
            self._usual = max(each.exchanges for each in done[0].epochs)
            done[0] = replace(done[0], epochs=_with_bytes(done[0], shuffled))
        return done


def _with_bytes(done: Done, shuffled: int) -> list[EpochWork]:
    """What was shuffled, shared out to the epochs by their rounds: a job has those of several."""
    total = sum(each.exchanges for each in done.epochs)
    return [replace(each, shuffled_bytes=shuffled * each.exchanges // total) for each in done.epochs]


def _done(order: Order, answers: Sequence[Answer]) -> list[Done]:
    found = []
    for answer in answers:
        if answer.done is None:
            raise _lost(order, answer.lost)
        found.append(answer.done)
    return found


def _lost(order: Order, reason: str) -> BatchFailed:
    hint = "started again, the run goes on with this epoch"
    return BatchFailed([f"could not {order.action.value} the parts of the state: {reason}"], hints=[hint])
