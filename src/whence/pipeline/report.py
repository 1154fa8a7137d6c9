"""What an epoch did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EpochReport:
    """What an epoch did and took. `tuples` are the sizes of the output relations after it.

    Where parts ship each other what they need, they did so in `exchanges`: how many tuples, in how many bytes.
    `switches` are the join orders that are others after it.
    """

    epoch: int
    updates: int
    no_ops: int
    inserted: int
    deleted: int
    rounds: int
    seconds: float
    tuples: Mapping[str, int]
    state_bytes: int
    exchanges: int = 0
    shipped: int = 0
    shipped_bytes: int = 0
    switches: tuple[str, ...] = ()

    def __str__(self) -> str:
        size = sum(self.tuples.values())
        shipped = f"{self.exchanges:,} exchanges of {self.shipped_bytes / 1e3:,.1f} kB, " if self.exchanges else ""
        return (
            f"epoch {self.epoch}: {self.updates:,} updates, +{self.inserted:,} -{self.deleted:,}, {self.rounds:,} rounds, "
            f"{shipped}{self.seconds * 1000:,.1f} ms, {size:,} tuples, {self.state_bytes / 1e6:,.1f} MB"
        )
