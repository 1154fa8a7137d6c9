"""One part: a node, what it holds back for others until its turn ends, and how far it has come.

A turn goes as far as it can: through all strata that need nobody else, up to one that others have a say in. There parts take away
together until nobody has told of a withdrawal, then put back together until nobody has told of anything (`node` says why).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from whence.backends.local.shared import Shared
from whence.engine.windows import Windows
from whence.io.changes import Changes, Update
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.node import Node, Support
from whence.parts.course import Course
from whence.plan.deal import Dealing
from whence.prepared import prepare

# What a part says to another: supports, whose relations are those of the receiver.
Letter = list[Support]


class Turn(Enum):
    """TAKE away what has lost its support, PUT back and add, or GO on to the next stop."""

    TAKE = "take"
    PUT = "put"
    GO = "go"


@dataclass(frozen=True, slots=True)
class Report:
    """Where a part is after a turn, and what it has said to others.

    `at` is a stratum, or None when all are complete. There it `waits` for what others have said, or has begun with it and is
    `pending` if there is more to do. It has `told` so many supports, of which some may be withdrawals (`withdrew`).
    """

    at: int | None
    waits: bool
    told: int
    withdrew: bool
    pending: bool


def next_turn(reports: Sequence[Report]) -> Turn | None:
    """What all parts do next, once everything that was told is delivered; None if the epoch can be finished."""
    assert len({(each.at, each.waits) for each in reports}) == 1, "parts go the same way"
    if reports[0].at is None:
        return None
    if reports[0].waits:
        return Turn.GO
    if any(each.withdrew for each in reports):
        return Turn.TAKE
    return Turn.PUT if any(each.told or each.pending for each in reports) else Turn.GO


class Member:
    """Part `part` of `parts`. `shown` are the relations whose changes it tells, beside the base relations."""

    def __init__(
        self,
        how: Dealing,
        part: int,
        parts: int,
        shown: Iterable[str],
        *,
        limits: Limits = Limits(),  # noqa: B008 - immutable
        shared: Shared | None = None,
        windows: Windows | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        self.how = how
        self.part = part
        self.parts = parts
        program = how.program_of(part, parts)
        prepared = prepare(program, wanted={*shown, *program.base_relations}, shared=shared, sizes=sizes)
        self.course = Course.of(prepared.plan, how.ships)
        self.node = Node(prepared, limits=limits, windows=windows, tells=how.ships.keys())
        self._outbox: dict[int, dict[tuple[str, Tuple], tuple[bool, int | None]]] = {}
        self._at = 0
        self._waits = False
        self._delivered = 0  # what strata below have told has been delivered
        self._idle: frozenset[int] = frozenset()
        self._grows = False
        self._is_first = True

    # -- an epoch

    def begin(
        self, updates: Sequence[Update], now: float | None = None, *, touched: Iterable[str], grows: bool
    ) -> Report:
        """Begins an epoch. `touched` are the relations that any part has updates of; if it `grows`, all of them insert."""
        self.node.begin(updates, now)
        return self._begun(self.course.idle(touched), grows=grows)

    def begin_from(self, base: Mapping[str, Iterable[Tuple]]) -> Report:
        """Begins the first epoch with what windows know of."""
        self.node.begin_from(base)
        return self._begun(frozenset(), grows=True)

    def turn(self, turn: Turn) -> Report:
        self._delivered = self._at
        if turn is Turn.TAKE:
            self._note(self.node.take_away())
        elif turn is Turn.PUT:
            self._put_back()
        else:
            if not self._waits:
                self._close()
            self._go_on()
        return self._report()

    def finish(self) -> Changes:
        return self.node.finish()

    def letters(self) -> dict[int, Letter]:
        """What is to be delivered, by part, of the turn that has just ended."""
        outbox, self._outbox = self._outbox, {}
        letters = {}
        for part, said in outbox.items():
            supports = [
                Support(name, row, rank)
                for (name, row), (was_there, rank) in said.items()
                if was_there or rank is not None
            ]
            if supports:
                letters[part] = supports
        return letters

    def receive(self, sender: int, letter: Letter) -> None:
        self.node.receive(sender, letter)

    # -- a turn

    def _begun(self, idle: frozenset[int], *, grows: bool) -> Report:
        self._idle = idle
        self._at = self._delivered = 0
        # Before the first epoch nothing is there that could be taken away.
        self._is_first = self.node.epoch < 0
        self._grows = grows
        self._go_on()
        return self._report()

    def _go_on(self) -> None:
        """Completes strata until one is reached that others have a say in."""
        self._waits = False
        while self._at < len(self.course.plan.strata):
            at = self._at
            if at in self._idle:
                self._close()
                continue
            if self._is_owed(at):
                self._waits = True
                return
            self._note(self.node.take_away())
            if at in self.course.joint:
                if self._is_first or (self._grows and at in self.course.growing):
                    self._put_back()
                return
            while self.node.is_pending:
                self._note(self.node.put_back())
                self._note(self.node.take_away())
            self._close()

    def _is_owed(self, at: int) -> bool:
        feeder = self.course.feeders.get(at)
        return feeder is not None and feeder >= self._delivered

    def _put_back(self) -> None:
        while self.node.is_pending:
            if self._note(self.node.put_back()):
                return
            if self._note(self.node.take_away()):
                return

    def _close(self) -> None:
        self.node.close()
        self._at += 1

    def _note(self, told: Iterable[Support]) -> bool:
        """Puts what was told into the outbox; whether something was withdrawn from another part."""
        withdrew = False
        for out, row, rank in told:
            target = self.how.target(out, row, self.parts)
            others = range(self.parts) if target is None else (target,)
            name = self.how.ships[out]
            # What is complete when it is told of needs no rank: nothing of it rests on the receiver.
            said = rank if rank is None or out in self.course.ranked else 0
            for part in others:
                if part != self.part:
                    own = self._outbox.setdefault(part, {})
                    was_there = own[name, row][0] if (name, row) in own else rank is None
                    own[name, row] = was_there, said
                    withdrew |= rank is None
        return withdrew

    def _report(self) -> Report:
        at = self._at if self._at < len(self.course.plan.strata) else None
        said = [each for own in self._outbox.values() for each in own.values()]
        return Report(
            at=at,
            waits=self._waits,
            told=sum(was_there or rank is not None for was_there, rank in said),
            withdrew=any(was_there for was_there, _ in said),
            pending=at is not None and not self._waits and self.node.is_pending,
        )
