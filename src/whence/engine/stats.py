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

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += perf_counter() - started

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
