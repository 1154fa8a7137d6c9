"""Stopping recursions that do not end, with the rule that keeps deriving and a tuple it derived last."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from whence.lang.program import Program, Rule
from whence.lang.types import Tuple
from whence.limits import (
    Limits,
    OnRound,
    RunawayError,
    endless,
    goes_round,
    keeps_deriving,
    late,
    out_of_memory,
    runaway,
)
from whence.memory import MemoryWatch

_CHECKED_EVERY = 1 << 16


class RoundTrip(Protocol):
    def __call__(self, relations: Sequence[str], *, joined: bool) -> list[tuple[str, Tuple]]: ...


@dataclass
class Guard:
    """Limits for one epoch. `sizes` are those of all tables.

    `rule` derived something new last, of which `sample` gives a tuple when it is asked for; `at` is the rule being applied.
    """

    program: Program
    limits: Limits
    on_round: OnRound | None = None
    started: float = field(default_factory=time.monotonic)
    at: Rule | None = None
    rule: Rule | None = None
    sample: Callable[[], Tuple] | None = None
    sizes: Callable[[], Mapping[str, int]] = dict
    unchecked: int = 0
    memory: MemoryWatch = field(default_factory=MemoryWatch)
    # Finds rows of relations that come from equal ones: at how many tuples it is asked next, and about which relations.
    round_trip: RoundTrip | None = None
    asked_at: int | None = None
    tagged: tuple[str, ...] = ()
    # When memory was first looked at in this epoch, and what there was.
    before: tuple[float, Mapping[str, int]] | None = None

    def restart(self) -> None:
        self.started = time.monotonic()
        self.before = self.at = self.rule = self.sample = self.asked_at = None
        self.tagged = ()

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
        self._refuse_round_trips(relations, tuples)
        self._check_limits(tuples)

    def rows_before_look(self, relations: tuple[str, ...], tuples: Callable[[], int]) -> int | None:
        """How many rows may be made before somebody asks whether they go round; None if they cannot."""
        if not self._are_tagged(relations):
            return None
        return _FIRST_LOOK if self.asked_at is None else max(1, self.asked_at - tuples())

    def _are_tagged(self, relations: tuple[str, ...]) -> bool:
        known = self.program.relations
        self.tagged = tuple(name for name in relations if name in known and known[name].tagged)
        return bool(self.tagged) and self.round_trip is not None

    def _refuse_round_trips(self, relations: tuple[str, ...], tuples: Callable[[], int]) -> None:
        """Asked whenever there are twice as many tuples as before, so that it costs a share of what is derived."""
        if not self._are_tagged(relations):
            return
        count = tuples()
        if self.asked_at is None:
            self.asked_at = count + _FIRST_LOOK
        elif count >= self.asked_at:
            self.asked_at = 2 * count
            assert self.round_trip is not None
            if rows := self.round_trip(self.tagged, joined=False):
                raise endless(self.program, rows)

    def _same_joins(self) -> str:
        """What to add where a limit was reached: a row that finds the same partners as one that it comes from."""
        if not self.tagged or self.round_trip is None:
            return ""
        rows = self.round_trip(self.tagged, joined=True)
        return goes_round(rows) if rows else ""

    def _check_limits(self, tuples: Callable[[], int]) -> None:
        limits = self.limits
        if limits.max_tuples is not None and (count := tuples()) > limits.max_tuples:
            self._stop(f"at {count} tuples (limit {limits.max_tuples})")
        self.look()

    def look(self) -> None:
        """To be called now and then by those who work, whether they derive anything or not."""
        left = self.seconds_left()
        if self.limits.timeout is not None and left is not None and left < 0:
            raise late(self.program, self.limits.timeout, self.at, self._last())
        if self.limits.within_memory:
            self._look_at_memory()

    def keep_sample(self) -> None:
        if self.sample is not None:
            found = self.sample()
            self.sample = lambda: found

    def seconds_left(self) -> float | None:
        timeout = self.limits.timeout
        return None if timeout is None else self.started + timeout - time.monotonic()

    def _look_at_memory(self) -> None:
        if time.monotonic() - self.started < _SOON:  # most epochs are over by then
            return
        if self.before is None:
            self.before = time.monotonic(), self.sizes()
        memory = self.memory.look()
        if memory is not None:
            at, sizes = self.before
            last = self._last()
            derives = ("" if last is None else keeps_deriving(self.program, *last)) + self._same_joins()
            raise out_of_memory(memory, derives, self.sizes(), sizes, time.monotonic() - at)

    def _last(self) -> tuple[Rule, Tuple] | None:
        return None if self.rule is None or self.sample is None else (self.rule, self.sample())

    def _stop(self, when: str) -> NoReturn:
        last = self._last()
        if last is None:
            raise RunawayError(f"stopped {when}")
        raise runaway(self.program, *last, when, self._same_joins())


_SOON = 0.1
_FIRST_LOOK = 1000  # tuples
