"""The limits of an evaluation, looked at while it goes on."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NoReturn

from whence.lang.program import Program, Rule, Stratum
from whence.lang.types import Tuple
from whence.limits import Limits, OnRound, RunawayError, name_rule, runaway, show_row
from whence.reference.solve import Solver


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
    stratum: Stratum | None = None

    def __post_init__(self) -> None:
        self.solver.on_steps = self.check_time

    def restart(self) -> None:
        """Counts time from now on, and tuples from those that are there."""
        self.started = time.monotonic()
        self.settled = sum(len(table) for table in self.solver.tables.values())
        self.last = self.stratum = None

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
        self.check_time()

    def check_time(self) -> None:
        if self.limits.timeout is None or time.monotonic() - self.started <= self.limits.timeout:
            return
        current, when = self.solver.rule, f"after {self.limits.timeout:g} s"
        if current is None or (self.last is not None and current is self.last[0]):
            self.stop(when)
        derived = "" if self.last is None else f"; the last new tuple was {show_row(*self.last)}"
        raise RunawayError(f"stopped {when} in {name_rule(self.program, current)}{derived}\n  hint: raise --timeout")

    def stop(self, when: str) -> NoReturn:
        if self.last is None:
            raise RunawayError(f"stopped {when}")
        raise runaway(self.program, *self.last, when)
