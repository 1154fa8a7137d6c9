"""What a home knows of its tuples: their derivations, and whether the tuple is there.

Of what it is told about a derivation the latest counts, by the stamp of the update that made the difference: messages
may overtake each other. A tuple comes and goes once its turn comes, if then it still has to: what has cancelled itself
meanwhile is not told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from whence.lang.types import Tuple
from whence.sensors.messages import Derivation, Fact, Result, Stamp


@dataclass
class Entry:
    derivations: dict[Derivation, tuple[Stamp, bool]] = field(default_factory=dict)
    published: Fact | None = None
    count: int = 0  # of derivations that hold
    root: float = -inf
    since: float = 0.0  # real time of the last change
    pending: set[float] = field(default_factory=set)

    @property
    def is_wanted(self) -> bool:
        return self.count > 0

    def take(self, result: Result) -> bool:
        """Takes note of a result; whether it was news."""
        known = self.derivations.get(result.derivation)
        if known is not None and not self.is_newer(result.stamp, known[0]):
            return False
        self.derivations[result.derivation] = (result.stamp, result.is_addition)
        before = known is not None and known[1]
        self.count += result.is_addition - before
        self.root = max(self.root, result.root)
        return before != result.is_addition

    def is_newer(self, stamp: Stamp, known: Stamp) -> bool:
        return stamp > known


Homes = dict[tuple[str, Tuple], Entry]
