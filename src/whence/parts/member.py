"""One part: a node, what it holds back for others until its turn ends, and how far it has come.

A turn goes as far as it can: through all strata that need nobody else, up to one that others have a say in. There parts take away
together until nobody has told of a withdrawal, then put back together until nobody has told of anything (`node` says why).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from whence.backends.local.arrays import Ids
from whence.backends.local.shared import Shared
from whence.engine.steps import Effect
from whence.engine.windows import Windows
from whence.io.changes import Changes, Update
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.node import Node, Supports
from whence.parts.course import Course
from whence.plan.deal import Dealing
from whence.plan.partition import part_of
from whence.prepared import Prepared, prepare

# What a part says to another: by relation of the receiver, tuples and the ranks that they are supported with.
Letter = dict[str, tuple[list[Tuple], list[int | None]]]


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


class _PartNode(Node):
    """Tells what is for other parts: most of what a part derives is for itself."""

    def __init__(
        self, prepared: Prepared, how: Dealing, part: int, parts: int, *, limits: Limits, windows: Windows | None
    ) -> None:
        super().__init__(prepared, limits=limits, windows=windows, tells=how.ships.keys())
        self._how, self._part, self._parts = how, part, parts

    def _told(self, effects: Iterable[Effect[Ids]]) -> list[Supports]:
        shipped = (each for each in effects if each.relation in self._how.ships)
        return super()._told(each._replace(ids=self._elsewhere(each)) for each in shipped)

    def _elsewhere(self, effect: Effect[Ids]) -> Ids:
        column = self._how.place(effect.relation)
        if column is None:
            return effect.ids
        values, places = self._atomic.values_in_steps(effect.relation, effect.ids, column)
        is_own = np.array([part_of(value, self._parts) == self._part for value in values], dtype=np.bool_)
        return effect.ids[~is_own[places]]


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
        self.node = _PartNode(prepared, how, part, parts, limits=limits, windows=windows)
        self._outbox: dict[int, dict[str, dict[Tuple, tuple[bool, int | None]]]] = {}
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
            self._note(self.node.take_away_all())
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
        letters: dict[int, Letter] = {}
        for part, name, said in ((part, *each) for part, own in outbox.items() for each in own.items()):
            kept = [(row, rank) for row, (was_there, rank) in said.items() if was_there or rank is not None]
            if kept:
                letters.setdefault(part, {})[name] = [row for row, _ in kept], [rank for _, rank in kept]
        return letters

    def receive(self, sender: int, letter: Letter) -> None:
        for name, (rows, ranks) in letter.items():
            self.node.receive_all(sender, name, rows, ranks)

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
            self._note(self.node.take_away_all())
            if at in self.course.joint:
                if self._is_first or (self._grows and at in self.course.growing):
                    self._put_back()
                return
            while self.node.is_pending:
                self._note(self.node.put_back_all())
                self._note(self.node.take_away_all())
            self._close()

    def _is_owed(self, at: int) -> bool:
        feeder = self.course.feeders.get(at)
        return feeder is not None and feeder >= self._delivered

    def _put_back(self) -> None:
        while self.node.is_pending:
            if self._note(self.node.put_back_all()):
                return
            if self._note(self.node.take_away_all()):
                return

    def _close(self) -> None:
        self.node.close()
        self._at += 1

    def _note(self, told: Iterable[Supports]) -> bool:
        """Puts what was told into the outbox; whether something was withdrawn from another part."""
        withdrew = False
        for out, rows, rank in told:
            name = self.how.ships[out]
            # What is complete when it is told of needs no rank: nothing of it rests on the receiver.
            said = rank if rank is None or out in self.course.ranked else 0
            for part, own in self._by_target(out, rows):
                outbox = self._outbox.setdefault(part, {}).setdefault(name, {})
                for row in own:
                    before = outbox.get(row)
                    outbox[row] = rank is None if before is None else before[0], said
                withdrew |= rank is None and bool(own)
        return withdrew

    def _by_target(self, out: str, rows: list[Tuple]) -> Iterable[tuple[int, list[Tuple]]]:
        """The tuples that other parts are to be told of."""
        column = self.how.place(out)
        if column is None:
            return [(part, rows) for part in range(self.parts) if part != self.part]
        found: dict[int, list[Tuple]] = {}
        targets = {value: part_of(value, self.parts) for value in {row[column] for row in rows}}
        for row in rows:
            found.setdefault(targets[row[column]], []).append(row)
        found.pop(self.part, None)
        return found.items()

    def _report(self) -> Report:
        at = self._at if self._at < len(self.course.plan.strata) else None
        said = [each for own in self._outbox.values() for rows in own.values() for each in rows.values()]
        return Report(
            at=at,
            waits=self._waits,
            told=sum(was_there or rank is not None for was_there, rank in said),
            withdrew=any(was_there for was_there, _ in said),
            pending=at is not None and not self._waits and self.node.is_pending,
        )
