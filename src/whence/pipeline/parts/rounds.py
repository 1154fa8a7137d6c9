"""Orders carried out by parts that ship each other what they need.

In a round every part takes a turn, and what it says to others is brought to them. The driver begins a round when all parts have
answered that they are done with the one before, and everything they said has arrived: that is the barrier that turns need. Rows
do not come through the driver.

Parts that have come to different epochs cannot go on together. If one is lost, or stopped half-way, all are made anew from their
base tuples, in rounds as well.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from uuid import uuid4

from whence.parts import next_turn
from whence.pipeline.failures import BatchFailed
from whence.pipeline.parts.calls import Address, Lines, Unreachable
from whence.pipeline.parts.host import Answer, Begin, Final, Request, Step
from whence.pipeline.parts.orders import Action, Done, Hint
from whence.pipeline.parts.worker import Order

_ATTEMPTS = 3


class Carrier(Protocol):
    """Has parts made by processes that live on."""

    def make(self, order: Order, made: str, secret: bytes) -> dict[int, Address | Done]:
        """Makes all parts, each where it stays; an error in a part is its Done."""

    def wake(self, order: Order) -> None:
        """Has something done by the processes, for which they are kept."""


@dataclass(frozen=True)
class _Team:
    """Parts as they have been made, and the lines to where they are."""

    run: str
    made: str
    addresses: Mapping[int, Address]
    lines: Lines

    def ask(self, order: Order, number: int, step: Step | None) -> list[Answer]:
        """What the parts say, in order, to a step or to an order that each carries out by itself. Raises BatchFailed."""
        is_new = step is None or isinstance(step, Begin)
        of_process: dict[Address, list[int]] = {}
        for part, address in self.addresses.items():
            of_process.setdefault(address, []).append(part)
        requests = {
            address: Request(
                str(order.folder),
                self.made,
                parts,
                number,
                step,
                order if is_new else None,
                self.addresses if is_new else {},
            )
            for address, parts in of_process.items()
        }
        try:
            answers: list[Answer] = [each for found in self.lines.call_all(requests) for each in found]
        except Unreachable as error:
            raise _lost(order, f"a process that had some of them {error}") from error
        # What a part cannot do matters more than that others miss it.
        if not any(each.done is not None and each.done.error for each in answers):
            for each in answers:
                if each.lost:
                    raise _lost(order, each.lost)
        return sorted(answers, key=lambda each: each.part)


class Rounds:
    """Carries out orders. What the parts have in memory is used as long as it is there."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self._team: _Team | None = None
        self._number = 0

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
            if team is not None:
                team.lines.close()
            made, problems = self._made(order)
            if made is None:
                return problems
            team = made
        told = replace(order, job=b"")
        if order.action is Action.APPLY:
            done = self._travelled(team, told, list(enumerate(order.hints)))
        else:
            if order.action is Action.RECALL:
                self._carrier.wake(order)
            done = self._asked(team, told, None)[1]
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
        addresses = {part: each for part, each in sorted(found.items()) if isinstance(each, Address)}
        team = _Team(order.run, made, addresses, Lines(secret))
        done = self._travelled(team, replace(order, job=b""), [(-1, Hint(frozenset(), grows=True))])
        return (None, done) if any(each.error for each in done) else (team, done)

    def _travelled(self, team: _Team, order: Order, epochs: Sequence[tuple[int, Hint]]) -> list[Done]:
        """All rounds of some epochs."""
        for at, hint in epochs:
            step: Step | None = Begin(at, hint)
            while step is not None:
                answers, done = self._asked(team, order, step)
                if done:
                    return done  # an error
                step = next_turn([each.report for each in answers if each.report is not None])
        return self._asked(team, order, Final.WRITE)[1]

    def _asked(self, team: _Team, order: Order, step: Step | None) -> tuple[list[Answer], list[Done]]:
        """What the parts say, and what became of them, if one is done."""
        self._number += 1
        answers = team.ask(order, self._number, step)
        if all(each.done is None for each in answers):
            return answers, []
        return answers, [each.done or Done(each.part) for each in answers]


def _lost(order: Order, reason: str) -> BatchFailed:
    hint = "started again, the run goes on with this epoch"
    return BatchFailed([f"could not {order.action.value} the parts of the state: {reason}"], hints=[hint])
