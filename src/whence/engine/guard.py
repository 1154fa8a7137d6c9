"""Stopping recursions that do not end, with the rule that keeps deriving and a tuple it derived last."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from whence.lang.program import Program, Rule
from whence.lang.types import Tuple
from whence.limits import Limits, OnRound, RunawayError, runaway

_CHECKED_EVERY = 1 << 16


@dataclass
class Guard:
    """Limits for one epoch. `sample` gives the tuple derived last, when it is asked for."""

    program: Program
    limits: Limits
    on_round: OnRound | None = None
    started: float = field(default_factory=time.monotonic)
    rule: Rule | None = None
    sample: Callable[[], Tuple] | None = None
    unchecked: int = 0

    def restart(self) -> None:
        self.started = time.monotonic()

    def derived(self, count: int, tuples: Callable[[], int]) -> None:
        """Looks at the limits now and then: a single round may derive without end."""
        self.unchecked += count
        if self.unchecked >= _CHECKED_EVERY:
            self.unchecked = 0
            self._check_limits(tuples)

    def check(self, relations: tuple[str, ...], round_number: int, tuples: Callable[[], int]) -> None:
        if self.on_round is not None:
            self.on_round(", ".join(relations), round_number, tuples())
        limits = self.limits
        if limits.max_rounds is not None and round_number > limits.max_rounds:
            self._stop(f"after {limits.max_rounds} rounds")
        self._check_limits(tuples)

    def _check_limits(self, tuples: Callable[[], int]) -> None:
        limits = self.limits
        if limits.max_tuples is not None and (count := tuples()) > limits.max_tuples:
            self._stop(f"at {count} tuples (limit {limits.max_tuples})")
        if limits.timeout is not None and time.monotonic() - self.started > limits.timeout:
            self._stop(f"after {limits.timeout:g} s")

    def _stop(self, when: str) -> None:
        if self.rule is None or self.sample is None:
            raise RunawayError(f"stopped {when}")
        raise runaway(self.program, self.rule, self.sample(), when)
