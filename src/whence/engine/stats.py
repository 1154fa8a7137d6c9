"""What maintaining views has cost so far: work, which is the same on every machine, and time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from time import perf_counter


class Phase:
    """A part of an epoch, while it lasts."""

    __slots__ = ("around", "name", "started", "stats")

    def __init__(self, stats: Stats, name: str) -> None:
        self.stats, self.name = stats, name

    def __enter__(self) -> None:
        self.around, self.stats.inside = self.stats.inside, 0.0
        self.started = perf_counter()

    def __exit__(self, *_: object) -> None:
        spent = perf_counter() - self.started
        self.stats.seconds[self.name] += spent - self.stats.inside
        self.stats.inside = self.around + spent


@dataclass
class Stats:
    """`seconds` tells where the time went, by phase."""

    rounds: int = 0
    derivations: int = 0
    suspended: int = 0
    rederived: int = 0
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    inside: float = 0.0  # spent in phases within the current one

    def phase(self, name: str) -> Phase:
        """Time spent in a phase within this one is not counted twice."""
        return Phase(self, name)

    def copy(self) -> Stats:
        return Stats(self.rounds, self.derivations, self.suspended, self.rederived, self.seconds.copy(), self.inside)

    def since(self, before: Stats) -> Stats:
        seconds = {name: spent - before.seconds[name] for name, spent in self.seconds.items()}
        return Stats(
            self.rounds - before.rounds,
            self.derivations - before.derivations,
            self.suspended - before.suspended,
            self.rederived - before.rederived,
            defaultdict(float, {name: spent for name, spent in seconds.items() if spent}),
        )
