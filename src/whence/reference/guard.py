"""The limits of an evaluation, looked at while it goes on."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NoReturn

from whence.lang.program import Program, Rule, Stratum
from whence.lang.sizes import TooLarge
from whence.lang.types import Tuple
from whence.limits import (
    Limits,
    OnRound,
    RunawayError,
    endless,
    keeps_deriving,
    late,
    makes_too_large,
    out_of_memory,
    runaway,
)
from whence.memory import MemoryWatch
from whence.reference.solve import Solver
from whence.reference.ways import round_trip


@dataclass
class EvaluationGuard:
    """Counts rounds and stops what does not end."""

    program: Program
    solver: Solver
    limits: Limits
    on_round: OnRound | None
    started: float = field(default_factory=time.monotonic)
    last: tuple[Rule, Tuple] | None = None
    # The tuples of the relations outside the current stratum.
    settled: int = 0
    # At how many tuples it is looked next whether a row comes from itself.
    asked_at: int = 100
    stratum: Stratum | None = None
    memory: MemoryWatch = field(default_factory=MemoryWatch)

    def __post_init__(self) -> None:
        self.solver.on_steps = self.look
        self.solver.seconds_left = self.seconds_left

    def restart(self) -> None:
        """Counts time from now on, and tuples from those that are there."""
        self.started = time.monotonic()
        self.settled = sum(len(table) for table in self.solver.tables.values())
        self.last = self.stratum = None
        self.asked_at = self.settled + 100

    def begin(self, stratum: Stratum) -> None:
        if self.stratum is not None:
            self.settled += self._size(self.stratum)
        self.settled -= self._size(stratum)
        self.stratum = stratum

    def _size(self, stratum: Stratum) -> int:
        return sum(len(self.solver.tables[name]) for name in stratum.relations)

    def derive(self, rule: Rule, row: Tuple, pending: int) -> None:
        """To be called for each derived tuple; `pending` are in no relation yet."""
        if self.last is None or row not in self.solver.tables[rule.head.relation].rows:
            self.last = (rule, row)
        if self.limits.max_tuples is not None and pending > self.limits.max_tuples:
            self.stop(f"at {pending} tuples (limit {self.limits.max_tuples})")

    def round(self, stratum: Stratum, number: int) -> None:
        total = self.settled + self._size(stratum)
        if self.on_round is not None:
            self.on_round(", ".join(stratum.relations), number, total)
        if self.limits.max_rounds is not None and number > self.limits.max_rounds:
            self.stop(f"after {self.limits.max_rounds} rounds")
        if self.limits.max_tuples is not None and total > self.limits.max_tuples:
            self.stop(f"at {total} tuples (limit {self.limits.max_tuples})")
        self._refuse_round_trips(stratum, total)
        self.look()

    def _refuse_round_trips(self, stratum: Stratum, total: int) -> None:
        """Asked whenever there are twice as many tuples as before."""
        if self.last is None or total < self.asked_at:
            return
        rule, row = self.last
        relation = rule.head.relation
        if stratum.recursive and relation in stratum.relations and self.program.relations[relation].tagged:
            self.asked_at = 2 * total
            if rows := round_trip(self.program, self.solver.tables, relation, row):
                raise endless(self.program, rows)

    def seconds_left(self) -> float | None:
        timeout = self.limits.timeout
        return None if timeout is None else self.started + timeout - time.monotonic()

    def look(self) -> None:
        """To be called now and then: time and memory."""
        left = self.seconds_left()
        if self.limits.timeout is not None and left is not None and left < 0:
            raise late(self.program, self.limits.timeout, self.solver.rule, self.last)
        if self.limits.within_memory and (memory := self.memory.look()) is not None:
            sizes = {name: len(table) for name, table in self.solver.tables.items()}
            derives = "" if self.last is None else keeps_deriving(self.program, *self.last)
            raise out_of_memory(memory, derives, sizes, {}, time.monotonic() - self.started)

    def too_large(self, error: TooLarge) -> RunawayError:
        assert self.solver.rule is not None
        return makes_too_large(self.program, self.solver.rule, error)

    def stop(self, when: str) -> NoReturn:
        if self.last is None:
            raise RunawayError(f"stopped {when}")
        raise runaway(self.program, *self.last, when)
