"""What maintaining views has cost so far: work, which is the same on every machine, and time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter


@dataclass
class Stats:
    """`seconds` tells where the time went, by phase."""

    rounds: int = 0
    derivations: int = 0
    suspended: int = 0
    rederived: int = 0
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    inside: float = 0.0  # spent in phases within the current one

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time spent in a phase within this one is not counted twice."""
        started, around, self.inside = perf_counter(), self.inside, 0.0
        try:
            yield
        finally:
            spent = perf_counter() - started
            self.seconds[name] += spent - self.inside
            self.inside = around + spent

    def copy(self) -> Stats:
        return replace(self, seconds=self.seconds.copy())

    def since(self, before: Stats) -> Stats:
        seconds = {name: spent - before.seconds[name] for name, spent in self.seconds.items()}
        return Stats(
            self.rounds - before.rounds,
            self.derivations - before.derivations,
            self.suspended - before.suspended,
            self.rederived - before.rederived,
            defaultdict(float, {name: spent for name, spent in seconds.items() if spent}),
        )
